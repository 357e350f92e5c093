"""Runs in every layout that is read.

Start with `runfile.read_run_file`, whose table tries the layouts in order: `trec_run`,
`three_column_run`, `table_run`, `parquet_run`, and those of `responses`. `run_columns` makes
entries of a run from columns, `result_columns` from a table in memory, `score_map` from nested
JSON. `score_order` finds out whether larger scores are better, `repeats` whether a query was
ranked several times. A new layout is a module with `sniff` and `read`, and a line in the table.
"""
