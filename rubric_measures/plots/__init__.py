"""Pictures (matplotlib, extra `plot`): plain numbers in, figures out, one style, written as PDF, SVG or PNG.

Every function takes plain data and returns a figure, or raises `MissingExtraError` without matplotlib;
`files.save_figures` writes it. Nothing here touches the global state of matplotlib, so figures can be made in any
thread and on machines without a display. Scores are drawn as they are; where they are not, the axis says so.

- `dots`: one leaderboard: means, intervals, queries, quartiles; `comparisons`: differences, groups of equals.
- `cells`: items by runs, queries by runs.
- `scores`: scores of runs against other scores of the same runs; smaller banks.
- `labels`: labels of graders against each other; `tournaments`: ratings and games.
- `style`, `files`: how all of them look; how they are written.
"""
