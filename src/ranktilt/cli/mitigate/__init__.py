"""``ranktilt mitigate``: the verb, what it reads, and what it writes.

Start in `mitigate`, which parses, calls and delivers, writes the chosen correction and says what
comes next. `inputs` holds the ranker or run, and the queries to fit on, to select by and to test
on; `corrections` the options of the corrections and of their cost. The work itself is done in the
room `mitigation`. A new option of a correction is a field of `Corrections`. Tests:
tests/cli/test_mitigate.py and test_next_steps.py.
"""
