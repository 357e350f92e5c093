"""Repeats of an engine whose answers are random: averaged, and the variance that they bring.

`average.average_repeats` makes one sample of those of all repeats, before any statistics.
`components.repeat_components` splits the error of each answer into queries, documents and repeats,
and says how many repeats would decide it, from the table of `residuals.residuals_by_repeat`. The
analysis of variance is in `statistics/repeats.py`, how runs are joined in `data/runs/repeats.py`.
Tests: tests/auditing/test_repeats.py.
"""
