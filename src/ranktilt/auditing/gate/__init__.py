"""A gate for continuous integration: an audit is within a limit, tilted or inconclusive.

Start with `gate.gate`: `options` holds the limits, `gated_audits` and `requirements` look up what
must pass, and `judge` judges an audit by `limit_checks`. If there is an earlier audit, the
*baseline*, `since_baseline` judges how much the audit differs from it. `result` is the result; its
reasons are put in words in `reporting/sentences/gate.py`.
"""
