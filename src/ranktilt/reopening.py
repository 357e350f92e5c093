"""An audit opened again: its collection and runs, where they still are what they were."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.auditing.alignment import Aligned, Judgments, group_values
from ranktilt.auditing.card import Twins
from ranktilt.auditing.groups import ALL, Groups, grouping, twin_rows
from ranktilt.auditing.notes import only_labels
from ranktilt.auditing.random_band import TopRanks, signs_of
from ranktilt.auditing.result import Audit
from ranktilt.collection import Collection
from ranktilt.datasets.named import NO_QRELS
from ranktilt.errors import DataError, UserError, counted, unknown
from ranktilt.measures.head_to_head import PairCounts, pair_counts
from ranktilt.measures.ndsr import PageShare
from ranktilt.models import catalogue as models
from ranktilt.optional import nothing_fetched
from ranktilt.rankers.base import Ranker
from ranktilt.rankers.dense.embedding_server import PREFIX
from ranktilt.rankers.spec import Stage, parse_stages
from ranktilt.registry import RANKERS, ranker
from ranktilt.reporting.opened import Opened
from ranktilt.run import Run
from ranktilt.whereabouts import NAMED, Places

NO_COLLECTION = "The collection could not be opened again: "
_TOLERANCE = 1e-6
"""Far below what one swapped pair changes, above what another processor's rounding does."""
_ENGINES = ("engine", "milvus")
_KEEP = "ranktilt audit --save DIR keeps the run itself"


def reopen(audit: Audit, path: str | Path | None = None, *, runs: bool = True) -> Opened:
    """Open an audit's collection and runs again, as its spec names them.

    Files are looked for where the spec says, and a relative name also beside the audit's file and in the folders above
    it; each must have the hash that it had, so that a file of somebody else's can name no file of yours. A run is taken
    from where ``ranktilt audit --save`` put it, or from its own file, or is ranked again; engines and paid servers are
    not asked again, and nothing is fetched. A run counts only if it gives the audit's values for every query; where
    nothing is judged its counts of twins, and without twins who fills the page.

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
    with nothing_fetched():
        try:
            places = Places.of(audit, None if path is None else Path(path))
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
        If the collection or a run is not the one that was audited, or runs are given and the collection can neither
        be reopened nor was given.
    """
    places = Places(audit, None if path is None else Path(path))
    if collection is None:
        try:
            places = Places.of(audit, places.file)
            with nothing_fetched():
                collection = _collection(audit, places)
        except UserError as error:
            raise UserError(f"the runs need the audit's collection, and {_reason(error)}; give it too") from error
    ground = Ground.of(audit, collection)
    if runs is None:
        with nothing_fetched():
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
        groups = grouping(collection, audit.spec.get("by"), audit.groups)
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
            return "" if self._alike(aligned, number) else "its first ranks hold other groups than the audit says"
        of = counted(len(other), "query", "queries")
        return f"it gives other values than the audit's for {int(other.sum()):,} of {of}"

    def _recounted(self, aligned: Aligned, number: int) -> npt.NDArray[np.bool_]:
        """Queries with other counts of twins than the audit's, for audits without judgments."""
        other = np.zeros(len(self.audit.queries), dtype=np.bool_)
        for (a, b), kept in self.audit.pair_counts.group_by("a", "b"):
            pair = str(a), str(b)
            lists = Twins.of(pair, twin_rows(self.collection, self.groups, pair), self.judgments).lists(aligned, "zero")
            mine = kept.filter(pl.col("run") == self.audit.runs[number])
            for flag, counts in zip((True, False), pair_counts(lists), strict=True):
                before = mine.filter(pl.col("relevant") == flag)
                for name in PairCounts._fields:
                    other |= before[name].to_numpy() != getattr(counts, name)
        return other

    def _alike(self, aligned: Aligned, number: int) -> bool:
        """Whether a run fills the page as the audit says, where that is all that the audit says of it."""
        audit = self.audit
        if audit.measures or audit.pair_counts.height:
            return True
        for said in audit.estimates:
            if said.run != audit.runs[number] or not isinstance(said.estimand, PageShare):
                continue
            page = TopRanks.of(aligned, said.estimand, len(self.groups.code))
            found = page.difference(signs_of(self.groups, (said.a, said.b)))[page.known]
            value = found.mean() if len(found) else np.nan
            if not np.isclose(value, said.value, rtol=0, atol=_TOLERANCE, equal_nan=True):
                return False
        return True


def _reason(error: UserError) -> str:
    """Why in words for a page, which shows neither lines of files nor folders of this machine."""
    if not isinstance(error, DataError):
        return str(error).removesuffix(".")
    where = f"line {error.line} of " if error.line is not None else ""
    return f"{where}{PurePath(error.path).name} is not what was expected"


def _collection(audit: Audit, places: Places) -> Collection:
    spec = audit.spec.get("collection", {})
    if "path" not in spec and "mix" not in spec and "labels" in spec:
        return _labels_alone(audit, spec, places)
    collection = _loaded(spec, places)
    if "labels" not in spec:
        return collection
    from ranktilt.datasets.labels import with_labels

    return with_labels(collection, _beside(places, spec["labels"]), by=audit.spec.get("by") or "source")


def _beside(places: Places, name: str) -> Path:
    """A file of the collection's own, whose hash was found to be right."""
    if name not in places.hashes:
        raise UserError(f"the audit does not say what was in {places.shown(name)} (it has no hash of it)")
    return places.base / name


def _labels_alone(audit: Audit, spec: Mapping[str, Any], places: Places) -> Collection:
    from ranktilt.datasets.labels import from_labels, read_labels
    from ranktilt.io.qrels import read_qrels

    by = str(spec.get("by", "source"))
    qrels = None if "qrels" not in spec else read_qrels(_beside(places, spec["qrels"])).drop("line")
    # In the audit's order: that of the runs, some of which may be gone.
    return from_labels(
        read_labels(_beside(places, spec["labels"]), by=by), queries=audit.queries, qrels=qrels, by=by,
        labels_file=spec["labels"], qrels_file=spec.get("qrels"),
    )  # fmt: skip


def _loaded(spec: Mapping[str, Any], places: Places) -> Collection:
    if "mix" in spec:
        from ranktilt.datasets.mix import mix

        return mix(*(_loaded(part, places) for part in spec["mix"]))
    if "path" not in spec:
        raise UserError("the collection was made in Python and lies in no file (ranktilt.report takes it: collection=)")
    path = str(spec["path"])
    if path == "bundled" and "matched" in spec:
        from ranktilt.datasets.bundled.reader import bundled

        return bundled()
    from ranktilt.datasets.load import load

    named = path.startswith(NAMED)
    if not named:
        _require_hashes(path, places)
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


def _require_hashes(path: str, places: Places) -> None:
    """Refuse a folder of which the audit has no hash: it could be any folder of this machine."""
    if not any(PurePath(name).is_relative_to(path) for name in places.hashes):
        raise UserError("the audit does not say what was in its files (it has no hashes of them)")


def _refuse_new_files(collection: Collection, places: Places) -> None:
    known = {places.base / name for name in places.hashes}
    new = next((file for file in collection.spec.get("files", ()) if Path(file) not in known), None)
    if new is not None:
        raise UserError(f"{places.shown(_from(places.base, new))} has been added since the audit")


def _from(base: Path, file: str) -> str:
    path = Path(file)
    return str(path.relative_to(base)) if path.is_relative_to(base) else file


def _reopened(ground: Ground, number: int, places: Places) -> Run | str:
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


def _saved(ground: Ground, number: int, places: Places) -> Run | None:
    """The run that ``--save`` wrote beside the audit."""
    if places.file is None:
        return None
    for path in sorted((places.file.parent / "runs").glob(f"{number + 1}-*.trec.gz")):
        if not path.is_file() or path.is_symlink():  # a link could lead to any file of this machine
            continue
        run = Run.load(path)
        if run.name == ground.audit.runs[number]:
            return run
    return None


def _from_file(ground: Ground, number: int, places: Places) -> Run | None:
    """The run in the file that it was read from."""
    spec = _told(ground.audit, number)
    if "file" not in spec:
        return None
    file = str(spec["file"])
    path = places.hashed(file)
    if "made_by" in spec and not only_labels(ground.collection):
        return _again(str(spec["ranker"]), {file: path}, places).rank(ground.collection)
    return Run.load(path, score_order=str(spec.get("score_order", "score")))


def _ranked(ground: Ground, number: int, places: Places) -> Run | None:
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


def _again(text: str, files: Mapping[str, Path], places: Places) -> Ranker:
    """The ranker of a text, with its files where they are now, on whatever device there is."""
    try:
        stages = parse_stages(text)
    except UserError as error:
        raise UserError(f"it was made in Python, and not by a ranker's text; {_KEEP}") from error
    return ranker(">>".join(str(_moved(stage, files, places)) for stage in stages))


def _moved(stage: Stage, files: Mapping[str, Path], places: Places) -> Stage:
    argument = stage.argument or ""
    if stage.name in _ENGINES:
        raise UserError(f"an engine is not asked again; {_KEEP}")
    if argument.startswith(PREFIX):
        raise UserError(f"a server is not asked again; {_KEEP}")
    if stage.name not in RANKERS:
        raise UserError(f"{stage.name!r} is no ranker of RankTilt's own, and is not run again; {_KEEP}")
    options = {name: value for name, value in stage.options.items() if name != "device"}
    if stage.name == "replay":
        argument = str(files.get(argument) or places.hashed(argument))
    elif argument and models.model(argument, stage.name) is None:
        argument = str(places.existing(argument))
    return replace(stage, argument=argument or None, options=options)
