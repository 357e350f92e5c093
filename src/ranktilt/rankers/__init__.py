"""Rankers: a run from a collection, one family a folder or file.

Start in `base` (`Ranker`, `Pipeline`) and `candidates` (what a re-ranker gets); `lexical` is BM25
and TF-IDF, `dense` and `sparse` vectors, `rerank` cross-encoders, `llm` language models, `engines`
live ones, `replay` saved runs. A ranker is a frozen dataclass whose ``repr`` is what one types. May
import llm, models, measures and data. A new one is a class and a line in `ranktilt.registry`, or an
entry point. Tests: tests/rankers; tests/rankers/test_contract.py holds all to the same rules.
"""
