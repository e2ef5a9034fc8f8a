"""Tournaments: games between agents to ratings."""

from rubric_measures.pairwise._bradley_terry import fit_strengths, resampled_points
from rubric_measures.pairwise._elo import EloSettings, elo_ratings, elo_replays
from rubric_measures.pairwise._games import Games, gather_games, position_bias, win_table
from rubric_measures.pairwise._output import render
from rubric_measures.pairwise._ranking import Tournament, TournamentSettings, rate_games

__all__ = [
    "EloSettings",
    "Games",
    "Tournament",
    "TournamentSettings",
    "elo_ratings",
    "elo_replays",
    "fit_strengths",
    "gather_games",
    "position_bias",
    "rate_games",
    "render",
    "resampled_points",
    "win_table",
]
