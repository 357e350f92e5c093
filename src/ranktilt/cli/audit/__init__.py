"""``ranktilt audit`` and ``demo``: the verbs, what they read and ask, and where results go.

Start in `audit`, which parses, calls and delivers, and writes pages and folders. `inputs` holds
collections, labels, rankers and runs; `question` the sources that are compared, what is asked of
every run, and the audit of a live engine. `from_audit` reads an audit's file in place of a
collection, for later commands. `mitigate` builds its inputs on those of this room. The work itself
is done in the room `auditing`. Tests: tests/cli/test_audit*.py and test_from_audit.py.
"""
