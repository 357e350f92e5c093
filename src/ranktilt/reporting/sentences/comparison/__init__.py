"""Comparisons of runs in words.

`compare` says how a new ranker differs from an old one and `meaning` what to do about it;
`run_ranks` orders several runs, `group_standings` several groups of documents.
"""
