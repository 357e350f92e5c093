"""Explanations in words.

`probes` says what a probe of texts measured, and what follows from an attribution of gaps and from
Dai's theorem; start there for ``explain`` and ``check``. `properties` says what goes with a gap
between groups, and `factors` what a designed change does. `text_words` and `treatments` name
properties and changes; `next_steps` says what to do.

Imports the results of `ranktilt.explaining`, never what computes them. A new treatment or property
gets its words in `treatments` or `text_words`. Tests: tests/explaining, tests/reporting.
"""
