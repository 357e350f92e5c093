"""Rewrites of documents by a language model.

Start in `rewrite.rewrite`: it asks the model and unites the rewrites with the collection. Before
that, `prepare` chooses the documents and names their new sources; afterwards `save` writes the
folder with its data card. Words that these files use are explained in `ranktilt.generation`, as is
what they may import.

A new column of rewrites is named in `rewrite`, and described in the data card (`save.datacard`).
Tests: tests/generation/rewrite.
"""
