"""Boards: runs scored by measures, for ir_measures too; what a board holds; boards as other programs make them."""
