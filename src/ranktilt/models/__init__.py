"""Find, check and load model checkpoints, and run them in batches.

Start in `catalogue` (models by a short name) and `checkpoint` (what a folder must hold). `encoder`
turns texts into vectors, `scorer` scores pairs of query and document, `likelihood` computes the
perplexity of texts; all three compute through `batching`, which keeps each result. `token_counts`
reads a tokenizer without its model, `loaded` serves models that are in memory already, and `device`
chooses what computes.

Words of this room, which its files use without explaining them again:

- folder: a model as its files, which the hub's cache or the user holds; nothing else is loaded
- fingerprint: a hash of a model's files and of the options that its results depend on. It names the
  cache's folder, so that results of another model or option are never read
- precision: the arithmetic of the model, float32 unless a lower one is asked for
- special tokens: those that a tokenizer puts around a text, such as its start and its end

Nothing here knows about ranking. May import data and parallel. To add a model of a paper, add a
record to the catalogue. Tests: tests/models.
"""
