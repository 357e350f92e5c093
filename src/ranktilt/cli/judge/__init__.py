"""``ranktilt judge``: the verb, what it reads and asks, and the model that grades.

Start in `judge`, which parses, calls and delivers. `inputs` holds grades, runs and values per
query, `question` how grades are compared, `grading` the options of a language model that makes
grades, `grader` that model, `scores` the comparison of systems by values per query. Tests:
tests/cli/test_judge.py.
"""
