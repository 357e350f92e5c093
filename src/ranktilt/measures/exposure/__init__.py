"""Attention over all groups together: measures of whether every group gets its share.

The attention that a document gets depends on its rank, and is largest at the top. `awrf`,
`expected_exposure` and `ndkl` compare what all groups get with a target; `property_lift` is about a
column of numbers instead of groups.
"""
