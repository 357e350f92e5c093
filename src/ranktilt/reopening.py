"""An audit opened again: its collection and runs, where they still are what they were."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.card import entries
from ranktilt.auditing.evaluate import Aligned, Judgments, group_values
from ranktilt.auditing.groups import ALL, Groups, grouping, twin_rows
from ranktilt.auditing.notes import only_labels
from ranktilt.auditing.result import Audit
from ranktilt.collection import Collection
from ranktilt.data.named import NO_QRELS
from ranktilt.errors import UserError, counted, unknown
from ranktilt.files import sha256
from ranktilt.measures.preference import PairCounts, split_pair_counts
from ranktilt.rankers.base import Ranker
from ranktilt.rankers.embedded import PREFIX
from ranktilt.rankers.stage import Stage, parse_stages
from ranktilt.reporting.opened import Opened
from ranktilt.run import Run
from ranktilt.specs import RANKERS, ranker

NO_COLLECTION = "The collection could not be opened again: "
_TOLERANCE = 1e-6
"""Far below what one swapped pair changes, above what another processor's rounding does."""
_ENGINES = ("engine", "milvus")
_KEEP = "ranktilt audit --save DIR keeps the run itself"


def reopen(audit: Audit, path: str | Path | None = None, *, runs: bool = True) -> Opened:
    """Open an audit's collection and runs again, as its spec names them.

    Files are looked for where the spec says, and a relative name also beside the audit's file and in the folders above
    it; each must have the hash that it had. A run is taken from where ``ranktilt audit --save`` put it, or from its
    own file, or is ranked again; engines and paid servers are not asked again. A run counts only if it gives the
    audit's values for every query.

    Parameters
    ----------
    audit : Audit
        What to open.
    path : str or Path, optional
        The file that it was read from.
    runs : bool, optional
        Whether the runs are wanted too.

    Returns
    -------
    Opened
        With a note for each part that could not be had.
    """
    try:
        places = _Places.of(audit, None if path is None else Path(path))
        ground = Ground.of(audit, _collection(audit, places))
    except UserError as error:
        return Opened(audit, notes=(f"{NO_COLLECTION}{_reason(error)}.",))
    return _opened(ground, [_reopened(ground, number, places) for number in range(len(audit.runs)) if runs])


def with_given(
    audit: Audit, path: str | Path | None, *, collection: Collection | None = None, runs: Iterable[Run] | None = None
) -> Opened:
    """Open an audit with a collection, or runs, that are at hand; what is not given is reopened.

    Parameters
    ----------
    audit : Audit
        What to open.
    path : str, Path or None
        The file that it was read from.
    collection : Collection, optional
        What it was made from.
    runs : iterable of Run, optional
        Its runs, known by their names.

    Returns
    -------
    Opened
        See `reopen`.

    Raises
    ------
    UserError
        If the collection or a run is not the one that was audited.
    """
    places = _Places(audit, None if path is None else Path(path))
    if collection is None:
        try:
            places = _Places.of(audit, places.file)
            collection = _collection(audit, places)
        except UserError as error:
            raise UserError(f"the runs need the audit's collection, and {_reason(error)}; give it too") from error
    ground = Ground.of(audit, collection)
    if runs is None:
        return _opened(ground, [_reopened(ground, number, places) for number in range(len(audit.runs))])
    named = {run.name: run for run in runs}
    strange = next((name for name in named if name not in audit.runs), None)
    if strange is not None:
        raise unknown("run of the audit", strange, audit.runs)
    for number, name in enumerate(audit.runs):
        fault = ground.fault(named[name], number) if name in named else ""
        if fault:
            raise UserError(f"run {name!r} is not the one that was audited: {fault}")
    return _opened(
        ground, [named.get(name, f"the lists of {name} are left out: its run was not given") for name in audit.runs]
    )


def _opened(ground: Ground, found: Sequence[Run | str]) -> Opened:
    runs = tuple(one for one in found if isinstance(one, Run))
    notes = (f"{one[:1].upper()}{one[1:]}." for one in found if isinstance(one, str))
    return Opened(ground.audit, ground.collection, runs, tuple(notes))


@dataclass(frozen=True)
class Ground:
    """A collection that an audit was made on, ready to hold runs against its values."""

    audit: Audit
    collection: Collection
    groups: Groups
    judgments: Judgments

    @classmethod
    def of(cls, audit: Audit, collection: Collection) -> Ground:
        """Join an audit with its collection; `UserError` where they do not belong together."""
        groups = grouping(collection, audit.spec.get("by"))
        judgments = Judgments.of(collection, groups)
        if (ALL, *groups.names) != audit.groups:
            raise UserError(f"the collection has other groups than the audit ({', '.join(groups.names)})")
        if judgments.queries != audit.queries:
            raise UserError("the collection has other queries than the audit")
        return cls(audit, collection, groups, judgments)

    def fault(self, run: Run, number: int) -> str:
        """Say how a run's values differ from those of the audit's run of that number; empty where they do not."""
        try:
            aligned = Aligned.of(run, self.collection, self.judgments)
        except UserError as error:
            return str(error)
        audit = self.audit
        values = group_values(aligned, audit.measures, self.groups, str(audit.spec.get("ties", "expected")))
        values[:, :, aligned.left_out(str(audit.spec.get("missing", "zero")))] = np.nan
        close = np.isclose(values, audit.values[number], rtol=0, atol=_TOLERANCE, equal_nan=True)
        other = ~close.all(axis=(0, 1)) if len(audit.measures) else self._recounted(aligned, number)
        if not other.any():
            return ""
        of = counted(len(other), "query", "queries")
        return f"it gives other values than the audit's for {int(other.sum()):,} of {of}"

    def _recounted(self, aligned: Aligned, number: int) -> npt.NDArray[np.bool_]:
        """Queries with other counts of twins than the audit's, for audits without judgments."""
        other = np.zeros(len(self.audit.queries), dtype=np.bool_)
        held, relevant = entries(aligned), (self.judgments.query, self.judgments.row)
        for (a, b), kept in self.audit.pair_counts.group_by("a", "b"):
            rows = twin_rows(self.collection, self.groups, (str(a), str(b)))
            mine = kept.filter(pl.col("run") == self.audit.runs[number])
            for flag, counts in zip((True, False), split_pair_counts(*held, rows, relevant), strict=True):
                before = mine.filter(pl.col("relevant") == flag)
                for name in PairCounts._fields:
                    other |= before[name].to_numpy() != getattr(counts, name)
        return other


@dataclass(frozen=True)
class _Places:
    """Where the files that an audit names may lie now."""

    audit: Audit
    file: Path | None
    base: Path = Path()
    """What relative names of the collection's files are relative to."""

    @classmethod
    def of(cls, audit: Audit, file: Path | None) -> _Places:
        """Find the folder that all of the collection's files are unchanged in; `UserError` names one that is not."""
        places = cls(audit, file)
        names = [name for name in places.hashes if name not in places._run_files and not places._fetched(name)]
        return replace(places, base=places.found(names))

    @cached_property
    def hashes(self) -> dict[str, str]:
        """SHA-256 of each file that was read, by the name that it had."""
        return {str(one["path"]): str(one["sha256"]) for one in self.audit.spec.get("inputs", ())}

    @cached_property
    def _run_files(self) -> set[str]:
        specs = self.audit.spec.get("runs", ())
        return {str(spec["file"]) for spec in specs if "file" in spec and "ranker" in spec}

    def _fetched(self, name: str) -> bool:
        """Whether a file is the hub's own: its commit says what is in it, and its cache may lie elsewhere."""
        spec = self.audit.spec.get("collection", {})
        return "revision" in spec and name not in (spec.get("split"), spec.get("labels"))

    def found(self, names: Sequence[str]) -> Path:
        """Find the folder from which all of these files are what they were."""
        faults = []
        for base in self._bases():
            fault = next(filter(None, (self._fault(base, name) for name in names)), "")
            if not fault:
                return base
            faults.append((sum((base / name).exists() for name in names), fault))
        # Further up, another file of the same name says nothing about this one.
        raise UserError(max(faults[:2], key=lambda one: one[0])[1])

    def existing(self, name: str) -> Path:
        """Find a file or folder that has no hash: the first of that name, or what it was called."""
        return next((base / name for base in self._bases() if (base / name).exists()), Path(name))

    def _bases(self) -> Iterator[Path]:
        yield Path()
        if self.file is not None:
            yield from self.file.absolute().parents

    def _fault(self, base: Path, name: str) -> str:
        path = base / name
        try:
            if not path.exists():
                return f"{self.shown(name)} is not there any more"
            return "" if sha256(path) == self.hashes[name] else f"{self.shown(name)} has changed since the audit"
        except OSError as error:
            return f"{self.shown(name)} cannot be read: {error.strerror or error}"

    def shown(self, name: str) -> str:
        """Shorten a name to what it is within the collection, or to its last part."""
        path, folder = PurePath(name), self.audit.spec.get("collection", {}).get("path")
        inside = folder is not None and path.is_relative_to(str(folder))
        return str(path.relative_to(str(folder))) if inside else path.name


def _reason(error: UserError) -> str:
    return str(error).removesuffix(".")


def _collection(audit: Audit, places: _Places) -> Collection:
    spec = audit.spec.get("collection", {})
    if "path" not in spec and "mix" not in spec and "labels" in spec:
        return _labels_alone(audit, spec, places)
    collection = _loaded(spec, places)
    if "labels" not in spec:
        return collection
    from ranktilt.data.labelled import with_labels

    return with_labels(collection, places.base / spec["labels"], by=audit.spec.get("by") or "source")


def _labels_alone(audit: Audit, spec: Mapping[str, Any], places: _Places) -> Collection:
    from ranktilt.data.labels import from_labels, read_labels
    from ranktilt.data.qrels import read_qrels

    by = str(spec.get("by", "source"))
    qrels = None if "qrels" not in spec else read_qrels(places.base / spec["qrels"]).drop("line")
    # In the audit's order: that of the runs, some of which may be gone.
    return from_labels(
        read_labels(places.base / spec["labels"], by=by), queries=audit.queries, qrels=qrels, by=by,
        labels_file=spec["labels"], qrels_file=spec.get("qrels"),
    )  # fmt: skip


def _loaded(spec: Mapping[str, Any], places: _Places) -> Collection:
    if "mix" in spec:
        from ranktilt.data.mix import mix

        return mix(*(_loaded(part, places) for part in spec["mix"]))
    if "path" not in spec:
        raise UserError("the collection was made in Python and lies in no file (ranktilt.report takes it: collection=)")
    path = str(spec["path"])
    if path == "bundled" and "matched" in spec:
        from ranktilt.data.bundled.reader import bundled

        return bundled()
    from ranktilt.data.load import load

    named = spec.get("layout") == "irds" or "revision" in spec
    split, none = spec.get("split"), spec.get("qrels") == NO_QRELS
    given = places.base / split if split in places.hashes else None
    collection = load(
        path if named else places.base / path,
        split=None if none or given is not None or path.startswith("irds:") else split,
        qrels=NO_QRELS if none else given,
        ignore_unknown=bool(spec.get("ignore_unknown")),
        docs=str(spec.get("docs", "all")),
        revision=spec.get("revision"),
    )
    if not named:
        _refuse_new_files(collection, places)
    return collection


def _refuse_new_files(collection: Collection, places: _Places) -> None:
    known = {places.base / name for name in places.hashes}
    new = next((file for file in collection.spec.get("files", ()) if known and Path(file) not in known), None)
    if new is not None:
        raise UserError(f"{places.shown(_from(places.base, new))} has been added since the audit")


def _from(base: Path, file: str) -> str:
    path = Path(file)
    return str(path.relative_to(base)) if path.is_relative_to(base) else file


def _reopened(ground: Ground, number: int, places: _Places) -> Run | str:
    """One run, or why it is left out."""
    audit = ground.audit
    name, fault = audit.runs[number], ""
    for get in (_saved, _from_file, _ranked):
        try:
            run = get(ground, number, places)
            if run is None:
                continue
            run = replace(run, spec=_told(audit, number))
            fault = ground.fault(run, number)
            if not fault:
                return run
        except UserError as error:
            fault = _reason(error)
    return f"the lists of {name} are left out: {fault}"


def _saved(ground: Ground, number: int, places: _Places) -> Run | None:
    """The run that ``--save`` wrote beside the audit."""
    if places.file is None:
        return None
    for path in sorted((places.file.parent / "runs").glob(f"{number + 1}-*.trec.gz")):
        run = Run.load(path)
        if run.name == ground.audit.runs[number]:
            return run
    return None


def _from_file(ground: Ground, number: int, places: _Places) -> Run | None:
    """The run in the file that it was read from."""
    spec = _told(ground.audit, number)
    if "file" not in spec:
        return None
    file = str(spec["file"])
    path = places.found([file]) / file if file in places.hashes else places.existing(file)
    if "made_by" in spec and not only_labels(ground.collection):
        return _again(str(spec["ranker"]), {file: path}, places).rank(ground.collection)
    return Run.load(path, score_order=str(spec.get("score_order", "score")))


def _ranked(ground: Ground, number: int, places: _Places) -> Run | None:
    """The run made anew by its ranker."""
    if "file" in _told(ground.audit, number):
        return None
    if only_labels(ground.collection):
        raise UserError("there are no texts to rank")
    made = _again(ground.audit.runs[number], {}, places)
    made.check()
    return made.rank(ground.collection)


def _told(audit: Audit, number: int) -> Mapping[str, Any]:
    """What the audit says of a run."""
    specs = audit.spec.get("runs", ())
    return {**(specs[number] if number < len(specs) else {}), "ranker": audit.runs[number]}


def _again(text: str, files: Mapping[str, Path], places: _Places) -> Ranker:
    """The ranker of a text, with its files where they are now, on whatever device there is."""
    try:
        stages = parse_stages(text)
    except UserError as error:
        raise UserError(f"it was made in Python, and not by a ranker's text; {_KEEP}") from error
    return ranker(">>".join(str(_moved(stage, files, places)) for stage in stages))


def _moved(stage: Stage, files: Mapping[str, Path], places: _Places) -> Stage:
    argument = stage.argument or ""
    if stage.name in _ENGINES:
        raise UserError(f"an engine is not asked again; {_KEEP}")
    if argument.startswith(PREFIX):
        raise UserError(f"a server is not asked again; {_KEEP}")
    if stage.name not in RANKERS:
        raise UserError(f"{stage.name!r} is no ranker of RankTilt's own, and is not run again; {_KEEP}")
    options = {name: value for name, value in stage.options.items() if name != "device"}
    if not argument:
        return replace(stage, options=options)
    return replace(stage, argument=str(files.get(argument) or places.existing(argument)), options=options)
