"""Rank the runs of one audit or several, with the interval of each rank.

Every two runs are tested on the primary question and on effectiveness. A run may have each rank
that the tests leave open: below all runs that are shown to be higher, above all that are shown to
be lower.

Start with `rank_runs.rank_runs`. `answers` collects what each run answers query by query, `order`
tests every two runs and orders them, `result` is the result. The intervals of ranks are in
`statistics/ranks.py`, the letters in `statistics/letters.py`. May import what `comparison` may.
Tests: tests/auditing/test_run_ranks.py.
"""
