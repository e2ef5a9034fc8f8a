"""The grades of a query, the measures over them, and the provider that computes them for ir_measures."""
