"""Leaderboards against leaderboards, labels against labels, systems against systems: pure functions on plain arrays.

Nothing is imported here, so that `import rubric_measures` needs neither numpy nor scipy; take what you need from the
modules:

- `correlation`, `top_weighted`: rank correlation (Kendall, Spearman, Pearson, maximum rank drop; τ_AP, RBO).
- `bootstrap`: topic bootstrap with BCa intervals; `intervals`: of correlations, over topics or over runs.
- `leaderboard_correlation`, `grid`: leaderboards joined on their runs; every measure and grade set of a graded file.
- `significance`, `pair_agreement`: tests between systems, corrections, effect sizes; the same pairs under two measures.
- `system_comparison`, `leaderboard_report`, `leaderboard_checks`: what stands beside a leaderboard.
- `agreement`, `kappa`, `krippendorff`, `label_sources`: two or more graders of the same documents.
- `workbench_tables`: the Rubric workbench's agreement tables.
- `prediction_powered`: few human labels and many model labels, one valid interval.
- `plots`: the figures.
"""
