"""Checks in words: `check` of a collection, `faults` each fault, `file_report` a single file."""
