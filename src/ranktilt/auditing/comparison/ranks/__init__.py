"""Rank the runs of one audit or several, with the interval of each rank.

Start with `rank_runs.rank_runs`. `answers` collects what each run answers query by query, `order`
tests every two runs and orders them, `result` is the result. May import what `comparison` may.
Tests: tests/auditing/test_run_ranks.py.
"""
