"""``ranktilt report``: the verb, its options and formats, and the papers' layouts.

Start in `report`, which parses, calls and delivers. `options` says where to write and in which
format, `formats` refuses what does not go together, `layouts` makes the papers' tables and figures.
Tests: tests/cli/test_report.py.
"""
