"""Controls: take one difference between twins away, and see whether the tilt moves.

*Twins* are two versions of one document, one in each of two compared groups. A *tilt* is Relative Δ
of one run. If a ranker tilts because one group's texts are longer, its tilt moves when all texts
are cut to equal lengths.

Start with `controls.controls`, which audits again under each control; `changed_texts` makes the
collections with changed texts, and `result` has the rows that an audit holds. Differences are
counted, without a second ranking, in `auditing.confounds`. A new control is a name in `CONTROLS`, a
branch of `TwinTexts.changed` and its words in `reporting/sentences/controls.py`. May import the
rest of `auditing` and all below it. Tests: tests/auditing/test_controls.py.
"""
