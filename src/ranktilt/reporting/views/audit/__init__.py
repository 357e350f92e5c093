"""Pages of audits.

`audit` makes the page from `sections`, which take their `tables` and `figures`; `ranks`,
`check_tables`, `label_errors`, `query_groups` and `repeats` are sections of their own.
`source_audits` is the page of several sources, `sequential` that of an audit that stops by itself.
"""
