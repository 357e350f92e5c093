"""Rankers make a run from a collection; each family has a folder or a file.

Start in `base` (`Ranker`, `Pipeline`) and `candidates` (the input of a re-ranker). `lexical` has
BM25 and TF-IDF, `dense` and `sparse` search vectors, `rerank` has cross-encoders and monoT5, `llm`
language models, `engines` live search engines, and `replay` saved runs. A ranker is a frozen
dataclass whose ``repr`` is the text that you type for it.

May import llm, models, measures and data. To add a ranker, write a class and name it in
`ranktilt.registry`, or in an entry point. Tests: tests/rankers; tests/rankers/test_contract.py
checks that all rankers keep the same rules.
"""
