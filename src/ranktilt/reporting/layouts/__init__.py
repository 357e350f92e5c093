"""Results as the tables and figures of a paper: layouts are data over the results' own frames.

A `Layout` (layout.py) says which rows of a result's frames are cells (selection.py), which keys
give the position of each (its row, column and panel), and how its number is printed. tables.py
makes a paper's tables, pivot.py lays cells out by their keys, cells.py reads and formats cells,
texts.py chooses texts, figures.py draws for print. Layouts themselves are in the papers, or in
other packages, which name them in the entry points ``ranktilt.layouts``. May
import the views; nothing below. Tests: tests/reporting/layouts.
"""
