"""`python -m rubric_measures` is the command line."""

import sys

from rubric_measures.cli import main

if __name__ == "__main__":
    sys.exit(main())
