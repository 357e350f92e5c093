"""Statistics: pure functions of plain arrays.

`bootstrap` and `two_way` make intervals, `inversion` makes the p that agrees with them,
`query_ratio` puts both on a ratio over queries, `correction` corrects for several tests,
`permutation` shuffles labels, `regression`, `fixed_effects` and `gelbach` fit models,
`confidence_sequence` stops early, `prediction_powered` needs few human labels, `agreement` and
`rank_correlation` compare judges and orders. Start with the file of your method; its docstrings
name the source. May import the errors, numpy and scipy alone.
Tests: tests/statistics; coverage and level are measured in benchmarks/intervals.py.
"""
