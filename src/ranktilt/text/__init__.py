"""Texts: analyzers, languages and what can be seen in a text itself."""
