"""Verbs that make a language model write documents."""
