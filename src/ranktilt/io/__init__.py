"""Bytes in, bytes out: text files, JSON lines, Parquet, runs, judgments, artifacts and the cache."""
