"""Tournaments: games between agents to ratings."""

from rubric_measures.pairwise._elo import EloSettings
from rubric_measures.pairwise._output import render
from rubric_measures.pairwise._ranking import Tournament, TournamentSettings, rate_games

__all__ = ["EloSettings", "Tournament", "TournamentSettings", "rate_games", "render"]
