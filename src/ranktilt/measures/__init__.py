"""Estimands: what is asked of a ranking, as numbers from plain arrays; no files, no models.

Start in `base` (`Estimand`, `Measure`, the table `ESTIMANDS`) and `ranking`; one file a measure:
`ndcg`, `precision`, …, `share` and `exposure_ratio` about groups, `exposure.property_lift` about a
column of numbers, `twins` about the two versions of one document, `contrast` (Relative Δ) between
two groups. Ties are the expected value over all orders. May import statistics and data. A new one is
a class, a line in the table and a page in docs/measures. Tests: tests/measures.
"""
