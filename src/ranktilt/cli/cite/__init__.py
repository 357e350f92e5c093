"""``ranktilt cite``: the verb, the answers that it reads or has a model write, and its question.

Start in `cite`, which parses, calls and delivers, and reads stored answers and the labels of their
pages. `question` holds the groups to compare and how their citations are tested. `session` is for
``--llm``, where a model first answers each query from the documents of a run. The work itself is
done in the room `citing`. Tests: tests/cli/test_cite.py and test_cite_making.py.
"""
