"""``ranktilt explain``: the verb, what it reads, and what it asks.

Start in `explain`, which parses, calls and delivers. `inputs` reads documents, labels, runs and
rankers; `question` holds what is asked of them, and refuses options that do not go together;
`citations` explains an audit of citations instead. Tests: tests/cli/test_explain_gaps.py.
"""
