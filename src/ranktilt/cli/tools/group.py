"""The command that holds ``doctor`` and ``replay-log``."""

from __future__ import annotations

from ranktilt.cli.app import MORE, command_group

tools = command_group("tools", "Replay stored answers; check the installation and the cache.", MORE)
"""The group of verbs about the installation and stored answers."""
