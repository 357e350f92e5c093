"""``ranktilt pairwise``: the verb, who is asked about which pairs, and what that costs.

Start in `pairwise`, which parses, calls and delivers. `questions` holds its options, `request` the
pairs that a model is asked about. Tests: tests/cli/test_pairwise.py.
"""
