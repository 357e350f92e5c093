"""``ranktilt audit`` and ``demo``: the verbs, what they read and ask, and where results go.

Start in `audit`, which parses, calls and delivers. `inputs` holds collections, labels, runs and
sources, `question` what is asked of every run, `output` pages and folders, `sequential` an audit of
a live engine. `from_audit` reads an audit's file in place of a collection, for later commands.
Tests: tests/cli/test_audit*.py and test_from_audit.py.
"""
