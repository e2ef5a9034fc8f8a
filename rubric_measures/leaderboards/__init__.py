"""Scoring runs: the board and its cells, its output, and the boards of other programs."""
