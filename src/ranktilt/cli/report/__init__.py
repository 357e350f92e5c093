"""``ranktilt report``: the verb, its formats, and the papers' layouts.

Start in `report`, which parses, calls and delivers. `formats` decides what is written and refuses
what does not go together, `layouts` makes the papers' tables and figures. Tests:
tests/cli/test_report.py.
"""
