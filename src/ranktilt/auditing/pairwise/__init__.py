"""Pairs of a protected and an unprotected document, put before a language model in both orders.

Start with `audit.pairwise`: `pairs` draws what to ask, `ask` asks a model, `decisions` holds what
it chose, and `decision_file` reads that from a file. `counts` counts choices, `outcome` makes
shares and tests of them, `totals` does so for all kinds of pairs, and `result` is what comes out.
"""
