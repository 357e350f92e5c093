"""Sentences about results: made from data, one function a finding, never stored in a result.

There is a module for each kind of result, or a folder if it has several. Start with `effects`,
which puts one effect in words, `answers`, which answers each estimand's question, and `verdicts`.
`findings` sorts the statements of a result, and has the words for next steps and for lists that
cannot vary. `grammar` makes words agree with a number. `derived` returns the sentences that a saved
file holds besides a result's fields; `data/artifact.py` asks for them through `ranktilt.presenter`.

A function whose name ends in ``_sentence`` returns a whole sentence, mostly without its full stop,
and ``_words`` a part of one. Tests: tests/reporting.
"""
