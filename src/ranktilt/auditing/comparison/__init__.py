"""Compare two rankings of each query, to see whether the new ranker tilts more than the old one.

Start with `compare.compare`: `match` finds the runs, measures and queries that two audits share
(`common_queries`), `tasks` has their values per query, and `compare_audits` compares them.
`match_choices` and `compare_choices` do the same for the choices of two models. `primary` chooses
the question that comes first, and `result` is the result. `ranks` orders three runs or more.
"""
