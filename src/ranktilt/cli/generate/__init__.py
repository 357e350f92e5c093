"""``ranktilt generate``: documents that a language model writes, one file a command.

Start in `rewrite`, the plainest. `answer` writes documents from queries, and `versions` writes each
document in versions that differ by design. `options` holds what the commands declare alike,
`requests` what they refuse and price before a model is asked, `summaries` what they say at the end.
`versions` has four more files: `versions_models` connects to its two models, `versions_request`
asks them, `versions_prices` prices their prompts, and `versions_table` reads versions that exist.

May import what its parent may, and the note about grades of `cli.judge`. A new command is a file
with a function under `verb(parent=generate)`, imported in `cli.main`. Tests:
tests/cli/test_generate.py and test_generate_versions.py.
"""
