"""Collections of documents and queries, pooling, generated answers, rules of tracks, any file into any other."""
