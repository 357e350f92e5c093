"""Relevance judgments in every layout that is read.

Start with `qrels.read_qrels`, whose table tries the layouts in order: `text_qrels` (BEIR, TREC),
`table_qrels`, `json_qrels`, `parquet_qrels`. `judgment_columns` makes judgments from columns that
were recognised; `grade_logs` reads the logs of evaluation tools.
"""
