"""Intervals and p-values of answers about citations.

`infer` gives an estimate its interval and p for other questions and other units; `exchange` is the
permutation test; `these_units` and `further_questions` say what holds where units are few.
"""
