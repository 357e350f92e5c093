"""Controls: the same audit once more with what else differs between twins taken away (MEASURES, sec. 4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ranktilt.auditing.audit import audit
from ranktilt.auditing.comparison.match import neutral_values
from ranktilt.auditing.confounds import twin_likeness
from ranktilt.auditing.contributions import common_places
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import Pair, grouping, twin_rows
from ranktilt.auditing.result import RAW, Audit, ControlChange, Controlled, Move, Obstacle
from ranktilt.auditing.significance import ChangeTask, Columns, contrast_changes, corrected
from ranktilt.data.collection import Collection
from ranktilt.data.notes.runs import SavedRunNotControlled
from ranktilt.data.run import Run
from ranktilt.data.text.quality import NEAR_IDENTICAL, without_opening, words
from ranktilt.errors import UserError, unknown
from ranktilt.measures.ranking import Ints
from ranktilt.models.token_counts import Tokens
from ranktilt.progress import report
from ranktilt.rankers.base import Ranker, stages_of
from ranktilt.rankers.self_exclusion import self_documents
from ranktilt.statistics.two_way import Clusters

CONTROLS = ("length", "tokens", "boilerplate", "near-identical", "titles")
"""What each takes away is said in `reporting/sentences/controls.py`."""


class Changed(NamedTuple):
    """A collection with some texts changed, and what changed."""

    collection: Collection
    change: ControlChange
    """How many texts changed, or pairs went."""
    left_out: frozenset[str] = frozenset()
    """Ids of documents that are gone."""


class _Reader(NamedTuple):
    """What a neural ranker reads: tokens, of which fields of a document."""

    tokens: Tokens
    text: str


def controls(
    collection: Collection,
    rankers: Sequence[Ranker],
    runs: Sequence[Run],
    raw: Audit,
    *,
    which: Iterable[str] = CONTROLS,
    near: float = NEAR_IDENTICAL,
) -> Audit:
    """Audit again with length, truncation, boilerplate, near-copies and shared titles taken away.

    Parameters
    ----------
    collection : Collection
        What was ranked; twins are found by origin.
    rankers : sequence of Ranker
        What ranks it, in the order of `runs`. A saved run cannot be ranked again: controls that
        change texts leave it out and say so.
    runs : sequence of Run
        The raw runs.
    raw : Audit
        The audit of these runs, whose groups, measures and options hold for every control.
    which : iterable of str, optional
        Names in `CONTROLS`; all by default.
    near : float, optional
        Jaccard similarity of term sets from which twins count as near-identical, in (0, 1].

    Returns
    -------
    Audit
        `raw` with ``controls``: for each run, pair and control Relative Δ under it and by how much
        it moved, with a paired bootstrap interval. A run is ranked again only where a text that it
        reads changed. The p of all Relative Δ in the table, raw ones included, are corrected
        together.
    """
    names = list(dict.fromkeys(which))
    for name in names:
        if name not in CONTROLS:
            raise unknown("control", name, CONTROLS)
    if not 0 < near <= 1:
        raise UserError(
            f"expected a similarity above 0 and at most 1 for near-identical twins, got {near:g}"
        )
    if not raw.tilts:
        raise UserError("controls need groups compared by relevance; this audit has none")
    if not (collection.docs["text"] != "").any():
        raise UserError("controls need texts, and these documents have none")
    work = _Controls(collection, rankers, runs, raw, near)
    found = [one for name in names for one in work.control(name)]
    saved = [run.name for ranker, run in zip(rankers, runs, strict=True) if _is_saved(ranker)]
    notes = tuple(SavedRunNotControlled(run=name) for name in saved)
    found = [one for one in found if one.tilts or one.run not in saved]
    spec = {**raw.spec, "near": near}
    return replace(raw, controls=_corrected(raw, found), spec=spec, notes=(*raw.notes, *notes))


def _corrected(raw: Audit, found: list[Controlled]) -> tuple[Controlled, ...]:
    """Put the raw values before their controls, and correct all p of the table together."""
    first = []
    for run in raw.runs:
        for a, b in raw.tilted_pairs:
            tilts = tuple(t for t in raw.tilts if (t.run, t.a, t.b) == (run, a, b))
            first.append(Controlled(run, RAW, a, b, ControlChange(outcome="raw"), tilts, ()))
    every = [*first, *found]
    # What a control did not change is its raw value once more, and no further test.
    tested = list({id(t): t for one in every for t in one.tilts}.values())
    again = corrected(tested, str(raw.spec["correction"]), raw.primary)
    found_again = dict(zip(map(id, tested), again, strict=True))
    return tuple(replace(one, tilts=tuple(found_again[id(t)] for t in one.tilts)) for one in every)


class _Controls:
    """All controls of one audit: what they share."""

    def __init__(
        self,
        collection: Collection,
        rankers: Sequence[Ranker],
        runs: Sequence[Run],
        raw: Audit,
        near: float,
    ) -> None:
        self.collection, self.rankers, self.runs, self.raw, self.near = (
            collection,
            rankers,
            runs,
            raw,
            near,
        )
        groups = grouping(collection, raw.spec["by"], raw.groups, fewest=1)
        if raw.spec["by"] not in collection.docs.columns:
            # Bins are those of the raw texts, whatever a control makes of them.
            labels = pl.Series(raw.spec["by"], [None, *groups.names], dtype=pl.String).gather(
                groups.code + 1
            )
            docs = collection.docs.with_columns(labels)
            self.collection = Collection(
                docs, collection.queries, collection.qrels, collection.spec
            )
        self.rows = [twin_rows(collection, groups, pair) for pair in raw.tilted_pairs]
        self.family = _families(collection, self.rows)
        self.twins = self.family >= 0

    def control(self, name: str) -> list[Controlled]:
        if not self.twins.any():
            without_twins = self._not_applicable(name, "no twins")
            return [self._nothing(run, name, without_twins) for run in self.runs]
        made: dict[str, Changed] = {}
        out = []
        for number, (ranker, run) in enumerate(zip(self.rankers, self.runs, strict=True)):
            report(f"control {name}", number, len(self.runs))
            reader = _reader(ranker) if name == "tokens" else None
            obstacle = _obstacle(ranker, name, reader)
            if obstacle is not None:
                out.append(self._nothing(run, name, self._not_applicable(name, obstacle)))
                continue
            key = repr(ranker) if name == "tokens" else name
            if key not in made:
                made[key] = self._changed(name, reader)
            out += self._controlled(ranker, run, name, made[key])
        report(f"control {name}", len(self.runs), len(self.runs))
        return out

    def _changed(self, name: str, reader: _Reader | None) -> Changed:
        if reader is not None:
            return self._with_texts(self._read_alike(reader))
        if name == "near-identical":
            return self._without_likenesses()
        docs = self.collection.docs
        if name == "length":
            return self._with_texts(self._as_short())
        if name == "boilerplate":
            return self._with_texts(without_opening(docs["text"]))
        same = pl.col("title").n_unique().over(pl.Series(self.family)) == 1
        shared = pl.when(same & pl.Series(self.twins)).then(pl.lit("")).otherwise("title")
        return self._with_texts(docs["text"], docs.select(shared.alias("title"))["title"])

    def _as_short(self) -> Iterator[str]:
        """Every text cut to the words of its shortest twin."""
        text = self.collection.docs["text"]
        sizes = words(text).to_numpy()
        for one, size, keep in zip(text, sizes, self._shortest(sizes), strict=True):
            yield one if size <= keep else " ".join(one.split()[:keep])

    def _read_alike(self, reader: _Reader) -> Iterator[str]:
        """Every text cut to the tokens that the model reads of its shortest twin."""
        tokens, docs = reader.tokens, self.collection.docs
        whole = self.collection.texts(reader.text).to_list()
        sizes = tokens.counts(whole, "counting tokens")
        least = self._shortest(np.minimum(sizes, tokens.limit) if tokens.limit else sizes)
        over = np.flatnonzero(self.twins & (sizes > least))
        ends = dict(
            zip(over.tolist(), tokens.ends([whole[i] for i in over], least[over]), strict=True)
        )
        titled = reader.text == "title+text"
        for i, (title, text) in enumerate(docs.select("title", "text").iter_rows()):
            front = len(title.strip()) + 1 if titled and title.strip() else 0
            yield whole[i][front : max(ends[i], front)] if i in ends else text

    def _without_likenesses(self) -> Changed:
        collection = self.collection
        alike = [
            rows[twin_likeness(collection, rows, self.near) > 0] for rows in self.rows if len(rows)
        ]
        gone = np.unique(self.family[np.concatenate([rows.ravel() for rows in alike])])
        out = np.isin(self.family, gone)
        ids = frozenset(collection.ids.filter(pl.Series(out)))
        docs = collection.docs.filter(pl.Series(~out))
        qrels = collection.qrels.filter(~pl.col("doc_id").is_in(list(ids)))
        change = ControlChange(
            outcome="changed",
            changed=len(gone),
            total=len(np.unique(self.family[self.twins])),
            unit="pairs",
            near=self.near,
        )
        return Changed(Collection(docs, collection.queries, qrels, {}), change, ids)

    def _with_texts(self, texts: Iterable[str], titles: pl.Series | None = None) -> Changed:
        """Replace texts, and titles where given."""
        docs = self.collection.docs
        text = pl.Series("text", list(texts), dtype=pl.String)
        title = docs["title"] if titles is None else titles
        number = int(((text != docs["text"]) | (title != docs["title"])).sum())
        changed = Collection(
            docs.with_columns(text, title), self.collection.queries, self.collection.qrels, {}
        )
        return Changed(changed, ControlChange(outcome="changed", changed=number, total=docs.height))

    def _shortest(self, sizes: Ints) -> Ints:
        """Smallest size among each document's twins; its own where it has none."""
        table = pl.DataFrame({"family": self.family, "size": sizes})
        return np.where(
            self.twins, table.select(pl.col("size").min().over("family"))["size"].to_numpy(), sizes
        )

    def _not_applicable(self, name: str, obstacle: Obstacle) -> ControlChange:
        near = self.near if name == "near-identical" else np.nan
        return ControlChange(outcome="not applicable", obstacle=obstacle, near=near)

    def _nothing(self, run: Run, name: str, change: ControlChange) -> Controlled:
        a, b = self.raw.tilted_pairs[0]
        return Controlled(run.name, name, a, b, change, (), ())

    def _controlled(
        self, ranker: Ranker, run: Run, name: str, changed: Changed
    ) -> list[Controlled]:
        again, change = self._ranked(ranker, run, changed), changed.change
        if again is run:
            unchanged = replace(change, outcome="unchanged")
            return [self._unmoved(run, name, unchanged, pair) for pair in self.raw.tilted_pairs]
        options: dict[str, Any] = {k: self.raw.spec[k] for k in _OPTIONS if k in self.raw.spec}
        try:
            result = audit(
                changed.collection,
                [again],
                self.raw.measures,
                pairs=self.raw.tilted_pairs,
                confounds=False,
                **options,
            )
        except UserError as error:  # what a control leaves may be nothing to compare
            left = replace(change, outcome="nothing left")
            if changed.collection.qrels.height:
                left = replace(change, outcome="refused", error=str(error))
            return [self._nothing(run, name, left)]
        found = []
        for a, b in result.pairs:
            tilts = tuple(replace(t, run=run.name) for t in result.tilts if (t.a, t.b) == (a, b))
            moves = tuple(
                self._move(result, run.name, number, (a, b))
                for number in range(len(self.raw.measures))
            )
            found.append(Controlled(run.name, name, a, b, change, tilts, moves))
        return found

    def _unmoved(self, run: Run, name: str, change: ControlChange, pair: Pair) -> Controlled:
        tilts = tuple(t for t in self.raw.tilts if t.run == run.name and (t.a, t.b) == pair)
        still = [t.value - t.value for t in tilts]  # 0, or undefined
        moves = tuple(
            Move(zero, zero, zero, t.queries) for zero, t in zip(still, tilts, strict=True)
        )
        return Controlled(run.name, name, pair[0], pair[1], change, tilts, moves)

    def _ranked(self, ranker: Ranker, run: Run, changed: Changed) -> Run:
        """The run under a control: the same one where nothing that the ranker reads changed."""
        if changed.left_out:
            return _without(run, changed.left_out)
        choices = {str(getattr(stage, "text", "title+text")) for stage in stages_of(ranker)}
        if all(changed.collection.texts(c).equals(self.collection.texts(c)) for c in choices):
            return run
        for choice in (
            None,
            True,
        ):  # a query's own document stays its own, whatever a control makes of its text
            changed.collection.memo(
                ("self documents", choice), partial(self_documents, self.collection, choice)
            )
        return ranker.rank(changed.collection)

    def _move(self, result: Audit, run: str, measure: int, pair: Pair) -> Move:
        """By how much Relative Δ moved, over the queries that both define."""
        raw, there = self.raw, {query: place for place, query in enumerate(result.queries)}
        at, after = (
            np.array([(n, there[q]) for n, q in enumerate(raw.queries) if q in there], np.int64)
            .reshape(-1, 2)
            .T
        )
        sides = [
            values[measure, audit.groups.index(name)][rows]
            for name in pair
            for audit, values, rows in (
                (result, result.values[0], after),
                (raw, raw.values[raw.runs.index(run)], at),
            )
        ]
        distinct = raw.distinct(run)
        columns = Columns(np.array(sides), None if distinct is None else distinct[at])
        if not columns.queries:
            return Move(np.nan, np.nan, np.nan, 0)
        new, old = (
            next(
                t
                for t in audit.tilts
                if (t.run, t.a, t.b) == (name, *pair) and t.measure == repr(of)
            )
            for audit, name, of in (
                (result, result.runs[0], self.raw.measures[measure]),
                (raw, run, self.raw.measures[measure]),
            )
        )
        task = ChangeTask(
            run=run,
            old_run=run,
            estimand=new.estimand,
            a=pair[0],
            b=pair[1],
            columns=columns,
            clusters=_clusters((result, raw), (new, old), [raw.queries[row] for row in at]),
            neutral_values=neutral_values(new, old),
            twins=new.twins and old.twins,
        )
        resamples, seed = int(raw.spec["resamples"]), int(raw.spec["seed"])
        [change] = contrast_changes([task], resamples=resamples, seed=seed)
        return Move(change.value, change.low, change.high, change.queries, change.neutral)


def _clusters(
    audits: tuple[Audit, Audit], tilts: tuple[Effect, Effect], queries: Sequence[str]
) -> tuple[Clusters | None, Clusters | None]:
    """What documents add to a tilt under a control and without it, numbered alike."""
    new, old = (audit.contributions for audit in audits)
    if new is None or old is None:
        return None, None
    new_place, old_place = common_places([new, old], queries)
    keys = [(tilt.run, repr(tilt.estimand), tilt.a, tilt.b) for tilt in tilts]
    return new.of(keys[0], new_place), old.of(keys[1], old_place)


def _families(collection: Collection, pairs: Sequence[Ints]) -> Ints:
    """Number of each document's family of twins (its origin); -1 for a document without a twin."""
    family = np.full(collection.docs.height, -1)
    rows = np.unique(np.concatenate([r.ravel() for r in pairs])) if pairs else np.empty(0, np.int64)
    if len(rows):
        origin = collection.docs["origin"].gather(rows)
        family[rows] = origin.rank("dense").to_numpy().astype(np.int64) - 1
    return family


_OPTIONS = (
    "by",
    "margin",
    "ties",
    "rounding",
    "test",
    "correction",
    "resamples",
    "seed",
    "missing",
)


def _reader(ranker: Ranker) -> _Reader | None:
    """What a pipeline's last neural stage reads."""
    for stage in reversed(stages_of(ranker)):
        find = getattr(stage, "tokens", None)
        if callable(find):
            found = find()
            return (
                _Reader(found, str(getattr(stage, "text", "title+text")))
                if isinstance(found, Tokens)
                else None
            )
    return None


def _obstacle(ranker: Ranker, name: str, reader: _Reader | None) -> Obstacle | None:
    """Return why a control cannot be applied to a ranker; None where it can."""
    if name != "near-identical" and _is_saved(ranker):
        return "saved run"
    if name != "near-identical" and any(stage.name == "engine" for stage in stages_of(ranker)):
        return "engine"
    if name == "tokens" and reader is None:
        is_neural = any(hasattr(stage, "tokens") for stage in stages_of(ranker))
        return "no tokens" if is_neural else "no token limit"
    return "titles only" if reader is not None and reader.text == "title" else None


def _is_saved(ranker: Ranker) -> bool:
    return any(stage.name == "replay" for stage in stages_of(ranker))


def _without(run: Run, gone: frozenset[str]) -> Run:
    """The run without some documents; the others move up."""
    lost = run.ids.is_in(list(gone)).to_numpy()
    keep = ~lost[run.docs]
    offsets = np.concatenate([[0], np.cumsum(keep)])[run.offsets]
    return Run(run.queries, offsets, run.docs[keep], run.scores[keep], run.ids, run.spec)
