"""``ranktilt pairwise``: the verb, where choices come from, and what is asked of them.

Start in `pairwise`, which parses, calls and delivers. `choices` holds the options of the model that
chooses, and of stored choices; `request` the pairs that a model is asked about; `question` the
groups, and how choices are counted. Tests: tests/cli/test_pairwise.py.
"""
