"""Verbs that make, read and describe collections."""
