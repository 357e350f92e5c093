"""Analyze texts: split them into terms, and measure properties of a text by itself."""
