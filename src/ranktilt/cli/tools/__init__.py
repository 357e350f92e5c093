"""``ranktilt tools``: stored answers, the installation and the cache.

`doctor` shows what is installed, in force and cached, and prunes the cache; `settings_in_force`
reads the settings for it. `replay_log` replays the stored answers of a language model. Tests:
tests/cli/test_tools.py.
"""
