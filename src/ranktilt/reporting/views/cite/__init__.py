"""Pages of audits of citations: whose pages an answer engine cites.

`cite` makes the page, `tables` its tables, `query_groups` a section; `comparison` is the page of
two engines, `context_experiment` that of an experiment.
"""
