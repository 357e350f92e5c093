"""Audits of judges in words.

`judge` says whom a judge favours and how far it agrees; `standings` which judge agrees best;
`confidence`, `doses` and `drift` each answer one further question. `gate` gives the reasons of a
gate on judges, `meaning` says what to do.
"""
