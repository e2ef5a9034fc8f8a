"""What every room needs: errors, files, JSON, tables in every output form, plug-ins, words, the one sort."""

__version__ = "0.3.0"
