"""Audit a language model by its choices between two documents, with intervals and tests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ranktilt.auditing.pairwise.ask import ask_pairs
from ranktilt.auditing.pairwise.decisions import Decisions, only_queries
from ranktilt.auditing.pairwise.notes import choice_notes
from ranktilt.auditing.pairwise.options import PairwiseOptions
from ranktilt.auditing.pairwise.pairs import draw_pairs, known_queries, two_groups
from ranktilt.auditing.pairwise.provenance import pairwise_spec
from ranktilt.auditing.pairwise.result import PairwiseAudit
from ranktilt.auditing.pairwise.totals import total_choices
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run
from ranktilt.rankers.llm.pairwise import Pairwise
from ranktilt.statistics.bootstrap import RESAMPLES


def pairwise(
    collection: Collection,
    choices: Pairwise | Decisions,
    *,
    by: str = "source",
    protected: str | None = None,
    pairs: int = 20,
    candidates: Run | None = None,
    queries: Iterable[str] | None = None,
    count_rule: str = "both-agree",
    margin: float = 5.0,
    correction: str = "holm",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> PairwiseAudit:
    """Ask a model whether a protected or an unprotected document is more relevant, in both orders.

    This is the test of Wang et al., NAACL 2024, sec. 3.2 and table 3. Two rules are not in the
    paper: both orders must agree, and a query has 20 pairs.

    Parameters
    ----------
    collection : Collection
        Queries, and documents with a column of groups.
    choices : Pairwise or Decisions
        The model to ask, such as ``ranker("pairwise:openai:MODEL(prompt=pairwise-neutral)")`` (its
        method and top do not matter), or earlier choices from `ask_pairs` or `read_decisions`.
    by, protected : str
        Column of the groups, and name of the protected group: by default the smaller of two. The
        documents of all other groups are unprotected.
    pairs : int, optional
        Number of pairs to draw for each query: so many of two relevant documents, and as many of
        two documents that are not relevant.
    candidates : Run, optional
        Documents from which a query's pairs are drawn; all by default.
    queries : iterable of str, optional
        Ids of the queries that count, such as those that an adapter did not learn from; all by
        default.
    count_rule : {"both-agree", "each"}, optional
        Count a pair if the answers in both orders agree, or each answer separately.
    margin : float, optional
        Largest distance from 50 % that counts as level, in points.
    correction : {"holm", "bonferroni"}, optional
        Correction of the p-values of both kinds of pairs.
    resamples, seed : int, optional
        Number of bootstrap resamples; random seed of these and of the pairs.
    """
    options = PairwiseOptions(
        count_rule=count_rule,
        margin=margin,
        correction=correction,
        resamples=resamples,
        seed=seed,
    )
    options.check()
    query_ids = None if queries is None else known_queries(collection, queries)
    if isinstance(choices, Decisions):
        decisions = choices
    else:
        drawn = draw_pairs(
            collection,
            two_groups(collection, by, protected),
            pairs=pairs,
            seed=seed,
            candidates=candidates,
            queries=query_ids,
        )
        decisions = ask_pairs(collection, drawn, choices)
    if query_ids is not None:
        decisions = only_queries(decisions, query_ids)
    totals = total_choices(decisions, collection, options)
    spec = pairwise_spec(
        decisions,
        collection,
        options,
        candidates=candidates,
        query_count=None if query_ids is None else len(query_ids),
    )
    result = PairwiseAudit(
        spec=spec,
        model=decisions.model,
        protected=decisions.sides.protected,
        unprotected=decisions.sides.unprotected,
        outcomes=totals.outcomes,
        by_query=totals.by_query,
        by_pair=totals.by_pair,
    )
    return replace(result, notes=tuple(choice_notes(result, decisions)))
