"""Sentences about results: made from data, one function a finding, never stored in a result.

One module a kind of result. `effects` puts one effect in words, `answers` the answer to each
estimand's question, `verdicts` a verdict, `findings` orders what a result says. `derived` returns
the sentences that a saved file holds besides a result's fields; `data/artifact.py` asks for them
through `ranktilt.presenter`.
"""
