"""Tasks in, graded passage records out: the one path that every grader takes."""
