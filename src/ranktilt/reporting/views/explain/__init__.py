"""Pages of explanations.

Start in `explain`, which makes the page of an explanation by probes, with the figure of theorem
4.1. `properties` is the page of gaps between groups, and `gap_chart` the figure of a gap and its
parts that both share. `factors` is the page of designed changes, `versions` that of their checks.

Imports results, sentences and blocks of `ranktilt.reporting`; it computes nothing. A new page is a
function `view`, named in `ranktilt.reporting.views`. Tests: tests/explaining, tests/reporting.
"""
