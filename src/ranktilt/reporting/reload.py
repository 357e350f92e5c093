"""An audit read back for its reports: its collection, where its files are unchanged, and its top results."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from ranktilt.auditing.groups import ALL, Groups, grouping
from ranktilt.auditing.judged_rankings import Aligned, Judgments, group_values
from ranktilt.auditing.options import files_of_runs
from ranktilt.auditing.result import Audit
from ranktilt.auditing.top_results import TopResults
from ranktilt.collection import Collection
from ranktilt.datasets.label_file import LabelFile
from ranktilt.datasets.named import NO_QRELS
from ranktilt.errors import DataError, UserError, counted, unknown
from ranktilt.io.files import sha256
from ranktilt.optional import nothing_fetched
from ranktilt.run import Run, named_apart

NO_COLLECTION = "The collection could not be opened again: "
NO_LISTS = "The ranked lists are left out: the audit keeps none (--keep-top 0)."
_TOLERANCE = 1e-6
"""Far below what one swapped pair changes, above what another processor's rounding does."""


@dataclass(frozen=True)
class LoadedAudit:
    """An audit, and as much of its collection and runs as could be had."""

    audit: Audit
    collection: Collection | None = None
    """None where it is gone or has changed."""
    runs: tuple[Run, ...] = ()
    """As far as the audit keeps them, or as they were given, in its order; told apart by `Run.name`."""
    notes: tuple[str, ...] = ()
    """Why a part is missing, in sentences for the reader of a report."""


def reload(
    audit: Audit,
    path: str | Path | None = None,
    *,
    collection: Collection | None = None,
    runs: Iterable[Run] | None = None,
) -> LoadedAudit:
    """Read an audit's collection again, and put the ranked lists that the audit keeps beside it; nothing is ranked.

    Files are looked for where the audit says, and a relative name also beside the audit's file and in the folders above
    it; each must have the hash that it had, so that a file of somebody else's can name no file of yours. Nothing is
    fetched. What could not be had has a note; what is given and was not audited is refused (`UserError`).
    """
    given = collection is not None or runs is not None
    try:
        if collection is None:
            with nothing_fetched():
                collection = _collection(audit, InputFiles.of(audit, None if path is None else Path(path)))
        ground = _Ground.of(audit, collection)
    except UserError as error:
        if runs is not None and collection is None:
            raise UserError(f"the runs need the audit's collection, and {_reason(error)}; give it too") from error
        if given:
            raise
        return LoadedAudit(audit, notes=(f"{NO_COLLECTION}{_reason(error)}.",))
    if runs is not None:
        return ground.with_runs({run.name: run for run in named_apart(runs)})
    if audit.top_results is None:
        return LoadedAudit(audit, collection, notes=(NO_LISTS,))
    cut = () if audit.top_results.whole else (f"The audit keeps its lists down to rank {audit.top_results.depth:,}.",)
    return LoadedAudit(audit, collection, audit.top_results.runs, cut)


@dataclass(frozen=True)
class _Ground:
    """A collection that an audit was made on, ready to hold runs against what the audit keeps."""

    audit: Audit
    collection: Collection
    groups: Groups
    judgments: Judgments

    @classmethod
    def of(cls, audit: Audit, collection: Collection) -> _Ground:
        """Join an audit with its collection; `UserError` where they do not belong together."""
        groups = grouping(collection, audit.spec.get("by"), audit.groups)
        judgments = Judgments.of(collection, groups)
        if (ALL, *groups.names) != audit.groups:
            raise UserError(f"the collection has other groups than the audit ({', '.join(groups.names)})")
        if judgments.queries != audit.queries:
            raise UserError("the collection has other queries than the audit")
        return cls(audit, collection, groups, judgments)

    def with_runs(self, named: Mapping[str, Run]) -> LoadedAudit:
        """Put runs beside it that were given; `UserError` names one that is not the audit's."""
        strange = next((name for name in named if name not in self.audit.runs), None)
        if strange is not None:
            raise unknown("run of the audit", strange, self.audit.runs)
        for number, name in enumerate(self.audit.runs):
            fault = self._fault(named[name], number) if name in named else ""
            if fault:
                raise UserError(f"run {name!r} is not the one that was audited: {fault}")
        missing = [name for name in self.audit.runs if name not in named]
        notes = (f"The lists of {name} are left out: its run was not given." for name in missing)
        kept = tuple(named[name] for name in self.audit.runs if name in named)
        return LoadedAudit(self.audit, self.collection, kept, tuple(notes))

    def _fault(self, run: Run, number: int) -> str:
        """Say how a run differs from the audit's run of that number; empty where it does not."""
        try:
            aligned = Aligned.of(run, self.collection, self.judgments)
        except UserError as error:
            return str(error)
        audit = self.audit
        if audit.top_results is not None:
            head = TopResults.of([run], audit.top_results.depth).runs[0]
            return "" if _same(head, audit.top_results.runs[number]) else "its lists are not those that the audit keeps"
        values = group_values(aligned, audit.measures, self.groups, str(audit.spec.get("ties", "expected")))
        values[:, :, aligned.left_out(str(audit.spec.get("missing", "zero")))] = np.nan
        close = np.isclose(values, audit.values[number], rtol=0, atol=_TOLERANCE, equal_nan=True)
        other = int((~close.all(axis=(0, 1))).sum())
        of = counted(len(audit.queries), "query", "queries")
        return f"it gives other values than the audit's for {other:,} of {of}" if other else ""


def _same(one: Run, two: Run) -> bool:
    columns = ["query_id", "doc_id", "score"]
    frames = [run.frame().select(columns).sort("query_id", "doc_id") for run in (one, two)]
    return bool(frames[0].equals(frames[1]))


def _reason(error: UserError) -> str:
    """Why in words for a page, which shows neither lines of files nor folders of this machine."""
    if not isinstance(error, DataError):
        return str(error).removesuffix(".")
    where = f"line {error.line} of " if error.line is not None else ""
    return f"{where}{PurePath(error.path).name} is not what was expected"


def _collection(audit: Audit, files: InputFiles) -> Collection:
    collection = _whole(audit, files)
    left = audit.spec.get("collection", {}).get("without_sources", ())
    return collection.only_sources(name for name in collection.sources if name not in left)


def _whole(audit: Audit, files: InputFiles) -> Collection:
    spec = audit.spec.get("collection", {})
    if "path" not in spec and "mix" not in spec and "labels" in spec:
        return _labels_alone(audit, spec, files)
    collection = _loaded(spec, files)
    if "labels" not in spec:
        return collection
    from ranktilt.datasets.labels import with_labels

    labels = replace(_label_file(spec), path=str(_beside(files, spec["labels"])))
    return with_labels(collection, labels, by=audit.spec.get("by") or "source")


def _label_file(spec: Mapping[str, Any]) -> LabelFile:
    return LabelFile(**{**spec.get("label_file", {}), "path": spec["labels"]})


def _beside(files: InputFiles, name: str) -> Path:
    """A file of the collection's own, whose hash was found to be right."""
    if name not in files.hashes:
        raise UserError(f"the audit does not say what was in {files.shown(name)} (it has no hash of it)")
    return files.base / name


def _labels_alone(audit: Audit, spec: Mapping[str, Any], files: InputFiles) -> Collection:
    from ranktilt.datasets.labels import from_labels, read_labels
    from ranktilt.io.qrels import read_qrels

    labels = _label_file(spec)
    ranked = (doc for run in (audit.top_results.runs if audit.top_results else ()) for doc in run.ids)
    by = str(spec.get("by", "source"))
    qrels = None if "qrels" not in spec else read_qrels(_beside(files, spec["qrels"])).drop("line")
    # In the audit's order: that of the runs, some of which may be gone.
    return from_labels(
        read_labels(replace(labels, path=str(_beside(files, spec["labels"]))), by=by), queries=audit.queries,
        qrels=qrels, by=by, labels_file=labels, qrels_file=spec.get("qrels"), documents=ranked,
    )  # fmt: skip


def _loaded(spec: Mapping[str, Any], files: InputFiles) -> Collection:
    if "mix" in spec:
        from ranktilt.datasets.mix import mix

        return mix(*(_loaded(part, files) for part in spec["mix"]))
    if "path" not in spec:
        raise UserError("the collection was made in Python and lies in no file (ranktilt.report takes it: collection=)")
    path = str(spec["path"])
    if path == "bundled" and "matched" in spec:
        from ranktilt.datasets.bundled.reader import bundled

        return bundled()
    from ranktilt.datasets.load import load

    named = path.startswith(NAMED)
    if not named:
        _require_hashes(path, files)
    split, none = spec.get("split"), spec.get("qrels") == NO_QRELS
    given = files.base / split if split in files.hashes else None
    commit = f"@{spec['revision']}" if "revision" in spec else ""
    collection = load(
        f"{path}{commit}" if named else files.base / path,
        split=None if none or given is not None or path.startswith("irds:") else split,
        qrels=NO_QRELS if none else given,
        ignore_unknown=bool(spec.get("ignore_unknown")),
        docs=str(spec.get("docs", "all")),
    )
    if not named:
        _refuse_new_files(collection, files)
    return collection


def _require_hashes(path: str, files: InputFiles) -> None:
    """Refuse a folder of which the audit has no hash: it could be any folder of this machine."""
    if not any(PurePath(name).is_relative_to(path) for name in files.hashes):
        raise UserError("the audit does not say what was in its files (it has no hashes of them)")


def _refuse_new_files(collection: Collection, files: InputFiles) -> None:
    known = {files.base / name for name in files.hashes}
    new = next((file for file in collection.spec.get("files", ()) if Path(file) not in known), None)
    if new is not None:
        raise UserError(f"{files.shown(_from(files.base, new))} has been added since the audit")


def _from(base: Path, file: str) -> str:
    path = Path(file)
    return str(path.relative_to(base)) if path.is_relative_to(base) else file


NAMED = ("hub:", "irds:")
"""How a collection begins that a library keeps."""
_LONGEST = 120


@dataclass(frozen=True)
class InputFiles:
    """Where the files that an audit names may lie now."""

    audit: Audit
    file: Path | None
    base: Path = Path()
    """What relative names of the collection's files are relative to."""

    @classmethod
    def of(cls, audit: Audit, file: Path | None) -> InputFiles:
        """Find the folder that all of the collection's files are unchanged in; `UserError` names one that is not."""
        found = cls(audit, file)
        names = [name for name in found.hashes if name not in found._run_files and not found._fetched(name)]
        return replace(found, base=found.found(names))

    @cached_property
    def hashes(self) -> dict[str, str]:
        """SHA-256 of each file that was read, by the name that it had."""
        return {str(one["path"]): str(one["sha256"]) for one in self.audit.spec.get("inputs", ())}

    @cached_property
    def _run_files(self) -> set[str]:
        return set(files_of_runs(self.audit.spec.get("runs", ())))

    def _fetched(self, name: str) -> bool:
        """Whether a file is the hub's own: its commit says what is in it, and its cache may lie elsewhere."""
        spec = self.audit.spec.get("collection", {})
        return (
            str(spec.get("path", "")).startswith(NAMED)
            and "revision" in spec
            and name not in (spec.get("split"), spec.get("labels"))
        )

    def found(self, names: Sequence[str]) -> Path:
        """Find the folder from which all of these files are what they were."""
        faults = []
        for base in self._bases():
            fault = next(filter(None, (self._fault(base, name) for name in names)), "")
            if not fault:
                return base
            faults.append((sum(os.path.exists(base / name) for name in names), fault))
        # Further up, another file of the same name says nothing about this one.
        raise UserError(max(faults[:2], key=lambda one: one[0])[1])

    def _bases(self) -> Iterator[Path]:
        yield Path()
        if self.file is not None:
            yield from self.file.absolute().parents

    def _fault(self, base: Path, name: str) -> str:
        path = base / name
        try:
            if not os.path.exists(path):
                return f"{self.shown(name)} is not there any more"
            if not path.is_file():
                return f"{self.shown(name)} is no file any more"
            return "" if sha256(path) == self.hashes[name] else f"{self.shown(name)} has changed since the audit"
        except OSError as error:
            return f"{self.shown(name)} cannot be read: {error.strerror or error}"

    def shown(self, name: str) -> str:
        """Shorten a name to what it is within the collection, or to its last part."""
        path, folder = PurePath(name), self.audit.spec.get("collection", {}).get("path")
        inside = folder is not None and path.is_relative_to(str(folder))
        text = str(path.relative_to(str(folder))) if inside else path.name
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
