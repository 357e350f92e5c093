"""Runs: ranked documents with scores for each query.

An *entry* is one document in the list of one query. Start with `run.Run`. `run_entries` checks
entries and scores, `run_text` writes TREC lines, `repeats` holds several rankings by one engine,
`tied_lists` finds lists without an order, and `rank_llm` reads candidates of the package of that
name. File layouts are in `data/formats/runs`.
"""
