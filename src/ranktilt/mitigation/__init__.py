"""Corrections at inference: what moves a ranking towards level, one file each."""
