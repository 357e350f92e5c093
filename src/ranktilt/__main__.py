"""``python -m ranktilt``: the command line."""

from __future__ import annotations

from ranktilt.cli.main import main

main()
