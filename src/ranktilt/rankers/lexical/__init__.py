"""BM25 and TF-IDF over a shared index."""
