"""Pairs of a protected and an unprotected document, shown to a language model in both orders.

Start with `audit.pairwise`: `pairs` draws the pairs to ask about, `ask` asks a model, `decisions`
holds its choices, and `decision_file` reads choices from a file. `counts` counts choices, `outcome`
makes shares and tests of them, `totals` does so for all kinds of pairs, and `result` is the result.
"""
