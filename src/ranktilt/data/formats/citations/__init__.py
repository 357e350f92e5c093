"""Answers with citations, as engines and libraries write them: a small module a layout.

A *record* is the JSON object of one answer. Start with `answer_file`, which reads a file or a
folder, tells the layout by its first record, and refuses a file that no layout fits. Each layout
has `NAME`, `fits(record)` and `read(record)`, which returns an `AnswerRecord` of `base`; `LAYOUTS`
in `answer_file` lists them in the order in which they are tried. May import `data/formats` and the
errors. A new engine is a module and a line in that list. Tests: tests/data/citations, a recorded
answer for each layout and damaged ones.
"""
