"""Results as the tables and figures of a paper: layouts are data over the results' own frames.

A `Layout` (layout.py) says which rows of a result's frames are cells (selection.py), where each stands, and how its
number is printed; tables.py is the one pivot, cells.py the one place that formats a cell. Layouts themselves stand
in the papers, or in other packages (``ranktilt.layouts``). May import the views; nothing below. Tests:
tests/reporting/layouts.
"""
