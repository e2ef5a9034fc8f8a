"""Making and maintaining test banks."""
