"""Judges and orders: how far they agree, and what a judge's labels are worth.

A *judge* grades documents, or orders systems; it may be a person or a language model.

- `agreement`: Cohen's κ and Krippendorff's α of ordered grades
- `coefficient_difference`: whether one judge agrees better than another
- `rank_correlation`: Kendall's τ and others, for two orders of the same systems
- `family_difference`: whether a judge prefers systems built on its own language model
- `prediction_powered`: a mean from few human labels and many labels of a judge

May import the other files of `statistics`. Tests: tests/statistics/judges, tests/judging.
"""
