"""Bytes to `Collection` and back: one file per format."""
