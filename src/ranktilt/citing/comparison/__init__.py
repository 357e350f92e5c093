"""Compare two engines on the same questions.

Start with `compare`. `audited_engine` says what a comparison takes from an audit, `changes` asks
every question, `difference` gives its interval, `overlap` says how alike the engines cite, and
`result` is the outcome.
"""
