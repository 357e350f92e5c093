"""The command that holds ``doctor`` and ``replay-log``."""

from __future__ import annotations

from ranktilt.cli.app import MORE, command_group

tools = command_group("tools", "Read stored answers; look after installation and cache.", MORE)
