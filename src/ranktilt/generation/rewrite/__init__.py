"""Rewrite a collection with a language model."""
