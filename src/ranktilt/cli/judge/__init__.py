"""``ranktilt judge``: the verb, what it reads and asks, and the model that grades.

Start in `judge`, which parses, calls and delivers, and compares systems by stored values
(``--scores``). `inputs` holds grades, runs and values per query, `question` how grades are
compared, `grading` the language model of ``--llm`` that makes grades, with its options.

May import what its parent may, and what the commands of `cli.generate` share: a model that grades
is priced and resumed like one that writes. Tests: tests/cli/test_judge.py.
"""
