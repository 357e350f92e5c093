"""``ranktilt generate``: one file a command, and what the three share.

Start in `rewrite`, the plainest. `options` holds what the commands declare alike, `requests` what
they refuse and price before a model is asked, `summaries` what they say at the end. `pooling`
serves `rewrite`, `answer_inputs` serves `answer`, and the files of `versions_` serve `versions`. A
new command is a file with a function under `verb(parent=generate)`, imported in `cli/main`. Tests:
tests/cli/test_generate.py and test_generate_versions.py.
"""
