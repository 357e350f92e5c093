"""Pages of audits of citations.

`cite` makes the page, `tables` its tables, `query_groups` a section; `comparison` is the page of
two engines, `context_experiment` that of an experiment.
"""
