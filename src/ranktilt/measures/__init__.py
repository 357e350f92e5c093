"""Estimands: questions to a ranking, answered as numbers from plain arrays; no files, no models.

*Groups* are sets of documents, such as human and generated texts. *Twins* are the two versions of
one document, one in each group. The *neutral* value of an estimand favours neither group. A *tie
block* is a set of documents of one list with the same score. A *label* says to which group a
document belongs, and a *labeling* gives every document a label.

Start in `base` (`Estimand`, `Measure`, the table `ESTIMANDS`; `notation` reads their texts) and
`ranking`. There is one file per measure: `ndcg`, `precision`, …, `share` and `exposure_ratio` about
groups, `exposure.property_lift` about a column of numbers, `twins` about the two versions of one
document, `contrast` (Relative Δ) between two groups. Tied documents get the expected value over all
their orders. `margin` reads how far from neutral still counts as level, `printing` prints values.
May import statistics and data. A new measure is a class, a line in the table and a page in
docs/measures. Tests: tests/measures.
"""
