"""Judges: whom judgments made by language models favour."""
