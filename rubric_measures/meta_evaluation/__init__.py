"""Boards against boards, labels against labels, runs against runs: pure functions on plain arrays.

Nothing is imported here, so that `import rubric_measures` needs neither numpy nor scipy; take what you need from the
modules:

- `correlation`: rank correlation (Kendall, Spearman, Pearson, τ_AP, RBO, maximum rank drop); `intervals`: theirs.
- `leaderboard_correlation`, `grid`: leaderboards joined on their runs; every measure and grade set of a graded file.
- `run_comparison`: tests between runs, corrected.
- `leaderboard_report`, `leaderboard_checks`: what stands beside a leaderboard.
- `agreement`, `kappa`, `label_sources`, `workbench_tables`: two or more graders of the same documents; `judges`: many
  against one truth; `agreement_tables`: both, shown.
- `prediction_powered`: few labels of assessors and many of a model, one valid interval.
"""
