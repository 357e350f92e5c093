"""Renderers: each turns a document into one format, and knows no result."""
