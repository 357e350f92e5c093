"""``ranktilt cite``: the verb, the answers that it reads or has a model write, and its question.

Start in `cite`, which parses, calls and delivers. `inputs` holds answers that exist and the labels
of their pages, `question` the groups to compare and how their citations are tested.
`answer_options` and `session` are for ``--llm``, where a model first answers each query from the
documents of a run. Tests: tests/cli/test_cite.py and test_cite_making.py.
"""
