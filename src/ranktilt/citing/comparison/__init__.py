"""Compare two engines that answered the same queries, by whom they cite.

An engine's *tilt* is how far it favours one of two groups of pages; a *change* is the new engine's
tilt minus the old one's. Both answered the same queries, so errors that they share cancel.

Start with `compare`. `audited_engine` holds the part of an audit that a comparison needs, `changes`
answers every question for both engines, `difference` gives the intervals, `overlap` says how alike
the engines cite, and `result` is the outcome.
"""
