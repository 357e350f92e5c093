"""Re-rankers: models that read query and document together.

Start in `base.ReRanker`, which scores the candidates of a run by the model of a subclass:
`cross_encoder` (classifiers, also monoBERT) or `monot5`. The models themselves are `PairScorer`s
(`ranktilt.models.scorer`).

May import data, models and the other rankers. A new re-ranker is a subclass of `ReRanker` with
`scorer_of`, named in `ranktilt.registry`. Tests: tests/rankers.
"""
