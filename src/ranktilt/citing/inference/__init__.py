"""Intervals and p-values of answers about citations.

`infer` gives an estimate its interval and p for other questions and other units (such as domains);
`exchange` is the permutation test; `these_units` and `further_questions` say what still holds if
there are few units.
"""
