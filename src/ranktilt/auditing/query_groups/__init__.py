"""Groups of queries: whether the tilt is in some topics, and how queries differ beyond noise.

Start in `break_down`: it audits each group of queries alone, tests the groups with `differences`,
and returns a `result.QueryBreakdown`. `grouping` reads what ``--by-query`` names. The tests are in
`statistics.group_differences`. How much of the variance over queries is more than noise is in
`statistics.heterogeneity`: the noise is measured by halves of each query's documents, and by
repeats if a run has several. Audits of citations use the same records: `citing/query_groups`.
Tests: tests/auditing/test_query_groups.py.
"""
