"""Pages of comparisons: `compare` of two audits, `run_ranks` of several runs.

`group_standings` is a table of several groups of documents, which audits show too.
"""
