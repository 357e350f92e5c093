"""Sentences about results: made from data, one function a finding, never stored in a result.

One module a kind of result. `effects` puts one effect in words, `answers` the answer to each
estimand's question, `verdicts` a verdict, `findings` orders what a result says. `derived` lists
what a file says in words, which `data/artifact.py` asks for through `ranktilt.presenter`.
"""
