"""Tournaments: games between agents to ratings."""
