"""File layouts: bytes to rows and back, a small module a layout with `sniff` and `read`.

A *layout* is a way to write some content in a file, such as a run as CSV. Start with `recognition`,
which says what any file is, and with the entry points: `runs/runfile` reads runs,
`judgments/qrels` judgments and `citations/answer_file` answers with citations. Each tries the
layouts of a table in order: `sniff` tells whether a file has a layout, and `read` reads it.

`responses` takes the JSON of search engines apart, `tables` reads delimited files and Parquet.
`data_file` examines the start of a file; `refusals` makes the error for a file that no layout fits.
`query_columns` and `json_queries` read queries; `json_values` and `jsonl` read JSON itself.
`notation` reads ``FILE:key=column``, `ids` checks ids and scores, and `base` holds the
records that readers return.

May import `ranktilt.data.files` and the errors. A new layout is a module and a line in a table; a
new engine is a row of `responses/layouts`. Tests: tests/data, named as the files here, with a
fixture for each format in test_run_formats and test_qrels_formats, and damaged ones in
test_damaged_files.
"""
