"""Dense retrieval: exact search over vectors.

Start with `retriever.Dense`, which encodes texts and searches them with `search`. `direction` is a
direction that a search can ignore, `embedding_server` a model behind an OpenAI-compatible server.
The encoders are in `ranktilt.models`. `Dense` counts the documents that its model truncates; an
audit compares their share by source (`auditing/confounds.py`) and prints it in a table
(`reporting/views/audit/tables.py`). Tests: tests/rankers/dense.
"""
