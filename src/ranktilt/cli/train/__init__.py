"""``ranktilt train``: one file a kind of ranker, and what they share.

Start in `cross_encoder`, the plainest. `options` holds what the commands declare alike, `arguments`
reads ``--set`` as arguments of a training, `summaries` says what a model learned. A new kind is a
file with a function under `verb(parent=train)`, imported in `cli/main`. Tests:
tests/cli/test_train.py.
"""
