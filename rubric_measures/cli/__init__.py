"""The command line: one command, one library call."""
