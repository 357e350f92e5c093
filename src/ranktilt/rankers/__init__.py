"""Rankers make a run from a collection; each family has a folder or a file.

Start in `base` (`Ranker`, `Pipeline`) and `candidates` (the input of a re-ranker). `lexical` has
BM25 and TF-IDF, `dense` and `sparse` search vectors, `rerank` has cross-encoders and monoT5, `llm`
language models, `engines` live search engines, and `replay` saved runs. A ranker is a frozen
dataclass whose ``repr`` is the text that you type for it.

Words of this room, which its files use without explaining them again:

- collection: documents, queries and judgments; a *judged query* is one that has judgments
- run: for each query, documents with scores, best first. A *first stage* makes a run by searching
  the whole collection; a *re-ranker* orders the documents of an earlier run anew, its *candidates*
- pipeline: rankers in a row, each a *stage*; typed ``bm25@100>>cross-encoder:MODEL``
- depth, or k: how many documents of each query a run keeps. To *cut* a list is to keep its best k
- tie key: a hash of the origin of a document, the text that its versions were made from. It orders
  documents of equal score, so that neither source nor id decides
- row: the position of a document in the collection's table; code is arrays of rows
- spec: what made a run, as data that its file keeps: ranker, model, options, counts

May import llm, models, measures and data. To add a ranker, write a class and name it in
`ranktilt.registry`, or in an entry point. Tests: tests/rankers; tests/rankers/test_contract.py
checks that all rankers keep the same rules.
"""
