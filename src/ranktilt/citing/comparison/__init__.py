"""Compare two engines that answered the same queries, by whom they cite.

Start with `compare`. `audited_engine` holds the part of an audit that a comparison needs, `changes`
answers every question for both engines, `difference` gives the intervals, `overlap` says how alike
the engines cite, and `result` is the outcome.
"""
