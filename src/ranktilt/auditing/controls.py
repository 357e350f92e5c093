"""Controls: audit again without one of the other differences between twins.

See docs/measures/confounds-and-controls.md. `controls` is the entry, `_Controls` changes texts and
audits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import polars as pl

from ranktilt.auditing.audit import audit
from ranktilt.auditing.comparison.match import neutral_values
from ranktilt.auditing.contributions import common_numbering
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.grouping.labels import grouping
from ranktilt.auditing.grouping.twins import twin_rows
from ranktilt.auditing.groups import Pair
from ranktilt.auditing.result import RAW, Audit, ControlChange, Controlled, Move, Obstacle
from ranktilt.auditing.significance import ChangeTask, Columns, contrast_changes, correct_p_values
from ranktilt.data.collection import Collection
from ranktilt.data.faults.twin_likeness import twin_likeness
from ranktilt.data.notes.runs import SavedRunNotControlled
from ranktilt.data.runs.run import Run
from ranktilt.data.text.quality import NEAR_IDENTICAL, without_opening, words
from ranktilt.errors import UserError, unknown
from ranktilt.measures.ranking import Ints
from ranktilt.models.token_counts import Tokens
from ranktilt.progress import report
from ranktilt.rankers.base import Ranker, stages_of
from ranktilt.rankers.self_exclusion import self_documents
from ranktilt.statistics.two_way import Clusters

CONTROLS = ("length", "tokens", "boilerplate", "near-identical", "titles")
"""Names of the controls; `reporting/sentences/controls.py` says what each one removes."""


class Changed(NamedTuple):
    """A collection in which a control changed texts or left out documents, and what it changed."""

    collection: Collection
    """The changed collection."""
    change: ControlChange
    """Number of texts that changed, or of pairs that were left out."""
    left_out: frozenset[str] = frozenset()
    """Ids of documents that were left out."""


class _Reader(NamedTuple):
    """What a neural ranker reads of a document."""

    tokens: Tokens
    """Its tokenizer and token limit."""
    text: str
    """Part of a document that it reads, such as ``title+text``."""


def controls(
    collection: Collection,
    rankers: Sequence[Ranker],
    runs: Sequence[Run],
    raw: Audit,
    *,
    which: Iterable[str] = CONTROLS,
    near: float = NEAR_IDENTICAL,
) -> Audit:
    """Audit again without length, truncation, boilerplate, near-copies and shared titles.

    Parameters
    ----------
    collection : Collection
        The ranked collection; twins share an origin.
    rankers : sequence of Ranker
        Its rankers, in the order of `runs`. A saved run cannot be ranked again, so controls that
        change texts leave it out and say so.
    runs : sequence of Run
        The raw runs.
    raw : Audit
        The audit of these runs; its groups, measures and options apply to every control.
    which : iterable of str, optional
        Names in `CONTROLS`; all by default.
    near : float, optional
        Jaccard similarity of term sets from which twins count as near-identical, in (0, 1].

    Returns
    -------
    Audit
        `raw` with ``controls``: for each run, pair and control, its Relative Δ and how far that
        moved, with a paired bootstrap interval. A run is ranked again only if a text that it reads
        changed. The p of all Relative Δ in the table, raw ones included, are corrected together.
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
    if raw.repeats:
        raise UserError(
            f"controls rank once, and {raw.repeats[0].run!r} is the mean of several rankings; "
            "audit one of them, or omit --controls"
        )
    audits = _Controls(collection, rankers, runs, raw=raw, near=near)
    saved = [run.name for ranker, run in zip(rankers, runs, strict=True) if _is_saved(ranker)]
    controlled: list[Controlled] = []
    for name in names:
        rows = audits.control(name)
        controlled += [row for row in rows if row.tilts or row.run not in saved]
    notes = tuple(SavedRunNotControlled(run=name) for name in saved)
    spec = {**raw.spec, "near": near}
    return replace(raw, controls=_corrected(raw, controlled), spec=spec, notes=(*raw.notes, *notes))


def _corrected(raw: Audit, controlled: list[Controlled]) -> tuple[Controlled, ...]:
    """Put the raw values in front of the controls, and correct all p of the table together."""
    raw_rows = []
    for run in raw.runs:
        for a, b in raw.tilted_pairs:
            row = Controlled(
                run=run,
                control=RAW,
                a=a,
                b=b,
                control_change=ControlChange(outcome="raw"),
                tilts=_tilts(raw, run, (a, b)),
                moves=(),
            )
            raw_rows.append(row)
    rows = [*raw_rows, *controlled]
    # What a control did not change is the same object as its raw value, and no further test.
    tested: dict[int, Effect] = {}
    for row in rows:
        tested |= {id(tilt): tilt for tilt in row.tilts}
    tilts = correct_p_values(list(tested.values()), str(raw.spec["correction"]), raw.primary)
    corrected_of = dict(zip(tested, tilts, strict=True))
    return tuple(
        replace(row, tilts=tuple(map(corrected_of.__getitem__, map(id, row.tilts)))) for row in rows
    )


def _tilts(audited: Audit, run: str, pair: Pair) -> tuple[Effect, ...]:
    """Return a run's tilts between two groups, one for each measure."""
    return tuple(tilt for tilt in audited.tilts if tilt.run == run and (tilt.a, tilt.b) == pair)


class _Controls:
    """The raw audit, its rankers and its twins, from which each control starts."""

    def __init__(
        self,
        collection: Collection,
        rankers: Sequence[Ranker],
        runs: Sequence[Run],
        *,
        raw: Audit,
        near: float,
    ) -> None:
        self.collection = collection
        self.rankers = rankers
        self.runs = runs
        self.raw = raw
        self.near = near
        groups = grouping(collection, raw.spec["by"], raw.groups, fewest=1)
        if raw.spec["by"] not in collection.docs.columns:
            # Bins are those of the raw texts, whatever a control makes of them.
            names = pl.Series(raw.spec["by"], [None, *groups.names], dtype=pl.String)
            docs = collection.docs.with_columns(names.gather(groups.code + 1))
            self.collection = Collection(
                docs, collection.queries, collection.qrels, collection.spec
            )
        self.rows = [twin_rows(collection, groups, pair) for pair in raw.tilted_pairs]
        self.family = _families(collection, self.rows)
        self.twins = self.family >= 0

    def control(self, name: str) -> list[Controlled]:
        """Audit all runs under one control.

        A control changes the collection for all rankers alike, apart from ``tokens``, which depends
        on what a ranker reads.
        """
        if not self.twins.any():
            without_twins = self._not_applicable(name, "no twins")
            return [self._without_result(run, name, without_twins) for run in self.runs]
        changed: dict[str, Changed] = {}
        rows = []
        for number, (ranker, run) in enumerate(zip(self.rankers, self.runs, strict=True)):
            report(f"control {name}", number, len(self.runs))
            reader = _reader(ranker) if name == "tokens" else None
            obstacle = _obstacle(ranker, name, reader)
            if obstacle is not None:
                change = self._not_applicable(name, obstacle)
                rows.append(self._without_result(run, name, change))
                continue
            key = repr(ranker) if name == "tokens" else name
            if key not in changed:
                changed[key] = self._changed(name, reader)
            rows += self._controlled(ranker, run, name, changed[key])
        report(f"control {name}", len(self.runs), len(self.runs))
        return rows

    def _changed(self, name: str, reader: _Reader | None) -> Changed:
        """Return the collection that a control makes."""
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
        """Cut every text to the words of its shortest twin."""
        texts = self.collection.docs["text"]
        sizes = words(texts).to_numpy()
        for text, size, shortest in zip(texts, sizes, self._shortest(sizes), strict=True):
            yield text if size <= shortest else " ".join(text.split()[:shortest])

    def _read_alike(self, reader: _Reader) -> Iterator[str]:
        """Cut every text to as many tokens as the model reads of its shortest twin."""
        tokens, docs = reader.tokens, self.collection.docs
        uncut = self.collection.texts(reader.text).to_list()
        sizes = tokens.counts(uncut, "counting tokens")
        budgets = self._shortest(np.minimum(sizes, tokens.limit) if tokens.limit else sizes)
        longer = np.flatnonzero(self.twins & (sizes > budgets))
        cuts = tokens.ends([uncut[row] for row in longer], budgets[longer])
        cut_of = dict(zip(longer.tolist(), cuts, strict=True))
        has_title = reader.text == "title+text"
        for row, (title, text) in enumerate(docs.select("title", "text").iter_rows()):
            if row not in cut_of:
                yield text
                continue
            # The title comes first, with a space after it, and is not part of the text.
            start = len(title.strip()) + 1 if has_title and title.strip() else 0
            yield uncut[row][start : max(cut_of[row], start)]

    def _without_likenesses(self) -> Changed:
        """Leave out all twins of an origin if two of them are too alike."""
        collection = self.collection
        alike = [
            rows[twin_likeness(collection, rows, self.near) > 0] for rows in self.rows if len(rows)
        ]
        families = np.unique(self.family[np.concatenate([rows.ravel() for rows in alike])])
        is_left_out = np.isin(self.family, families)
        ids = frozenset(collection.ids.filter(pl.Series(is_left_out)))
        docs = collection.docs.filter(pl.Series(~is_left_out))
        qrels = collection.qrels.filter(~pl.col("doc_id").is_in(list(ids)))
        change = ControlChange(
            outcome="changed",
            changed=len(families),
            total=len(np.unique(self.family[self.twins])),
            unit="pairs",
            near=self.near,
        )
        return Changed(
            collection=Collection(docs, collection.queries, qrels, {}),
            change=change,
            left_out=ids,
        )

    def _with_texts(self, texts: Iterable[str], titles: pl.Series | None = None) -> Changed:
        """Return the collection with other texts, and other titles if there are any."""
        docs = self.collection.docs
        text = pl.Series("text", list(texts), dtype=pl.String)
        title = docs["title"] if titles is None else titles
        number = int(((text != docs["text"]) | (title != docs["title"])).sum())
        collection = Collection(
            docs.with_columns(text, title), self.collection.queries, self.collection.qrels, {}
        )
        change = ControlChange(outcome="changed", changed=number, total=docs.height)
        return Changed(collection=collection, change=change)

    def _shortest(self, sizes: Ints) -> Ints:
        """Return the smallest size among each document and its twins."""
        table = pl.DataFrame({"family": self.family, "size": sizes})
        smallest = table.select(pl.col("size").min().over("family"))["size"].to_numpy()
        return np.where(self.twins, smallest, sizes)

    def _not_applicable(self, name: str, obstacle: Obstacle) -> ControlChange:
        """Return that a control was not applied, and why."""
        near = self.near if name == "near-identical" else np.nan
        return ControlChange(outcome="not applicable", obstacle=obstacle, near=near)

    def _without_result(self, run: Run, name: str, change: ControlChange) -> Controlled:
        """Return the row of a run for which a control has no result."""
        a, b = self.raw.tilted_pairs[0]
        return Controlled(
            run=run.name, control=name, a=a, b=b, control_change=change, tilts=(), moves=()
        )

    def _audited_again(self, collection: Collection, run: Run) -> Audit:
        """Audit a run over a changed collection, measured and tested as in the raw audit."""
        spec = self.raw.spec
        return audit(
            collection,
            [run],
            self.raw.measures,
            pairs=self.raw.tilted_pairs,
            confounds=False,
            by=spec["by"],
            margin=spec["margin"],
            missing=spec["missing"],
            ties=spec["ties"],
            rounding=spec["rounding"],
            test=spec["test"],
            correction=spec["correction"],
            resamples=spec["resamples"],
            seed=spec["seed"],
        )

    def _controlled(
        self, ranker: Ranker, run: Run, name: str, changed: Changed
    ) -> list[Controlled]:
        """Audit one run again over a changed collection."""
        new_run, change = self._ranked(ranker, run, changed), changed.change
        if new_run is run:
            unchanged = replace(change, outcome="unchanged")
            return [self._unmoved(run, name, unchanged, pair) for pair in self.raw.tilted_pairs]
        try:
            result = self._audited_again(changed.collection, new_run)
        except UserError as error:  # what a control leaves may be nothing to compare
            left = replace(change, outcome="nothing left")
            if changed.collection.qrels.height:
                left = replace(change, outcome="refused", error=str(error))
            return [self._without_result(run, name, left)]
        rows = []
        for a, b in result.pairs:
            tilts = _tilts(result, result.runs[0], (a, b))
            row = Controlled(
                run=run.name,
                control=name,
                a=a,
                b=b,
                control_change=change,
                tilts=tuple(replace(tilt, run=run.name) for tilt in tilts),
                moves=tuple(
                    self._move(result, run.name, number, (a, b))
                    for number in range(len(self.raw.measures))
                ),
            )
            rows.append(row)
        return rows

    def _unmoved(self, run: Run, name: str, change: ControlChange, pair: Pair) -> Controlled:
        """Return the raw tilts of a run that a control did not change."""
        tilts = _tilts(self.raw, run.name, pair)
        moves = []
        for tilt in tilts:
            zero = tilt.value - tilt.value  # NaN where the tilt is undefined
            moves.append(Move(value=zero, low=zero, high=zero, queries=tilt.queries))
        a, b = pair
        return Controlled(
            run=run.name,
            control=name,
            a=a,
            b=b,
            control_change=change,
            tilts=tilts,
            moves=tuple(moves),
        )

    def _ranked(self, ranker: Ranker, run: Run, changed: Changed) -> Run:
        """Rank the changed collection.

        Return the run itself if nothing that the ranker reads changed.
        """
        if changed.left_out:
            return _without(run, changed.left_out)
        new, old = changed.collection, self.collection
        fields = {str(getattr(stage, "text", "title+text")) for stage in stages_of(ranker)}
        if all(new.texts(field).equals(old.texts(field)) for field in fields):
            return run
        # A query's own document stays its own, whatever a control makes of its text.
        for exclude_self in (None, True):
            rows = partial(self_documents, old, exclude_self)
            new.memo(("self documents", exclude_self), rows)
        return ranker.rank(new)

    def _move(self, result: Audit, run: str, measure: int, pair: Pair) -> Move:
        """Compute how far Relative Δ moved, over the queries that both audits have."""
        raw = self.raw
        row_of = {query: row for row, query in enumerate(result.queries)}
        common = [query for query in raw.queries if query in row_of]
        new_rows = np.array([row_of[query] for query in common], dtype=np.int64)
        is_common = [query in row_of for query in raw.queries]
        old_rows = np.flatnonzero(np.array(is_common, dtype=bool))
        new_values, old_values = result.values[0], raw.values[raw.runs.index(run)]
        values = []
        for name in pair:
            values.append(new_values[measure, result.groups.index(name)][new_rows])
            values.append(old_values[measure, raw.groups.index(name)][old_rows])
        distinct = raw.distinct(run)
        columns = Columns(
            values=np.array(values), distinct=None if distinct is None else distinct[old_rows]
        )
        if not columns.queries:
            return Move(value=np.nan, low=np.nan, high=np.nan, queries=0)
        notation = repr(raw.measures[measure])
        new = _tilt(result, result.runs[0], notation, pair)
        old = _tilt(raw, run, notation, pair)
        task = ChangeTask(
            run=run,
            old_run=run,
            estimand=new.estimand,
            a=pair[0],
            b=pair[1],
            columns=columns,
            clusters=_clusters((result, raw), (new, old), common),
            neutral_values=neutral_values(new, old),
            twins=new.twins and old.twins,
        )
        resamples, seed = int(raw.spec["resamples"]), int(raw.spec["seed"])
        [change] = contrast_changes([task], resamples=resamples, seed=seed)
        return Move(
            value=change.value,
            low=change.low,
            high=change.high,
            queries=change.queries,
            neutral=change.neutral,
        )


def _tilt(audited: Audit, run: str, measure: str, pair: Pair) -> Effect:
    """Return a run's tilt between two groups on one measure."""
    [tilt] = [tilt for tilt in _tilts(audited, run, pair) if tilt.measure == measure]
    return tilt


def _clusters(
    audits: tuple[Audit, Audit], tilts: tuple[Effect, Effect], queries: Sequence[str]
) -> tuple[Clusters | None, Clusters | None]:
    """Return what documents add to a tilt under the control and to the raw one, numbered alike."""
    new, old = (audit.contributions for audit in audits)
    if new is None or old is None:
        return None, None
    new_numbering, old_numbering = common_numbering([new, old], queries)
    new_key, old_key = ((tilt.run, repr(tilt.estimand), tilt.a, tilt.b) for tilt in tilts)
    return new.clusters_of(new_key, new_numbering), old.clusters_of(old_key, old_numbering)


def _families(collection: Collection, pairs: Sequence[Ints]) -> Ints:
    """Return the number of each document's origin; −1 for a document without a twin."""
    family = np.full(collection.docs.height, -1)
    if not pairs:
        return family
    rows = np.unique(np.concatenate([pair_rows.ravel() for pair_rows in pairs]))
    if len(rows):
        origin = collection.docs["origin"].gather(rows)
        family[rows] = origin.rank("dense").to_numpy().astype(np.int64) - 1
    return family


def _reader(ranker: Ranker) -> _Reader | None:
    """Return what a pipeline's last neural stage reads; None if there is none, or if unknown."""
    for stage in reversed(stages_of(ranker)):
        read_tokens = getattr(stage, "tokens", None)
        if callable(read_tokens):
            tokens = read_tokens()
            if not isinstance(tokens, Tokens):
                return None
            return _Reader(tokens=tokens, text=str(getattr(stage, "text", "title+text")))
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
    """Return whether a ranker reads a saved run, which cannot be ranked again."""
    return any(stage.name == "replay" for stage in stages_of(ranker))


def _without(run: Run, left_out: frozenset[str]) -> Run:
    """Return a run without some documents; the documents below them move up."""
    is_left_out = run.ids.is_in(list(left_out)).to_numpy()
    keep = ~is_left_out[run.docs]
    return Run(
        queries=run.queries,
        offsets=np.concatenate([[0], np.cumsum(keep)])[run.offsets],
        docs=run.docs[keep],
        scores=run.scores[keep],
        ids=run.ids,
        spec=run.spec,
    )
