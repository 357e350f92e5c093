"""Pages of checks: whether a collection allows a fair comparison, and what a file is.

`check` makes the page of a collection from `sections`, `fault_chart` and `text_features`;
`file_report` is the page of a single file.
"""
