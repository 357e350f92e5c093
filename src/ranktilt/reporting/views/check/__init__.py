"""Pages of checks.

`check` makes the page of a collection from `sections`, `fault_chart` and `text_features`;
`file_report` is the page of a single file.
"""
