"""Intervals and p-values of answers about citations.

Two things could have been otherwise: the *questions*, which are the queries that the engine was
asked, and the *units*, pages that are labelled together, such as those of a domain. An interval is
over questions alone, or over both.

`infer` gives an estimate its interval and p for other questions and other units (such as domains);
`exchange` is the permutation test; `these_units` and `further_questions` say what still holds if
there are few units.
"""
