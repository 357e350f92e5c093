"""Attention over all groups together: measures of whether every group gets its share.

The *attention* that a document gets depends on its rank, and is largest at the top. `awrf` and
`ndkl` compare what all groups get with target shares, `expected_exposure` with what the ideal
ranking would give them. These three favour no single group. `property_lift` is about a column of
numbers, such as popularity, instead of groups.

Start in `base`: `GroupLists` is the input, and `AttentionEstimand` the base class. May import the
rest of `measures`. A new measure is a class here, a line in `measures.base.ESTIMANDS` and a page in
docs/measures. Tests: tests/measures/test_exposure.py, tests/measures/test_property_lift.py.
"""
