"""Doors for other programs: TREC Auto-Judge."""
