"""Audits of citations in words.

`cite` says who is cited more and how sure that is; `query_groups` where; `comparison` how two
engines differ; `context_experiment` what decides between two versions.
"""
