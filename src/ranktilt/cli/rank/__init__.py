"""``ranktilt rank``: the verb, what it reads, and where runs go.

Start in `rank`, which parses, calls and delivers. `source` reads the collection, `targets` are the
files of runs, `estimates` the price of language models, `notes` what is said of each run. Tests:
tests/cli/test_rank.py.
"""
