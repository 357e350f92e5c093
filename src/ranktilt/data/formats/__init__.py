"""File layouts: bytes to rows and back, a small module a layout with `sniff` and `read`.

Start with `recognition`, which says what any file is, and with the doors: `runs/runfile` reads
runs, `judgments/qrels` judgments and `citations/answer_file` answers with citations, each by a
table of layouts that are tried in order. `responses` takes the JSON of search engines apart,
`tables` reads delimited files and Parquet. A file before it is recognised is a `data_file`; a file
that no layout fits gets a line of `refusals`. Queries are `query_columns` and `json_queries`, JSON
itself is `json_values`, `json_text` and `jsonl`. `notation` reads ``FILE:key=column``, `ids` checks
ids and scores, and `base` holds the records between readers and their callers. May import
`ranktilt.data.files` and the errors. A new layout is a module and a line in a table; a new engine
is a row of `responses/layouts`. Tests: tests/data, named as the files here, with a fixture for each
format in test_run_formats and test_qrels_formats, and damaged ones in test_damaged_files.
"""
