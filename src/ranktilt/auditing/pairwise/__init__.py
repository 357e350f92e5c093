"""Pairs of a protected and an unprotected document, shown to a language model in both orders.

*Protected* is the group of documents whose treatment is examined; all other documents are
unprotected. The *kind* of a pair says whether both documents are relevant to the query, or neither.
The *preference* is the share of the model's decisions for the protected document.

Start with `audit.pairwise`: `pairs` draws the pairs to ask about, `ask` asks a model, `decisions`
holds its choices and counts them, and `decision_file` reads choices from a file. `audit` makes
shares and tests of the counts, kind by kind, and `result` holds these and the options. The words
are in `reporting/sentences/pairwise.py`. May import `rankers` and all below it. Tests:
tests/auditing/test_pairwise.py, tests/auditing/test_variation.py.
"""
