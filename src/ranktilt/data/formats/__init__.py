"""File layouts: bytes to rows and back, one file a layout.

`runfile` reads a run whatever its format and hands over to `ranked_lists`, `search_responses` or
its own TREC lines; `qrels` judgments, `jsonl` and `parquet` rows, `spreadsheet` CSV for people.
`ids`, `columns`, `json_text` and `score_order` are the rules that all share. May import
`ranktilt.data.files` and the errors. A new layout is a function that returns the same table.
Tests: tests/data, named as the files here.
"""
