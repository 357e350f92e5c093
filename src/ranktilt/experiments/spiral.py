"""The spiral: rewrites enter a collection round by round, and each round's first pages are counted anew."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.audit import audit_provenance
from ranktilt.auditing.effects import FEW_QUERIES, Effect
from ranktilt.auditing.groups import Pair, grouping
from ranktilt.auditing.judged_rankings import Aligned, Judgments, group_values
from ranktilt.auditing.options import check_resamples
from ranktilt.auditing.significance import ChangeTask, Columns, corrected, mean_changes
from ranktilt.collection import Collection
from ranktilt.errors import UserError, counted, refuse_twice, unknown
from ranktilt.experiments.spiral_result import QueryMean, Spiral, SpiralRound
from ranktilt.experiments.tradeoff import EFFECTIVENESS
from ranktilt.measures.base import Estimand, measure
from ranktilt.measures.ranking import first_ranks
from ranktilt.measures.share import Share
from ranktilt.mitigation.base import Correction
from ranktilt.progress import report
from ranktilt.rankers.base import Pipeline, Ranker, stages_of
from ranktilt.rankers.candidates import FITTED, check_reranked
from ranktilt.rankers.engines.base import LiveEngine
from ranktilt.rankers.replay import Replay
from ranktilt.run import Run, codes, stage_facts
from ranktilt.statistics.bootstrap import RESAMPLES, in_all, interval, resampled_means
from ranktilt.statistics.permutation import sign_flip_ps

ENTRY_RULES = ("retrieved", "random")
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def spiral(
    collection: Collection,
    rankers: Sequence[Ranker],
    *,
    rounds: int = 5,
    page: int = 10,
    entry_rule: str = "retrieved",
    share: float | None = None,
    reference: str = "human",
    source: str | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Spiral:
    """Let rewrites enter the collection round by round, rank it anew, and follow what is left of the page.

    Nothing is generated: the rewrites are those that the collection holds. Round 0 is the reference alone; corrections
    by source, which have nothing to do there, are left out of it. The same rounds are ranked in the other direction,
    rewrites being there first: a ranker that does not care who wrote a text leaves as much of the page to either.

    Parameters
    ----------
    collection : Collection
        The reference and rewrites of it, of the same origins.
    rankers : sequence of Ranker
        Each meets a collection of its own that grows by what it shows, or, at random, all the same one.
    rounds : int, optional
        How often rewrites enter.
    page : int, optional
        Ranks that are looked at.
    entry_rule : {"retrieved", "random"}, optional
        Which rewrites enter: those of documents on the pages of the round before, the most shown first; or drawn ones.
    share : float, optional
        Most of the origins, above 0 to 1, whose rewrites enter in one round; by default 1/rounds, so that at random
        all have entered at the end.
    reference : str, optional
        The source whose share of the page is followed.
    source : str, optional
        The rewrites that enter; by default those of the only other source.
    resamples, seed : int, optional
        Of bootstrap and sign flips; the seed also of what enters at random.

    Returns
    -------
    Spiral
        The share of the page of every round and ranker with its interval, in both directions, effectiveness, and what
        differs from the first ranker in the last round.

    Raises
    ------
    UserError
        If there are no rewrites, queries or rankers, one cannot rank a collection that grows, or an option is out of
        range.

    References
    ----------
    Chen et al., Spiral of Silence, ACL 2024; Dai et al., KDD 2024.
    """
    _check_rankers(rankers)
    for name, number in (("rounds", rounds), ("page", page)):
        if number < 1:
            raise UserError(f"expected {name} of at least 1, got {number}")
    if share is not None and not 0 < share <= 1:
        raise UserError(f"expected a share of the origins a round above 0 and at most 1, got {share:g}")
    if entry_rule not in ENTRY_RULES:
        raise unknown("entry rule", entry_rule, ENTRY_RULES)
    check_resamples(resamples)
    growth = Growth.of(collection, reference, source)
    entering = Entering(rounds, share or 1 / rounds, entry_rule == "random", seed)
    pages, turned = (_rounds(one, rankers, entering, page) for one in (growth, growth.mirrored))
    options = {"rounds": rounds, "page": page, "entry_rule": entry_rule, "share": entering.share}
    options |= {"reference": reference, "source": growth.source, "effectiveness": EFFECTIVENESS}
    return _spiral(pages, turned, growth, {**options, "correction": "holm", "resamples": resamples, "seed": seed})


def _check_rankers(rankers: Sequence[Ranker]) -> None:
    if not rankers:
        raise UserError("a spiral needs at least one ranker, such as bm25 (-r bm25)")
    refuse_twice([repr(one) for one in rankers], "ranker")
    for one in rankers:
        first = stages_of(one)[0]
        if isinstance(first, LiveEngine | Replay):
            raise UserError(
                f"{one!r}: a saved run or an engine cannot rank a collection that grows; name a ranker such as bm25"
            )
        one.check()


def _rounds(growth: Growth, rankers: Sequence[Ranker], entering: Entering, page: int) -> list[_FirstPages]:
    """Rank round by round; the pages of every ranker in turn."""
    found, steps = list[_FirstPages](), (entering.rounds + 1) * len(rankers)
    label = "ranking rounds" if growth.collection.qrels.height else "ranking rounds, rewrites first"
    entered = [np.zeros(len(growth.keys), dtype=np.bool_) for _ in rankers]
    for number in range(entering.rounds + 1):
        known = dict[bytes, Collection]()
        for place, ranker in enumerate(rankers):
            report(label, len(found), steps)
            if number:
                shown = found[len(found) - len(rankers)].origin_counts
                entered[place] = entering.next(number, entered[place], shown, growth.keys)
            rows, key = growth.rows(entered[place]), entered[place].tobytes()
            if key not in known:
                known[key] = growth.grown(rows)
            of = ranker if number else _uncorrected(ranker)
            run = check_reranked(of.rank(known[key]), None, of)
            run = replace(run, spec={**run.spec, "ranker": repr(ranker)})
            found.append(_FirstPages.of(run, known[key], rows, growth, page))
    report(label, steps, steps)
    return found


def _uncorrected(ranker: Ranker) -> Ranker:
    """Return a ranker without corrections by source."""
    kept = [one for one in stages_of(ranker) if not (isinstance(one, Correction) and one.by == "source")]
    return ranker if not kept else kept[0] if len(kept) == 1 else Pipeline(tuple(kept))


@dataclass(frozen=True)
class _FirstPages:
    """What is counted query by query on the first pages of one ranker in one round; the lists themselves are let go."""

    spec: Mapping[str, Any]
    queries: tuple[str, ...]
    distinct: Ints | None
    """The query that each query repeats."""
    documents: int
    entered: int
    """Of the documents, those that were not there first."""
    share: Floats
    """Share of the page of what was there first."""
    effectiveness: Floats
    origin_counts: Floats
    """How often documents of each origin stand on a page."""

    @classmethod
    def of(cls, run: Run, collection: Collection, rows: Bools, growth: Growth, page: int) -> _FirstPages:
        """Count a run's first pages; `rows` are the documents of the growth that are there."""
        groups = grouping(collection, None)
        judgments = Judgments.of(collection, groups)
        aligned = Aligned.of(run, collection, judgments)
        query, count = aligned.ranking.query, len(judgments.queries)
        entries = np.where(aligned.row < len(collection.ids), aligned.row, -1)
        within = np.where(entries >= 0, first_ranks(aligned.ranking, page), 0.0)
        first = np.append(growth.first[rows], False)[entries]
        held, total = (np.bincount(query, weights=one, minlength=count) for one in (within * first, within))
        share = np.divide(held, total, out=np.full(count, np.nan), where=total > 0)
        values = group_values(aligned, [measure(EFFECTIVENESS)], groups, "expected")[0, 0]
        number = np.append(growth.number[rows], -1)[entries]
        known = number >= 0
        shown = np.bincount(number[known], weights=within[known], minlength=len(growth.keys)).astype(np.float64)
        entered = int((~growth.first[rows]).sum())
        return cls(run.spec, judgments.queries, aligned.distinct, len(rows[rows]), entered, share, values, shown)


class _Resampled:
    """Means over the queries for which all of several columns are defined, with their resamples."""

    def __init__(self, values: Floats, distinct: Ints | None, *, resamples: int, seed: int) -> None:
        self.columns, self._how = Columns(values, distinct), {"resamples": resamples, "seed": seed}
        self._means = self.columns.means.tolist()
        *sums, sizes = resampled_means([*self.columns.sums, self.columns.sizes], **self._how)
        self._samples = [one / sizes for one in sums]

    def mean(self, column: int) -> QueryMean:
        spread = interval(self._samples[column])
        return QueryMean(self._means[column] + 0.0, spread.low + 0.0, spread.high + 0.0)

    def effect(self, column: int, run: str, of: Estimand, pair: Pair) -> Effect:
        """Return the mean of a column, which 0 favours nobody in, with a test by sign flips."""
        spread, sums = interval(self._samples[column]), self.columns.sums[column]
        p = sign_flip_ps([sums], **self._how)[0]
        queries, votes = self.columns.queries, float(np.count_nonzero(sums))
        return Effect(
            run, of, *pair, self._means[column] + 0.0, spread.low, spread.high, spread.error, p, np.nan, queries,
            votes=votes,
        )  # fmt: skip


def _spiral(
    pages: Sequence[_FirstPages], turned: Sequence[_FirstPages], growth: Growth, options: dict[str, Any]
) -> Spiral:
    """Put intervals around what was counted; pages are those of every ranker, round by round, in both directions."""
    last, width = options["rounds"], len(pages) // (options["rounds"] + 1)
    distinct, fitted = in_all([one.distinct for one in pages]), _fitted(pages)
    how = {"resamples": options["resamples"], "seed": options["seed"]}
    columns = np.array([one.share for one in (*pages, *turned)])
    columns = np.concatenate([columns, (columns[: len(pages)] - columns[len(pages) :]) / 2])
    shares = _Resampled(np.where(fitted, np.nan, columns), distinct, **how)
    means = _Resampled(np.where(fitted, np.nan, [one.effectiveness for one in pages]), distinct, **how)
    if not shares.columns.queries:
        raise UserError("no query for which every ranker finds a document in every round")
    names = tuple(str(one.spec["ranker"]) for one in pages[-width:])
    rounds = tuple(
        SpiralRound(
            names[place % width], place // width, one.documents, one.entered,
            shares.mean(place), shares.mean(len(pages) + place), shares.mean(2 * len(pages) + place), means.mean(place),
        )
        for ranker in range(width) for place in range(ranker, len(pages), width) for one in [pages[place]]
    )  # fmt: skip
    of, pair, start = Share @ options["page"], (options["reference"], "rewrites"), last * width
    tasks = [
        ChangeTask(
            run=name, old_run=names[0], estimand=asked, a=pair[0], b=pair[0],
            columns=Columns(np.where(known.mask, known.values[[start + place, start]], np.nan), distinct),
        )
        for place, name in enumerate(names) if place
        for asked, known in ((of, shares.columns), (measure(EFFECTIVENESS), means.columns)) if known.queries
    ]  # fmt: skip
    differences = corrected(mean_changes(tasks, **how), options["correction"])
    leads = [shares.effect(2 * len(pages) + start + place, name, of, pair) for place, name in enumerate(names)]
    spec = {**options, **audit_provenance(growth.collection, [one.spec for one in pages[-width:]])}
    notes = (*growth.notes, *_notes(shares.columns, means.columns, int(fitted.sum())))
    return Spiral(
        spec, options["reference"], names, rounds, differences, corrected(leads, options["correction"]),
        shares.columns.queries, notes,
    )  # fmt: skip


def _fitted(pages: Sequence[_FirstPages]) -> Bools:
    """Queries that a correction was fitted on, which count for no ranker."""
    known = {query for one in pages for _, fit in stage_facts(one.spec, FITTED) for query in fit.get("queries", ())}
    return np.array([query in known for query in pages[0].queries])


def _notes(shares: Columns, means: Columns, fitted: int) -> Iterator[str]:
    """Say what is left out, and what stands on little."""
    if fitted:
        yield f"left out: {counted(fitted, 'query', 'queries')} that a correction was fitted on"
    if without := len(shares.mask) - fitted - shares.queries:
        yield f"left out: {counted(without, 'query', 'queries')} for which a ranker finds nothing in some round"
    if shares.queries < FEW_QUERIES:
        yield (
            f"warning: only {counted(shares.queries, 'query', 'queries')}; intervals from fewer than {FEW_QUERIES} are "
            "too narrow to rely on"
        )
    if not means.queries:
        yield f"no {EFFECTIVENESS}: no document of the reference is judged relevant"


@dataclass(frozen=True)
class Growth:
    """What grows: documents that are there first, and their versions, which enter by the number of their origin."""

    collection: Collection
    source: str
    first: Bools
    """Whether each document is there in round 0."""
    number: Ints
    """Place of each document's origin among those with versions on both sides; −1 for none."""
    keys: npt.NDArray[np.uint64]
    """Tie key of each of these origins: decides between those that are shown equally often."""
    notes: tuple[str, ...]

    @classmethod
    def of(cls, collection: Collection, reference: str, source: str | None) -> Growth:
        """Find the rewrites of the reference's documents, and the queries that are judged before any has entered."""
        source = _source(collection, reference, source)
        own = pl.col("source") == reference
        docs = collection.docs.filter(own | (pl.col("source") == source))
        written = docs.filter(own)["origin"].implode()
        kept = docs.filter(own | pl.col("origin").is_in(written))
        rewritten = kept.filter(~own)["origin"]
        if not len(rewritten):
            raise UserError(f"nothing can enter: no document of {source!r} is of the origin of one of {reference!r}")
        base = _restricted(collection, kept)
        start = _restricted(base, kept.filter(own))
        if not start.judged.height:
            raise UserError("nothing to rank: the collection has no queries")
        asked = pl.col("query_id").is_in(start.judged["id"].implode())
        qrels = base.qrels.filter(asked) if (start.qrels["grade"] > 0).any() else base.qrels.clear()
        whole = Collection(kept, start.judged, qrels, collection.spec)
        number = codes(kept["origin"], rewritten.unique(maintain_order=True))
        first = np.unique(number, return_index=True)[1][-rewritten.n_unique() :]
        notes = list[str]()
        if outside := docs.height - kept.height:
            notes.append(f"left out: {counted(outside, 'rewrite', 'rewrites')} of no document of {reference}")
        if len(rewritten) > len(first):
            notes.append("some documents have several rewrites, so that the two directions are no mirror images")
        own_rows = (kept["source"] == reference).to_numpy()
        return cls(whole, source, own_rows, number, whole.tie_keys()[first], tuple(notes))

    @property
    def mirrored(self) -> Growth:
        """The other direction: rewrites are there first; without judgments, for all queries are ranked."""
        bare = Collection(
            self.collection.docs, self.collection.queries, self.collection.qrels.clear(), self.collection.spec
        )
        return replace(self, collection=bare, first=np.where(self.number >= 0, ~self.first, self.first))

    def rows(self, entered: Bools) -> Bools:
        return self.first | (entered[self.number] & (self.number >= 0))

    def grown(self, rows: Bools) -> Collection:
        return _restricted(self.collection, self.collection.docs.filter(rows))


def _source(collection: Collection, reference: str, source: str | None) -> str:
    """The source whose documents enter: the one that is named, or the only other one."""
    others = [name for name in collection.sources if name != reference]
    if len(others) == len(collection.sources):
        raise unknown("source", reference, collection.sources)
    if not others:
        raise UserError(f"nothing can enter: only source {reference!r}; expected rewrites of its documents")
    if source is not None and source not in others:
        raise unknown("source", source, others)
    if source is None and len(others) > 1:
        raise UserError(f"rewrites of {len(others)} sources: name the one that enters, such as --source {others[0]}")
    return source or others[0]


def _restricted(collection: Collection, docs: pl.DataFrame) -> Collection:
    """Return a collection of some of its documents, without the judgments of the others."""
    gone = pl.col("doc_id").is_in(collection.ids.implode()) & ~pl.col("doc_id").is_in(docs["id"].implode())
    return Collection(docs, collection.queries, collection.qrels.filter(~gone), collection.spec)


class Entering(NamedTuple):
    """Which versions enter, and when."""

    rounds: int
    share: float
    random: bool
    seed: int

    def next(self, number: int, entered: Bools, counts: Floats, keys: npt.NDArray[np.uint64]) -> Bools:
        """Return what has entered by a round: drawn at random, or what pages showed, the most shown first."""
        start, stop = (min(math.ceil(n * self.share * len(keys) - 1e-9), len(keys)) for n in (number - 1, number))
        found = entered.copy()
        if self.random:
            found[np.random.default_rng(self.seed).permutation(len(keys))[start:stop]] = True
        else:
            weights = np.where(entered, 0.0, counts)
            order = np.lexsort((keys, -weights))
            found[order[weights[order] > 0][: stop - start]] = True
        return found
