"""The figures of pages, notebooks and papers, as Vega-Lite specifications.

Start in `charts`, which has a function for each kind of chart, from plain arrays; `drawing` has the
parts that they share. Views call `charts`; a page draws the specification in the browser, and
`layouts/figures` makes files of it for print. The chart of a page's first screen needs no scripts
and is in `ranktilt.reporting.interval_chart`. Tests: tests/reporting.
"""
