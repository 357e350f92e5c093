"""Two rankings of each query side by side: whether the new ranker tilts more than the old one.

Start with `compare.compare`: `match` finds the runs, measures and queries that two audits share,
and `compare_audits` compares them; `match_choices` and `compare_choices` do so with what two models
chose. `primary` chooses the question that comes
first, and `result` is what comes out.
"""
