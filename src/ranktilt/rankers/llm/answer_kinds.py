"""Kinds of answers of language models that rank, by whether they can be read."""

from __future__ import annotations

OK, REPAIRED, MISSING, REPEATED = "ok", "repaired", "missing", "repeated"
REFUSED, AMBIGUOUS, OFF_FORMAT = "refused", "ambiguous", "off-format"
CUT_OFF, UNANSWERED = "cut off", "unanswered"
KINDS = (OK, REPAIRED, MISSING, REPEATED, REFUSED, AMBIGUOUS, OFF_FORMAT, CUT_OFF, UNANSWERED)
"""Kinds of answers, the best first.

- ok: in the form that the prompt asks for
- repaired: with other words around it, other characters, or numbers of no passage
- missing: passages are left out
- repeated: passages are named twice
- refused: the model says that it will not rank, or a filter of the server held the answer back
- ambiguous: more than one ranking or choice
- off-format: no ranking or choice that can be read
- cut off: reasoning that never ends, and so no answer
- unanswered: the request failed
"""
READABLE = frozenset((OK, REPAIRED, MISSING, REPEATED))
"""Kinds of answers that say which passages come first."""
