"""Verbs that level a ranker, and look at what comes of it."""
