"""Corrections of a ranker at inference, and the bench that shows what each costs.

Start with `mitigate.mitigate`. Its steps are in `levelling`: it tests the ranker (`baseline`) over
all queries, fits the methods on some (`query_split`, `methods`), chooses their strengths on others
(`selection`), and compares the candidates on the rest (`bench.compare_candidates`: it has them
audited by `audited_candidates`, takes `bench_effects`, and makes a `bench_result.Bench`).
`offset`, `interleave`, `fair_rerank`, `causal` and `projection` hold a correction each, which is a
ranker too, and its `method.Method`; what corrections share is in `base`. `movement` counts how far
lists move, `remedy` holds a correction as data, and `apply` corrects a run, or saves a ranker, as a
bench chose. `retriever_sweep` puts trained models on the bench. May import training, explaining,
auditing and below. A new method is a file here, with the `Rule` that its remedy prints, and a line
in `methods.METHODS`. Sentences: `reporting/sentences/mitigate.py` and `remedy.py`. Tests:
tests/mitigation.
"""
