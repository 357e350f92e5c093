"""Results as tables, pages and figures: sentences from data, never data from sentences.

Start with `output.show` and `report.report`. `views` turn each result into a `document`, `render`
each document into a format, `figures` draw, `explorer` shows queries and lists, `layouts` print a
paper's tables. `sentences` put results in words, `headline` picks the finding that leads, `tones`
its colour, `numbers` how a number is printed. `presenting` is what results ask for.

May import every room but papers and cli. A new result is a view and a line in `views`, and its
sentences a module and a line in `sentences/derived.py`. Tests: tests/reporting, with golden prints
in tests/reporting/printed.
"""
