"""What is fast, measured: generators of data and one script a topic; figures are in README.md."""
