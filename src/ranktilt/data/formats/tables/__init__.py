"""Tables as files: delimited text and Parquet, and rules for their columns and cells.

`column_names` recognises a column by its name, `cells` reads ids and numbers as files write them,
`columns` makes columns from values of JSON. `delimited` and `parquet` read tables, `spreadsheet`
writes them.
"""
