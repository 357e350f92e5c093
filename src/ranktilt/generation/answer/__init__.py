"""Documents that a language model writes from queries.

Start in `answer`; `save` writes the folder with its data card. Tests: tests/generation.
"""
