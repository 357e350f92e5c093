"""Judgments by language models: made, compared with those of people, and put to the test."""
