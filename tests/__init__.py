"""The tests of rubric_measures."""

import os

# Two threads that wait for each other over models of a few thousand weights cost five times the time of one, and more
# where other work has the processors.
os.environ.setdefault("OMP_NUM_THREADS", "1")
