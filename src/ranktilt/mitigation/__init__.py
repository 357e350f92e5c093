"""Corrections of a ranker at inference, and the bench that shows what each costs.

Start with `mitigate.mitigate`: `query_split` makes three sets of queries, `methods` fits each
correction, and `bench.bench` compares them with the unchanged ranker (`bench_result.Bench`).
`offset`, `interleave`, `fair_rerank`, `causal` and `projection` are the corrections, each a ranker
too; `retriever_sweep` puts trained models on the bench. May import training, explaining, auditing
and below. A new method is a file here and a line in `methods.METHODS`. Tests: tests/mitigation.
"""
