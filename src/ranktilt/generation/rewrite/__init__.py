"""Rewrites of documents by a language model.

Start in `rewrite`. `prepare` chooses documents and checks names, `save` writes the folder and
`datacard` its description. Tests: tests/generation/rewrite.
"""
