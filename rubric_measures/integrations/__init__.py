"""Doors for other programs: TREC Auto-Judge, PyTerrier, pytest."""
