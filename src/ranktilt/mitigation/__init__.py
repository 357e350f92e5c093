"""Corrections of a ranker at inference, and the bench that shows what each costs.

A *tilt* is how far a ranker favours one group of documents over another, in percent. It is *level*
if the tilt is within the *margin*. A *correction* changes rankings so that the tilt shrinks. Its
*strength* says how much of it is applied, from 0 (nothing) to 1 (all). A *method* is a way to make
a correction, and a *candidate* is one method at one strength. The *baseline* is the ranker without
any correction.

Start with `mitigate.mitigate`, which reads its arguments. Its steps are in `levelling`: it tests
the baseline over all queries (`baseline`), fits the methods on some (`query_split`, `methods`),
chooses their strengths on others, and compares the candidates on the rest
(`bench.compare_candidates`: it has them audited by `audited_candidates`, and makes a
`bench_result.Bench`).

- `offset`, `interleave`, `fair_rerank`, `causal`, `projection`: a correction each, which is a
  ranker too, and its `method.Method`; what corrections share is in `base`
- `bench_result`: the budget, which is the largest cost of a candidate: lost effectiveness, or
  without judgments moved documents (`movement`); and the choice by it (`Choice`)
- `remedy`: a correction as data; `apply`: corrects a run, or saves a ranker, as a bench chose
- `retriever_sweep`: puts trained models on the bench

May import training, explaining, auditing and below. A new method is a file here, with the `Rule`
that its remedy prints, and a line in `methods.METHODS`. Sentences:
`reporting/sentences/mitigation/mitigate.py` and `remedy.py`. Tests: tests/mitigation.
"""
