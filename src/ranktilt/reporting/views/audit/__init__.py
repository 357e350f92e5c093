"""Pages of audits.

Start in `audit`, which makes the page from the `sections`. A section takes its tables from `tables`
and `check_tables` (other tests, repeats, errors of labels) and its figures from `figures`; `ranks`
and `query_groups` are sections with tables and figures of their own. `source_audits` is the page of
several sources, `sequential` that of an audit that stops by itself.

Imports results, sentences and blocks of `ranktilt.reporting`; it computes nothing. A new section is
a function in `sections`, called in `audit_sections`. Tests: tests/reporting/test_audit_page.py.
"""
