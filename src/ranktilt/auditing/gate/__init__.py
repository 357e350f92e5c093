"""A gate for continuous integration: an audit is within a limit, tilted or inconclusive.

Start with `gate.gate`: `options` holds the limits, `gated_audits` and `requirements` look up what
must pass, `judge` judges an audit by `limit_checks`, and by `since_baseline` where there is an
earlier one. `result` is what comes out; its reasons are put in words in
`reporting/sentences/gate.py`.
"""
