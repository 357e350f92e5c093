"""Controls: audit again without one of the differences between twins other than their group.

Twins are two versions of one document, of which each of two groups has one. A *control* takes away
one difference between them, such as their lengths, and computes Relative Δ (the *tilt*) anew. The
audit without a control is the *raw* one. See docs/measures/confounds-and-controls.md.

Start reading in `controls`. `_Controls` takes the changed texts from `changed_texts.TwinTexts`,
ranks them if a ranker reads what changed, and audits again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl

from ranktilt.auditing.audit import audit
from ranktilt.auditing.comparison.changes import ChangeTask, Columns, contrast_changes
from ranktilt.auditing.comparison.tasks import neutral_values
from ranktilt.auditing.controls.changed_texts import (
    ChangedCollection,
    Reader,
    TwinTexts,
    reader_of,
)
from ranktilt.auditing.controls.result import RAW, ControlChange, Controlled, Move, Obstacle
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.grouping.labels import grouping
from ranktilt.auditing.grouping.pairs import twin_rows
from ranktilt.auditing.groups import Pair
from ranktilt.auditing.result import Audit
from ranktilt.auditing.significance import correct_p_values
from ranktilt.auditing.storage.contributions import common_numbering
from ranktilt.data.collection import Collection
from ranktilt.data.notes.runs import SavedRunNotControlled
from ranktilt.data.runs.run import Run
from ranktilt.data.text.quality import NEAR_IDENTICAL
from ranktilt.errors import UserError, unknown_name
from ranktilt.field_checks import is_number, printed
from ranktilt.progress import report
from ranktilt.rankers.base import Ranker, stages_of
from ranktilt.rankers.self_exclusion import self_documents
from ranktilt.statistics.two_way import Clusters

CONTROLS = ("length", "tokens", "boilerplate", "near-identical", "titles")
"""Names of the controls; `reporting/sentences/controls.py` says what each one removes."""


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
    _refuse_uncontrollable(names, collection, raw, near)
    all_controls = _Controls(collection, rankers, runs, raw=raw, near=near)
    saved = [run.name for ranker, run in zip(rankers, runs, strict=True) if _is_saved(ranker)]
    controlled: list[Controlled] = []
    for name in names:
        rows = all_controls.control(name)
        # A note says once that a saved run was not ranked again; the table has no row for it.
        controlled += [row for row in rows if row.tilts or row.run not in saved]
    notes = tuple(SavedRunNotControlled(run=name) for name in saved)
    return replace(
        raw,
        controls=_with_raw_rows(raw, controlled),
        spec={**raw.spec, "near": near},
        notes=(*raw.notes, *notes),
    )


def _refuse_uncontrollable(
    names: Iterable[str], collection: Collection, raw: Audit, near: float
) -> None:
    """Refuse unknown controls, and an audit or a collection that controls cannot be applied to."""
    for name in names:
        if name not in CONTROLS:
            raise unknown_name("control", name, CONTROLS)
    if not is_number(near) or not 0 < near <= 1:
        raise UserError(
            "expected a similarity above 0 and at most 1 for near-identical twins, "
            f"got {printed(near)}"
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


def _with_raw_rows(raw: Audit, controlled: list[Controlled]) -> tuple[Controlled, ...]:
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
    # A tilt that a control did not change is the same object as the raw tilt. It is no further
    # test, and must not make the correction stronger: so each object is corrected once.
    tilts_by_id: dict[int, Effect] = {}
    for row in rows:
        tilts_by_id |= {id(tilt): tilt for tilt in row.tilts}
    corrected = correct_p_values(
        list(tilts_by_id.values()), str(raw.spec["correction"]), raw.primary
    )
    corrected_by_id = dict(zip(tilts_by_id, corrected, strict=True))
    table = []
    for row in rows:
        tilts = tuple(corrected_by_id[id(tilt)] for tilt in row.tilts)
        table.append(replace(row, tilts=tilts))
    return tuple(table)


def _tilts(audited: Audit, run: str, pair: Pair) -> tuple[Effect, ...]:
    """Return a run's tilts between two groups, one for each measure."""
    return tuple(tilt for tilt in audited.tilts if tilt.run == run and (tilt.a, tilt.b) == pair)


class _Controls:
    """The controls of one audit: changes the texts, ranks again if needed, and audits again."""

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
            # Groups are bins of a number, such as the length. A control may change the lengths, but
            # not the groups: so a column holds those of the raw texts.
            names = pl.Series(raw.spec["by"], [None, *groups.names], dtype=pl.String)
            docs = collection.docs.with_columns(names.gather(groups.code + 1))  # code −1: null
            self.collection = Collection(
                docs, collection.queries, collection.qrels, collection.spec
            )
        rows = [twin_rows(collection, groups, pair) for pair in raw.tilted_pairs]
        self.twin_texts = TwinTexts(self.collection, rows, near=near)

    def control(self, name: str) -> list[Controlled]:
        """Audit all runs under one control.

        A control changes the collection for all rankers alike, apart from ``tokens``, which depends
        on what a ranker reads.
        """
        if not self.twin_texts.has_twin.any():
            without_twins = self._not_applicable(name, "no twins")
            return [self._row_without_result(run, name, without_twins) for run in self.runs]
        changed: dict[str, ChangedCollection] = {}
        rows = []
        for index, (ranker, run) in enumerate(zip(self.rankers, self.runs, strict=True)):
            report(f"control {name}", index, len(self.runs))
            reader = reader_of(ranker) if name == "tokens" else None
            obstacle = _obstacle(ranker, name, reader)
            if obstacle is not None:
                change = self._not_applicable(name, obstacle)
                rows.append(self._row_without_result(run, name, change))
                continue
            key = repr(ranker) if name == "tokens" else name
            if key not in changed:
                changed[key] = self.twin_texts.changed(name, reader)
            rows += self._control_run(ranker, run, name, changed[key])
        report(f"control {name}", len(self.runs), len(self.runs))
        return rows

    def _not_applicable(self, name: str, obstacle: Obstacle) -> ControlChange:
        """Return the change of a control that cannot be applied, with the reason."""
        near = self.near if name == "near-identical" else np.nan
        return ControlChange(outcome="not applicable", obstacle=obstacle, near=near)

    def _row_without_result(self, run: Run, name: str, change: ControlChange) -> Controlled:
        """Return the row of a run for which a control has no result.

        There is a single row for all pairs of groups, under the first pair.
        """
        a, b = self.raw.tilted_pairs[0]
        return Controlled(
            run=run.name, control=name, a=a, b=b, control_change=change, tilts=(), moves=()
        )

    def _audit_again(self, collection: Collection, run: Run) -> Audit:
        """Audit a run over a changed collection, measured and tested as in the raw audit."""
        spec = self.raw.spec
        return audit(
            collection,
            [run],
            self.raw.measures,
            pairs=self.raw.tilted_pairs,
            confounds=False,
            by=spec["by"],
            # Relative Δ takes no margin in ranks, which another primary question may have.
            margin=self.raw.margin_points,
            missing=spec["missing"],
            ties=spec["ties"],
            rounding=spec["rounding"],
            test=spec["test"],
            correction=spec["correction"],
            resamples=spec["resamples"],
            seed=spec["seed"],
        )

    def _control_run(
        self, ranker: Ranker, run: Run, name: str, changed: ChangedCollection
    ) -> list[Controlled]:
        """Audit one run again over a changed collection; a row for each pair of groups."""
        new_run, change = self._rank_again(ranker, run, changed), changed.change
        if new_run is run:
            unchanged = replace(change, outcome="unchanged")
            return [self._raw_row(run, name, unchanged, pair) for pair in self.raw.tilted_pairs]
        try:
            result = self._audit_again(changed.collection, new_run)
        except UserError as error:  # without the left out documents, nothing may be comparable
            failed = replace(change, outcome="nothing left")
            if changed.collection.qrels.height:
                failed = replace(change, outcome="refused", error=str(error))
            return [self._row_without_result(run, name, failed)]
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
                    self._move(result, run.name, measure_index, (a, b))
                    for measure_index in range(len(self.raw.measures))
                ),
            )
            rows.append(row)
        return rows

    def _raw_row(self, run: Run, name: str, change: ControlChange, pair: Pair) -> Controlled:
        """Return the row of a run that a control did not change: its raw tilts, moved by 0."""
        tilts = _tilts(self.raw, run.name, pair)
        moves = []
        for tilt in tilts:
            zero = tilt.value - tilt.value  # 0, or NaN where the tilt is undefined
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

    def _rank_again(self, ranker: Ranker, run: Run, changed: ChangedCollection) -> Run:
        """Rank the changed collection.

        Return the run itself if nothing that the ranker reads changed.
        """
        if changed.left_out:
            return _without_documents(run, changed.left_out)
        new, old = changed.collection, self.collection
        fields = {str(getattr(stage, "text", "title+text")) for stage in stages_of(ranker)}
        if all(new.texts(field).equals(old.texts(field)) for field in fields):
            return run
        # Rankers leave out a query's own document: that with the id of the query. Without the
        # option, they compare texts to see whether equal ids mean the same document. They must not
        # decide otherwise for changed texts, so the rows of the raw collection are stored here.
        for exclude_self in (None, True):
            rows = partial(self_documents, old, exclude_self)
            new.memo(("self documents", exclude_self), rows)
        return ranker.rank(new)

    def _move(self, result: Audit, run: str, measure_index: int, pair: Pair) -> Move:
        """Compute how far Relative Δ moved from the raw audit to the one under the control.

        Only queries that both audits have count. `result` is the audit of this run under the
        control.
        """
        raw = self.raw
        new_index_of = {query: index for index, query in enumerate(result.queries)}
        common = [query for query in raw.queries if query in new_index_of]
        new_indexes = np.array([new_index_of[query] for query in common], dtype=np.int64)
        is_common = [query in new_index_of for query in raw.queries]
        old_indexes = np.flatnonzero(np.array(is_common, dtype=bool))
        new_values, old_values = result.values[0], raw.values[raw.runs.index(run)]
        values = []  # new a, old a, new b, old b
        for name in pair:
            values.append(new_values[measure_index, result.groups.index(name)][new_indexes])
            values.append(old_values[measure_index, raw.groups.index(name)][old_indexes])
        distinct = raw.distinct(run)
        columns = Columns(
            values=np.array(values), distinct=None if distinct is None else distinct[old_indexes]
        )
        if not columns.queries:
            return Move(value=np.nan, low=np.nan, high=np.nan, queries=0)
        notation = repr(raw.measures[measure_index])
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
    """Return what documents add to the new and to the old tilt.

    Both number queries and documents in the same way; `queries` are the queries of both audits.
    Both are None if an audit does not say what documents add.
    """
    new, old = (audit.contributions for audit in audits)
    if new is None or old is None:
        return None, None
    new_numbering, old_numbering = common_numbering([new, old], queries)
    new_key, old_key = ((tilt.run, repr(tilt.estimand), tilt.a, tilt.b) for tilt in tilts)
    return new.clusters_of(new_key, new_numbering), old.clusters_of(old_key, old_numbering)


def _obstacle(ranker: Ranker, name: str, reader: Reader | None) -> Obstacle | None:
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


def _without_documents(run: Run, left_out: frozenset[str]) -> Run:
    """Return a run without the documents of these ids; the documents below them move up."""
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
