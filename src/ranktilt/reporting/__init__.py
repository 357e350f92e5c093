"""Results as tables, pages and figures: sentences from data, never data from sentences.

Start with `output.show` and `report.report`. `views` turn each result into a `document`, `render`
each document into a format, `figures` draw, `explorer` shows queries and lists, `layouts` print a
paper's tables. `sentences` put results in words, `headline` picks the finding that leads, `tones`
its colour, `numbers` how a number is printed. `presenting` is what results ask for.

To follow one sentence: `views/audit/audit` asks `headline.findings_of` for the verdicts in order,
`sentences/verdicts` says one, `sentences/effects` its numbers, and `sentences/answers` what the
measure found. Of other results, `sentences/derived` names the function that says what leads.

Words of this room: a *document* is a page before it has a format: headings, tables and figures as
data; a *view* makes one from a result; the *headline* is the first line, the finding that leads; a
*tone* is the colour of a finding, by its verdict; a *derived* sentence is computed when a file is
written, so that a JSON file says in English what its numbers say; a *frame* is a result's rows as a
data frame, every number as the file holds it.

May import every room but papers and cli. A new result is a view and a line in `views`, and its
sentences a module and a line in `sentences/derived.py`. Tests: tests/reporting, with golden prints
in tests/reporting/printed.
"""
