"""``ranktilt tools``: the installation and the cache, and stored answers.

Start in `doctor`, which shows what is installed, which settings apply and what the cache keeps, and
prunes the cache. `replay_log` reads the stored answers of a language model again. `group` is the
command that holds both.

May import what its parent may. A new command is a file with a function under `verb(parent=tools)`,
imported in `cli.main`. Tests: tests/cli/test_tools.py.
"""
