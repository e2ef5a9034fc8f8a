"""Leaderboards against leaderboards, labels against labels, systems against systems."""
