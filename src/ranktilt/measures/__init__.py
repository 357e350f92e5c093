"""Measures: numbers from plain arrays; no files, no models."""
