"""``ranktilt tools``: stored answers, the installation and the cache.

`doctor` shows what is installed, in force and cached, and prunes the cache; `settings_in_force`
reads the settings for it. `replay_log` replays the stored answers of a language model; its inputs,
its question and its files are in `replay_inputs`, `replay_question` and `replay_saving`. Tests:
tests/cli/test_tools.py.
"""
