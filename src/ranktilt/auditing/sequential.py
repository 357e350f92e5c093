"""Sequential audit of a live engine: ask query after query until a tilt is decided.

A *tilt* is how much more of the first ranks a group holds than of all results (Share@k). A *look*
is the interval after a batch of queries. An ordinary 95 % interval misses the true value more often
if one looks at it again and again, and stops when it pleases. So these intervals are *confidence
sequences*: all looks together hold the mean with a probability of 95 %. Twins are two versions of
one document, of which each of two groups has one; their *origin* is that document.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.grouping.pairs import grouped_pairs, twin_rows
from ranktilt.auditing.groups import Pair
from ranktilt.auditing.list_variation import fixed_lists
from ranktilt.auditing.null_distributions.twins import all_paired, signs_of
from ranktilt.auditing.storage.provenance import audit_provenance
from ranktilt.data.artifact import Result
from ranktilt.data.collection import Collection
from ranktilt.data.labels.label_remarks import warn_of_labels
from ranktilt.data.runs.run import Run, collection_rows
from ranktilt.errors import DataWarning, UserError, counted, list_names
from ranktilt.field_checks import is_number, printed, require_seed, require_whole_number
from ranktilt.measures.base import Estimand, estimand
from ranktilt.measures.ranking import Ranking, probability_within
from ranktilt.measures.share import ShareOfFirstRanks
from ranktilt.progress import report
from ranktilt.rankers.base import Ranker
from ranktilt.statistics.confidence_sequence import (
    CONFIDENCE,
    ConfidenceSequence,
    NewDocumentSequence,
)
from ranktilt.statistics.variation import Variation

Ints = npt.NDArray[np.int64]
Signs = npt.NDArray[np.int8]
"""1 for documents of the first group, −1 for those of the second, 0 for all others."""
USUAL = "Share@10"
"""Default question; it needs no judgments."""
BATCH = 16
"""Number of queries to send before the next look."""
Decision = Literal["level", "tilted", "inconclusive"]
"""Outcome of a sequential audit, which stops at ``level`` or ``tilted``."""


class Look(NamedTuple):
    """The state of a sequential audit after some queries, in the unit of the estimand."""

    queries: int
    """Number of queries so far whose list holds both groups."""
    documents: int
    """Number of documents whose labels were used so far, each counted once; of origins for twins.
    """
    value: float
    """Mean over these queries."""
    low: float
    """Lower end of the interval that decides.

    It covers the intervals of two confidence sequences: over queries, and over documents that no
    earlier query had returned. Queries that return the same documents again are new queries, but no
    new evidence about these documents.
    """
    high: float
    """Upper end of the interval that decides."""
    query_low: float
    """Lower end of the interval over queries alone."""
    query_high: float
    """Upper end of the interval over queries alone."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SequentialAudit(
    Result,
    format="ranktilt-sequential-audit",
    version=1,
    noun="a sequential audit",
    command="ranktilt audit --stop-at-tilt",
):
    """The result of `sequential_audit`; immutable."""

    spec: Mapping[str, Any]
    """How it was made: ranker, seed, confidence, collection, versions."""
    run: str
    """Name of the run."""
    measure: str
    """Notation of the question."""
    a: str
    """First group, which positive values favour."""
    b: str
    """Second group."""
    stop_at_tilt: float
    """Tilt to decide, in the printed unit of the measure (points)."""
    sent: int
    """Number of queries that were sent."""
    answered: int
    """Number of queries that the engine answered."""
    of: int
    """Number of queries that could be sent."""
    twins: bool
    """Whether every document of either group has a twin; if so, origins are counted."""
    looks: tuple[Look, ...]
    """State after each batch of queries."""
    variation: Variation
    """How many of the lists could have come out differently."""

    @property
    def estimand(self) -> Estimand:
        """The question that was asked."""
        return estimand(self.measure)

    @property
    def decision(self) -> Decision:
        """``tilted`` if the interval excludes 0, ``level`` if it excludes a tilt of `stop_at_tilt`.

        Else ``inconclusive``.
        """
        half_width = self.stop_at_tilt / self.estimand.scale
        return decision_after(self.looks[-1], half_width, self.variation)


def sequential_audit(
    collection: Collection,
    ranker: Ranker,
    stop_at_tilt: float,
    measure: str | Estimand = USUAL,
    *,
    by: str = "source",
    pair: Pair | None = None,
    max_queries: int | None = None,
    seed: int = 0,
) -> SequentialAudit:
    """Ask a ranker query after query until its tilt is decided.

    The order of the queries is random. The audit ends when the ranker is shown to favour a group,
    or not to favour one by `stop_at_tilt`. You may look after every batch because the interval is a
    confidence sequence (Waudby-Smith and Ramdas, JRSS B 2024): it includes the mean at all looks
    with a probability of 95 %. The mean covers all queries from which these are a sample. A second
    sequence bounds what documents add when their labels are first used, so that queries that return
    the same documents decide nothing.

    Parameters
    ----------
    collection : Collection
        Queries, and documents with their groups; texts where the ranker reads them.
    ranker : Ranker
        Usually a live engine.
    stop_at_tilt : float
        The tilt to decide, in points, above 0. The audit ends when it excludes 0, or a tilt of this
        size.
    measure : str or Estimand, optional
        ``Share@k``: a group's share of the first k ranks minus its share of the candidates.
    by : str, optional
        Document column of the groups.
    pair : (str, str), optional
        The groups; needed if there are more than two. Positive values favour the first.
    max_queries : int, optional
        Maximum number of queries; all by default.
    seed : int, optional
        Random seed of the order.
    """
    question = _read_share(measure)
    _refuse_options(stop_at_tilt, max_queries, by)
    require_seed(seed)
    groups, pairs = grouped_pairs(collection, by, None if pair is None else [pair])
    warn_of_labels(groups.remarks)
    if len(pairs) != 1:
        raise UserError(
            f"{by} makes {len(groups.names)} groups ({list_names(groups.names)}); name two: "
            "--pair A,B"
        )
    a, b = pairs[0]
    queries = collection.queries_with_judgments["id"].to_numpy()
    if not len(queries):
        raise UserError("no query to ask: name a file of queries, or a collection that has some")
    order = np.random.default_rng(seed).permutation(len(queries))[:max_queries]
    signs, twins = signs_of(groups, (a, b)), twin_rows(collection, groups, (a, b))
    over_queries = ConfidenceSequence(*question.bounds)
    over_documents = NewDocumentSequence(
        signs, collection.origin_codes(), question.cutoff or 1, twins=all_paired(signs, twins)
    )
    looks: list[Look] = []
    sent, answered = 0, 0
    variation = Variation(total=0, fixed={})
    for run in _batches(collection, ranker, queries[order].tolist()):
        sent, answered = min(sent + BATCH, len(order)), answered + len(run.queries)
        rows = collection_rows(run, collection)[run.docs]
        variation += _add_batch(
            run, rows, signs, question, sequences=(over_queries, over_documents)
        )
        looks.append(_look(over_queries, over_documents))
        report(f"asking {run.name}", sent, len(order))
        if decision_after(looks[-1], stop_at_tilt / question.scale, variation) != "inconclusive":
            break
    if not over_queries.count:
        raise UserError(
            f"{question!r} is undefined: no list of {counted(sent, 'query', 'queries')} holds both "
            "groups"
        )
    spec = {"by": by, "seed": seed, "confidence": CONFIDENCE, "max_queries": len(order)}
    spec |= audit_provenance(collection, [run.spec])
    return SequentialAudit(
        spec=spec,
        run=run.name,
        measure=repr(question),
        a=a,
        b=b,
        stop_at_tilt=stop_at_tilt,
        sent=sent,
        answered=answered,
        of=len(queries),
        twins=over_documents.twins,
        looks=tuple(looks),
        variation=variation,
    )


def _refuse_options(stop_at_tilt: float, max_queries: int | None, by: str) -> None:
    """Refuse options that are out of range."""
    if not is_number(stop_at_tilt) or stop_at_tilt <= 0:
        raise UserError(
            f"expected a tilt above 0, such as 10 (points), got {printed(stop_at_tilt)}"
        )
    if max_queries is not None:
        require_whole_number(max_queries, "at least 1 query to ask", least=1)
    if not by:
        raise UserError("a sequential audit needs a column of groups (by)")


def _look(over_queries: ConfidenceSequence, over_documents: NewDocumentSequence) -> Look:
    """Return the state after a batch; the interval that decides covers both sequences."""
    document_low, document_high = over_documents.interval()
    return Look(
        queries=over_queries.count,
        documents=over_documents.count,
        value=over_queries.mean,
        low=min(over_queries.low, document_low),
        high=max(over_queries.high, document_high),
        query_low=over_queries.low,
        query_high=over_queries.high,
    )


def decision_after(look: Look, half_width: float, variation: Variation) -> Decision:
    """Return the decision after a look.

    A tilt of less than `half_width` is level; it is in the estimand's unit, like the look.
    """
    if look.low > 0 or look.high < 0:
        return "tilted"
    is_within = -half_width <= look.low and look.high <= half_width
    return "level" if is_within and variation.enough else "inconclusive"


def _read_share(measure: str | Estimand) -> ShareOfFirstRanks:
    """Read the question; refuse any but Share@k."""
    question = estimand(measure)
    if not isinstance(question, ShareOfFirstRanks):
        raise UserError(
            f"{question!r} cannot be estimated query by query; use Share@k, such as {USUAL}"
        )
    return question


def _batches(collection: Collection, ranker: Ranker, names: Sequence[str]) -> Iterator[Run]:
    """Rank the queries batch by batch; `names` are their ids."""
    for start in range(0, len(names), BATCH):
        with warnings.catch_warnings():
            is_first = start == 0
            if not is_first:  # each batch would give the same warnings again
                warnings.simplefilter("ignore", DataWarning)
            yield ranker.rank(collection.only_queries(names[start : start + BATCH]))


def _add_batch(
    run: Run,
    rows: Ints,
    signs: Signs,
    question: ShareOfFirstRanks,
    *,
    sequences: tuple[ConfidenceSequence, NewDocumentSequence],
) -> Variation:
    """Add a batch of lists to both sequences; return how many of them could have varied.

    `rows` has the row of each entry's document, −1 for a document that the collection lacks, and
    `signs` the group of each document.
    """
    over_queries, over_documents = sequences
    ranking, sign = Ranking(run.offsets, run.scores), np.where(rows >= 0, signs[rows], 0)
    values = question.contrast(ranking, sign > 0, sign < 0)
    for value in values[~np.isnan(values)].tolist():
        over_queries.add(value)
    rank_shares = probability_within(ranking, question.cutoff)
    for start, stop in pairwise(run.offsets.tolist()):
        labelled_entries = np.flatnonzero(sign[start:stop]) + start
        over_documents.add(rows[labelled_entries], rank_shares[labelled_entries])
    is_labelled = sign != 0
    return fixed_lists(
        ~np.isnan(values),
        ranking.offsets,
        ranking.query[is_labelled],
        run.scores[is_labelled],
        estimand=question,
    )
