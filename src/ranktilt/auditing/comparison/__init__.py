"""Two rankings of each query side by side: whether the new ranker tilts more than the old one.

Start with `compare.compare`: `match` puts two audits side by side, and `compare_audits` compares
them; `match_choices` and `compare_choices` do so with what two models chose. `result` is what comes
out.
"""
