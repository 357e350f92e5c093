"""Texts: analyzers, and what can be seen in a text itself."""
