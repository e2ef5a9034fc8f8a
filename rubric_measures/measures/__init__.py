"""Measures over grades, registered with ir_measures, and the provider that computes them."""
