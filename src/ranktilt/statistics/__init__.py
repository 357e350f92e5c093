"""Statistics: pure functions of plain arrays.

The words that come back in most files: a *resample* draws as many queries as there are, with
replacement. An *interval* holds the true value in 95 of 100 repetitions. *p* is the probability of
a value at least as far from the neutral one, if the neutral one is true. An *origin* is a document
together with all its rewrites. *NaN* always means that a number is undefined.

- intervals and p: `bootstrap` and `two_way` make intervals, `inversion` the p that agrees with
  them, `query_ratio` puts both on a ratio over queries, `correction` corrects for several tests
- shuffled labels: `permutation`
- sizes of differences: `effect_size`; whether they are small enough to ignore: `equivalence`
- differences between queries: `group_differences`, `heterogeneity`, `repeats`; lists that could not
  have come out differently: `variation`
- orders: `ranks`, `letters`, `trend`
- audits that stop early: `confidence_sequence`
- wrong labels: `label_errors`
- `regression`: models of least squares, within groups too
- `judges`: agreement of judges and of orders, and few human labels

Start with the file of your method; its docstrings name the source. May import the errors, numpy and
scipy alone.
Tests: tests/statistics; coverage and level are measured in benchmarks/intervals.py.
"""
