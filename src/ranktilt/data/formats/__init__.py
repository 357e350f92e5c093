"""File layouts: bytes to rows and back, a small module a layout with `sniff` and `read`.

Start with `recognition`, which says what any file is, and with the doors: `runfile` reads runs and
`qrels` judgments, each by a table of layouts that are tried in order (`trec_run`,
`three_column_run`, `table_run`, `parquet_run`, `answer_run`, `response_folder`; `text_qrels`,
`table_qrels`, `json_qrels`, `parquet_qrels`). A file before it is recognised is a `data_file`; a
file that no layout fits gets a line of `refusals`. JSON is taken apart by `answers`, and
`answer_shape` finds its lists and fields: those of known producers by `response_layouts`, others by
their records (`hit_fields`), tables by `answer_tables`, logs of evaluations by `grade_logs`.
Queries are `query_columns` and `json_queries`. `notation` reads ``FILE:key=column``;
`column_names`, `cells`, `ids` and `score_order` are rules that all share. May import
`ranktilt.data.files` and the errors. A new layout is a module and a line in a table; a new engine
is a row of `response_layouts`. Tests: tests/data, named as the files here, with a fixture for each
format in test_run_formats and test_qrels_formats, and damaged ones in test_damaged_files.
"""
