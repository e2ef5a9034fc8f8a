"""Boards against boards, labels against labels, runs against runs."""
