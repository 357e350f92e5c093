"""Find, check and load model checkpoints, and run them in batches.

Start in `catalogue` (models by a short name) and `checkpoint` (what a folder must hold). `encoder`
turns texts into vectors, `scorer` scores pairs of query and document, `likelihood` computes the
perplexity of texts; all three compute through `batching`, which keeps each result. `token_counts`
reads a tokenizer without its model, `loaded` serves models that are in memory already, and `device`
chooses what computes.

Nothing here knows about ranking. May import data and parallel. To add a model of a paper, add a
record to the catalogue. Tests: tests/models.
"""
