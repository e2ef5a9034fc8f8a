"""Tournaments: games between agents to ratings."""

from rubric_measures.games.ratings import EloSettings
from rubric_measures.games.tournaments import Tournament, TournamentSettings, rate_games, render

__all__ = ["EloSettings", "Tournament", "TournamentSettings", "rate_games", "render"]
