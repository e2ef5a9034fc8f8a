"""The waist: graded passage records, as models, read, written and merged."""
