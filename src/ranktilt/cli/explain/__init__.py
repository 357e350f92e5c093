"""``ranktilt explain``: the verb, and what it reads.

Start in `explain`, which parses, calls and delivers; `inputs` reads documents and labels, and
refuses options that do not go together. Tests: tests/cli/test_explain_gaps.py.
"""
