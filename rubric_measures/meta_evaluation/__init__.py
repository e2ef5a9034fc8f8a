"""Leaderboards against leaderboards, labels against labels, systems against systems: pure functions on plain arrays.

Nothing is imported here, so that `import rubric_measures` needs neither numpy nor scipy; take what you need from the
modules:

- `correlation`: rank correlation of two leaderboards (Kendall, Spearman, Pearson, τ_AP, RBO, maximum rank drop).
- `bootstrap`: topic bootstrap with BCa intervals.
- `intervals`: intervals of means and of correlations, over topics or over runs.
- `significance`: tests between systems, corrections, effect sizes, groups that cannot be told apart.
- `agreement`: confusion, kappa, Krippendorff's alpha, Bland–Altman of two or more label sources.
- `workbench_tables`: the Rubric workbench's agreement tables.
- `prediction_powered`: few human labels and many model labels, one valid interval.
"""
