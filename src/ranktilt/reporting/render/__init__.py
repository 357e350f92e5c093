"""Renderers: each turns a document into one format, and knows no result.

Start in `ranktilt.reporting.output`, which chooses one. `terminal` prints tables in the width of a
terminal, or plain text; `markdown` and `latex` write text to include elsewhere, `html` a page that
opens anywhere. `junit` is for build servers and takes a gate, not a document.

May import documents and tones; no view. A new format is a module with `render(document, notes=…)`
and a line in `output`. Tests: tests/reporting.
"""
