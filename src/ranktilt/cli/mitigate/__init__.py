"""``ranktilt mitigate``: the verb, what it reads, and what it writes.

Start in `mitigate`, which parses, calls and delivers. `corrections` holds its options, `inputs` the
ranker or run, `query_sets` the queries to fit on, to select by and to test on; `save` writes the
chosen correction, `next_steps` says what comes next. Tests: tests/cli/test_mitigate.py.
"""
