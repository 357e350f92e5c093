"""Checkpoints: found, checked, loaded and run in batches.

Start in `catalogue` (models by a short name) and `checkpoint` (what a folder holds); `encoder`
makes vectors, `scorer` scores pairs, `likelihood` the perplexity of texts. Nothing here knows of
ranking. May import data and parallel. A new model of the papers is a line in the catalogue. Tests:
tests/models.
"""
