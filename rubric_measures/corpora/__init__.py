"""Collections of documents and queries, pooling, generated answers and their parts."""
