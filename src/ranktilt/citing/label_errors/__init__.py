"""Correct an audit of citations for wrong labels of pages.

Each label becomes a *membership*, how much of the page counts for a group, so that sums over pages
are right on average.

Start with `correct`. `parts` divides pages into parts whose labels are wrong more or less often,
and `membership` corrects by these parts.
"""
