"""Audits of judges in words.

Start with `judge`, which says whom a judge favours, what fools it and how far it agrees with
humans. `standings` says which judge agrees best, `confidence` whether judges are as right as they
are sure, and `meaning` what to do. `drift` is about two audits of a judge, and `gate` gives the
reasons of a gate on judges.

Imports `ranktilt.judging`, whose records it puts in words, and the sentences of effects. A new
finding is a function in `judge`, called in `judge_findings`. Tests: tests/judging, tests/reporting.
"""
