"""Statistics: pure functions of plain arrays.

`bootstrap` and `two_way` make intervals, `inversion` the p that agrees with them, `correction`
corrects for several tests, `permutation` shuffles, `confidence_sequence` stops early,
`prediction_powered` uses a few human labels, `rank_correlation` orders. Start with the file named
as the method; each names its source. May import the errors, numpy and scipy alone. Tests:
tests/statistics; coverage and level are measured in benchmarks/intervals.py.
"""
