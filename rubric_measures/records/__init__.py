"""The waist: graded passage records, as models, read, written, streamed and merged."""
