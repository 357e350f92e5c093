"""Audit a language model by its choices between two documents, with intervals and tests.

A model is shown pairs of a document of the *protected* group, whose treatment is examined, and one
of all others. The choices are counted for each *kind* of pairs: both documents are relevant to the
query, or neither. The *preference* is the share of the decisions for the protected document. A
protected document's *half lead* is half its choices minus half those of the other one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from ranktilt._version import __version__
from ranktilt.auditing.effects import FEW_QUERIES, FEWEST
from ranktilt.auditing.notes import variation_notes
from ranktilt.auditing.pairwise.ask import ask_pairs
from ranktilt.auditing.pairwise.decisions import (
    Counts,
    Decisions,
    count_arrays,
    count_choices,
    only_queries,
    pair_table,
    query_choices,
)
from ranktilt.auditing.pairwise.pairs import KINDS, Kind, draw_pairs, known_queries, two_groups
from ranktilt.auditing.pairwise.result import (
    EVEN,
    PairOutcome,
    PairTable,
    PairwiseAudit,
    PairwiseOptions,
    QueryChoices,
    Share,
)
from ranktilt.data.collection import Collection
from ranktilt.data.notes.base import Note, counts_of
from ranktilt.data.notes.pairwise import (
    ChoicesUnreadable,
    FewQueriesWithPairs,
    NothingDecided,
    PairsInOneOrder,
)
from ranktilt.data.notes.runs import AnswersRead
from ranktilt.data.runs.run import Run
from ranktilt.measures.ranking import Floats
from ranktilt.rankers.llm.pairwise import Pairwise
from ranktilt.statistics.bootstrap import RESAMPLES, resampled_means
from ranktilt.statistics.correction import correct
from ranktilt.statistics.inversion import Inference, infer
from ranktilt.statistics.permutation import sign_flip_p
from ranktilt.statistics.two_way import Dyads, sums


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
    totals = _total_choices(decisions, collection, options)
    spec = _pairwise_spec(
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
    return replace(result, notes=tuple(_choice_notes(result, decisions)))


def _pairwise_spec(
    decisions: Decisions,
    collection: Collection,
    options: PairwiseOptions,
    *,
    candidates: Run | None,
    query_count: int | None,
) -> dict[str, Any]:
    """Return the options and inputs behind a result.

    `candidates` is the run that pairs were drawn from, if any. `query_count` is the number of
    queries that were named; None if all count.
    """
    spec = {
        **{name: collection.spec[name] for name in ("path", "split") if name in collection.spec},
        "by": decisions.sides.by,
        "protected": decisions.sides.protected,
        **asdict(options),
        **decisions.spec,
    }
    if candidates is not None:
        spec["candidates"] = candidates.name
    if query_count is not None:
        spec["queries"] = query_count
    all_queries = set(decisions.frame["query"])
    training_count = len(all_queries & decisions.training_queries)
    if training_count:
        spec["trained_queries"] = f"{training_count:,} of {len(all_queries):,}"
    return spec | {"asked": _digest(decisions), "ranktilt": __version__}


def _digest(decisions: Decisions) -> str:
    """Return a hash of the pairs that the model was asked about, whatever their order."""
    pairs = (
        decisions.frame.select("query", "kind", "first", "second")
        .sort(pl.all())
        .write_csv(include_header=False)
    )
    return hashlib.blake2b(pairs.encode(errors="surrogatepass"), digest_size=16).hexdigest()


# ---- all kinds of pairs -------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _ChoiceTotals:
    """Choices in pairs of all kinds.

    The kind of a pair says whether both documents are relevant, or neither.
    """

    outcomes: tuple[PairOutcome, ...]
    """Outcome of each kind of pairs."""
    by_query: tuple[QueryChoices, ...]
    """Choices in each query, kind by kind."""
    by_pair: tuple[PairTable, ...]
    """Choices in each pair, for each kind."""


def _total_choices(
    decisions: Decisions, collection: Collection, options: PairwiseOptions
) -> _ChoiceTotals:
    """Count and test the choices of each kind of pairs; correct the p of all kinds together."""
    by_query: list[QueryChoices] = []
    by_pair: list[PairTable] = []
    outcomes: list[PairOutcome] = []
    for kind in KINDS:
        pairs = count_choices(decisions, collection, kind, options.count_rule)
        by_query += query_choices(kind, pairs)
        if len(pairs):
            by_pair.append(pair_table(kind, pairs))
            # The dyads are the query and both documents of each pair: pairs that share one of these
            # are not independent.
            counts, dyads = count_arrays(pairs)
            outcomes.append(
                estimate_outcome(
                    kind, counts, dyads, resamples=options.resamples, seed=options.seed
                )
            )
    return _ChoiceTotals(
        outcomes=_correct(outcomes, options.correction),
        by_query=tuple(by_query),
        by_pair=tuple(by_pair),
    )


def _correct(outcomes: Sequence[PairOutcome], correction: str) -> tuple[PairOutcome, ...]:
    """Correct the p of all kinds of pairs together.

    A corrected p is NaN if the effective number of queries or documents is below `FEWEST`.
    """
    ps = correct([pair_outcome.p for pair_outcome in outcomes], correction)
    tests = max(int((~np.isnan(ps)).sum()), 1)
    rows = []
    for pair_outcome, p in zip(outcomes, ps, strict=True):
        is_testable = pair_outcome.effective_n >= FEWEST
        p_corrected = float(p) if is_testable else np.nan
        rows.append(replace(pair_outcome, p_corrected=p_corrected, family_size=tests))
    return tuple(rows)


# ---- one kind of pairs --------------------------------------------------------------------------


def estimate_outcome(
    kind: Kind, counts: Counts, pairs: Dyads, *, resamples: int, seed: int
) -> PairOutcome:
    """Return counts as shares, with intervals over queries and documents, and test the preference.

    `pairs` has the query and both documents of each pair.
    """
    decided = counts.protected + counts.unprotected
    half_lead = (counts.protected - counts.unprotected) / 2
    columns = {**counts.by_name, "decided": decided, "half_lead": half_lead}
    by_query = {name: sums(pairs.query, column) for name, column in columns.items()}
    resampled = resampled_means(list(by_query.values()), resamples=resamples, seed=seed)
    shares = _Shares(columns=columns, means=dict(zip(columns, resampled, strict=True)), pairs=pairs)
    # The preference, protected / decided, equals one half plus Σ half lead / Σ decided. It is
    # computed from the half lead, because exchanged groups then give the exact negative. Shares of
    # the two groups would add up to 1 only up to rounding.
    lead = shares.estimate("half_lead", "decided", neutral=0.0)
    preference = Share(
        value=EVEN + lead.share.value, low=EVEN + lead.share.low, high=EVEN + lead.share.high
    )
    flip_p = np.nan
    if decided.any():
        flip_p = sign_flip_p(by_query["half_lead"], resamples=resamples, seed=seed)
    protected = shares.estimate("protected", "units").share
    unprotected = shares.estimate("unprotected", "units").share
    inconsistent = shares.estimate("inconsistent", "pairs").share
    unparsed = shares.estimate("unparsed", "units").share
    first = shares.estimate("first", "readable").share
    return PairOutcome(
        kind=kind,
        queries=len(by_query["pairs"]),
        pairs=int(counts.pairs.sum()),
        decided=int(decided.sum()),
        protected=protected,
        unprotected=unprotected,
        inconsistent=inconsistent,
        unparsed=unparsed,
        preference=preference,
        first=first,
        error=lead.inference.error,
        effective_n=lead.effective_n,
        p=lead.inference.p,
        checks={"sign flips": flip_p},
    )


@dataclass(frozen=True, kw_only=True)
class _EstimatedShare:
    """One count as a share of another count."""

    share: Share
    """The share with its interval."""
    inference: Inference
    """Interval, standard error and p."""
    effective_n: float
    """Effective number of queries or documents."""


@dataclass(frozen=True, kw_only=True)
class _Shares:
    """Counts of each pair, and their means over resampled queries."""

    columns: Mapping[str, Floats]
    """Counts of each pair, by name."""
    means: Mapping[str, Floats]
    """Means over resampled queries, by name."""
    pairs: Dyads
    """Queries and documents of the pairs."""

    def estimate(self, part: str, total: str, *, neutral: float = EVEN) -> _EstimatedShare:
        """Return the count `part` as a share of the count `total`; NaN if that is 0.

        Both are names of `columns`, and `neutral` is the share that the p is computed for.
        """
        weight = self.columns[total]
        if not weight.any():
            return _EstimatedShare(
                share=Share(value=np.nan, low=np.nan, high=np.nan),
                inference=Inference(low=np.nan, high=np.nan, error=np.nan, p=np.nan),
                effective_n=0.0,
            )
        value = float(self.columns[part].sum() / weight.sum())
        residual = (self.columns[part] - value * weight) / weight.sum()
        variance = self.pairs.variance(residual, weight / weight.sum())
        with np.errstate(invalid="ignore"):
            ratio = self.means[part] / self.means[total]
        # A share is between 0 and 1 with a neutral value of ½; a half lead is between −½ and ½ with
        # a neutral value of 0.
        bounds = (neutral - EVEN, neutral + EVEN)
        inference = infer(ratio, value, variance=variance, neutral=neutral, bounds=bounds)
        return _EstimatedShare(
            share=Share(value=value, low=inference.low, high=inference.high),
            inference=inference,
            effective_n=variance.effective_n,
        )


# ---- notes --------------------------------------------------------------------------------------


def _choice_notes(result: PairwiseAudit, decisions: Decisions) -> Iterator[Note]:
    """Yield all notes: on fixed choices, on how answers were read, and on few queries."""
    effects = [result.effect(outcome) for outcome in result.outcomes if outcome.decided]
    yield from variation_notes(effects)
    yield from decisions.notes
    yield from _answer_notes(decisions)
    yield from _few_query_notes(result.outcomes)


def _answer_notes(decisions: Decisions) -> Iterator[Note]:
    """Note the kinds of answers, and how many pairs have an answer in one order only."""
    numbers = decisions.frame["reading"].value_counts(sort=True)
    kinds = counts_of(dict(numbers.iter_rows()))
    unreadable = decisions.frame["choice"].null_count()
    answers = decisions.spec.get("llm_answers", {})
    yield AnswersRead(
        stage=decisions.model,
        kinds=kinds,
        tokens_read=answers.get("tokens_read"),
        tokens_written=answers.get("tokens_written"),
    )
    if unreadable:
        yield ChoicesUnreadable(
            answers=decisions.frame.height,
            unreadable=unreadable,
            kinds=kinds,
            first=answers.get("unreadable") or "",
        )
    # The two ids in one order, whichever document was shown first.
    pair = pl.concat_list(
        pl.min_horizontal("first", "second"), pl.max_horizontal("first", "second")
    )
    answer_counts = decisions.frame.group_by("query", pair.alias("pair")).len()
    in_one_order = answer_counts.filter(pl.col("len") == 1).height
    if in_one_order:
        yield PairsInOneOrder(pairs=in_one_order)


def _few_query_notes(outcomes: Sequence[PairOutcome]) -> Iterator[Note]:
    """Note kinds of pairs with few queries, or without a decision."""
    for outcome in outcomes:
        kind = outcome.kind
        if outcome.queries < FEW_QUERIES:
            yield FewQueriesWithPairs(queries=outcome.queries, pairs=kind)
        if not outcome.decided:
            yield NothingDecided(pairs=kind)
