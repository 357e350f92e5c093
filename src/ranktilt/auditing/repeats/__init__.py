"""Repeats: several rankings of the same queries by an engine whose answers are random.

`average.average_repeats` averages the samples of all repeats into one, before any statistics.
`components.repeat_components` splits the error of each answer into the parts of queries, documents
and repeats, and says how many repeats would decide it. `runs` has what a result says of runs with
repeats: means of their values, and notes. The analysis of variance is in `statistics/repeats.py`,
how runs are joined in `data/runs/repeats.py`. May import the rest of `auditing` and all below it.
Tests: tests/auditing/test_repeats.py.
"""
