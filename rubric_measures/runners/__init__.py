"""Order and parallelism of grading, nothing else."""
