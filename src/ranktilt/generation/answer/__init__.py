"""Documents that a language model writes from queries.

Start in `answer.answer`: it asks the model for documents, and makes a collection of them; `save`
writes the folder with its data card. Words that these files use are explained in
`ranktilt.generation`, as is what they may import.

A new column of documents is added in `answer`, and described in the data card (`save.datacard`).
Tests: tests/generation.
"""
