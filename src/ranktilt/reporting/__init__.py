"""Audits as tables, pages and figures."""
