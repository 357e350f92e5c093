"""Compare two rankings of each query, to see whether the new ranker tilts more than the old one.

A *tilt* is the answer to a question about two groups of documents. A *change* is a tilt, or an
effectiveness, of the new run minus that of the old one.

Start with `compare.compare`: `match` finds the runs, measures and queries that two audits share
(`common_queries`), `tasks` has their values per query, `changes` computes interval and p of each
difference, and `compare_audits` puts them together. `match_choices` and `compare_choices` do the
same for the choices of two models. `primary` chooses the question that comes first, and `result` is
the result. `ranks` orders three runs or more. Gates, controls, corrections and trainings use
`changes` too.

May import the rest of `auditing` and all below it. A new kind of result that can be compared has a
method `compared_with` (`compare.Comparable`). Tests: tests/auditing/test_compare.py and its
neighbours.
"""
