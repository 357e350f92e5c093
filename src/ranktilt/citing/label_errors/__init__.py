"""Correct an audit of citations for wrong labels of pages.

Start with `correct`. `parts` divides pages into parts whose labels are wrong more or less often,
and `membership` corrects by these parts.
"""
