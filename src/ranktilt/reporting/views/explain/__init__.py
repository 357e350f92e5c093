"""Pages of explanations.

`explain` makes the page of a probe, `properties` that of a gap (`gap_chart`), `factors` that of
designed changes and `versions` that of their checks; `theorem_chart` is the figure of theorem 4.1.
"""
