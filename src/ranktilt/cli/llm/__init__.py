"""Verbs that ask language models about pairs and lists."""
