"""Regression: least squares over rows that share queries and documents.

`least_squares` fits a model and clusters its errors two ways, `fixed_effects` compares rows within
groups only, and `gelbach` splits a gap between two sides into the parts of several properties. May
import the other files of `statistics`. Tests: tests/statistics/regression,
tests/statistics/test_two_way.py, tests/explaining.
"""
