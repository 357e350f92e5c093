"""Rankers: a run from a collection, one family a file."""
