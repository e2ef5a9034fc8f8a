"""Boards: runs scored by measures, what a board holds, boards as other programs make them."""
