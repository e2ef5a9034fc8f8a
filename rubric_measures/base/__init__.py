"""What every room needs: errors, frozen records of items and grades, files, signature, the one sort, seeds, JSON."""

__version__ = "0.2.0"
