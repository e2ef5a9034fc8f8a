"""The fuzzer: damaged files of every kind through every command, in process; `python -m tests.fuzz --help`."""
