"""Results as tables, pages and figures: sentences from data, never data from sentences.

Start with `output.show` and `report.report`. `views` turn each result into a `document`, `render`
each document into a format, `figures` draw, `explorer` shows queries and lists, `layouts` print a
paper's tables. `headline` picks the finding that leads, `tones` its colour, `numbers` how a number
is printed. May import every room but papers and cli. A new result is a view and a line in `views`.
Tests: tests/reporting; its golden prints stand in tests/reporting/printed.
"""
