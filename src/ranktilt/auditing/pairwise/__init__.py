"""Pairs of a protected and an unprotected document, put before a language model in both orders."""
