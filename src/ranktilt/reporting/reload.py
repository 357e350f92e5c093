"""An audit read back for its reports: its collection, where its files are unchanged, and its top results."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from ranktilt.auditing.groups import ALL, Groups, grouping
from ranktilt.auditing.judged_run import JudgedRun, group_values
from ranktilt.auditing.judgments import Judgments
from ranktilt.auditing.provenance import files_of_runs
from ranktilt.auditing.result import Audit
from ranktilt.auditing.source_audits import SourceAudits
from ranktilt.auditing.sources_apart import COMPARED, again_apart
from ranktilt.data.collection import Collection
from ranktilt.data.collection_name import NO_QRELS
from ranktilt.data.files import sha256
from ranktilt.data.label_file import LabelFile
from ranktilt.data.run import Run, named_apart
from ranktilt.errors import DataError, UserError, counted, unknown
from ranktilt.optional import nothing_fetched

NO_COLLECTION = "The collection could not be opened again: "
NO_LISTS = "The ranked lists are left out: the audit keeps none (keep_top=0)."
NAMED = ("hub:", "irds:")
"""How a collection begins that a library keeps."""
_LONGEST = 120
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


@dataclass(frozen=True)
class LoadedSourceAudits:
    """Audits of several sources, each with as much of its collection and runs as could be had."""

    audit: SourceAudits
    parts: tuple[LoadedAudit, ...]
    """One per source, in the order of the result's."""

    @property
    def collection(self) -> Collection | None:
        """That of the first source; None where the whole is gone or has changed."""
        return self.parts[0].collection

    @property
    def notes(self) -> tuple[str, ...]:
        """Why a part is missing, each reason once."""
        return tuple(dict.fromkeys(note for part in self.parts for note in part.notes))


Loaded = LoadedAudit | LoadedSourceAudits


def reload_sources(
    result: SourceAudits, path: str | Path | None = None, *, collection: Collection | None = None
) -> LoadedSourceAudits:
    """Read the collection of several sources again, and take it apart as it was audited; see `reload`."""
    is_given = collection is not None
    try:
        if collection is None:
            with nothing_fetched():
                first = result.audits[0]
                collection = _whole_collection(first, InputFiles.of(first, path))
        parts = tuple(
            reload(audit, collection=_audited_part(audit, collection)) for audit in result.audits
        )
    except UserError as error:
        if is_given:
            raise
        note = f"{NO_COLLECTION}{_reason(error)}."
        parts = tuple(LoadedAudit(audit, notes=(note,)) for audit in result.audits)
    return LoadedSourceAudits(result, parts)


def reload(
    audit: Audit,
    path: str | Path | None = None,
    *,
    collection: Collection | None = None,
    runs: Iterable[Run] | None = None,
) -> LoadedAudit:
    """Read an audit's collection again, and put the ranked lists that the audit keeps beside it; nothing is ranked.

    Files are looked for where the audit says, and a relative name also beside the audit's file and
    in the folders above it; each must have the hash that it had, so that a file of somebody else's
    can name no file of yours. Nothing is fetched. What could not be had has a note; what is given
    and was not audited is refused (`UserError`).
    """
    given = collection is not None
    try:
        if collection is None:
            with nothing_fetched():
                collection = _collection(audit, InputFiles.of(audit, path))
        groups, judgments = _joined(audit, collection)
    except UserError as error:
        if given:
            raise
        if runs is not None:
            raise UserError(
                f"runs need the audit's collection, and {_reason(error)}; pass it too"
            ) from error
        return LoadedAudit(audit, notes=(f"{NO_COLLECTION}{_reason(error)}.",))
    if runs is not None:
        named = {run.name: run for run in named_apart(runs)}
        _require_audited(audit, named, collection, groups, judgments)
        notes = (
            f"The lists of {name} are left out: its run was not given."
            for name in audit.runs
            if name not in named
        )
        kept = tuple(named[name] for name in audit.runs if name in named)
        return LoadedAudit(audit, collection, kept, tuple(notes))
    if audit.top_results is None:
        return LoadedAudit(audit, collection, notes=(NO_LISTS,))
    cut = (
        ()
        if audit.top_results.whole
        else (f"The audit keeps its lists down to rank {audit.top_results.depth:,}.",)
    )
    return LoadedAudit(audit, collection, audit.top_results.runs, cut)


def _joined(audit: Audit, collection: Collection) -> tuple[Groups, Judgments]:
    """Join an audit with its collection; `UserError` where they do not belong together."""
    groups = grouping(collection, audit.spec.get("by"), audit.groups, fewest=1)
    judgments = Judgments.from_collection(collection, groups)
    if (ALL, *groups.names) != audit.groups:
        raise UserError(
            f"the collection has other groups than the audit ({', '.join(groups.names)})"
        )
    if judgments.queries != audit.queries:
        raise UserError("the collection has other queries than the audit")
    return groups, judgments


def _require_audited(
    audit: Audit,
    named: Mapping[str, Run],
    collection: Collection,
    groups: Groups,
    judgments: Judgments,
) -> None:
    """Refuse runs that give other values than the audit's."""
    for name, run in named.items():
        if name not in audit.runs:
            raise unknown("run of the audit", name, audit.runs)
        aligned = JudgedRun.from_run(run, collection, judgments)
        values = group_values(
            aligned, audit.measures, groups, str(audit.spec.get("ties", "expected"))
        )
        values[:, :, aligned.left_out(str(audit.spec.get("missing", "zero")))] = np.nan
        expected = audit.values[audit.runs.index(name)]
        other = int(
            (
                ~np.isclose(values, expected, rtol=0, atol=_TOLERANCE, equal_nan=True).all(
                    axis=(0, 1)
                )
            ).sum()
        )
        if other:
            which = f"{other:,} of {counted(len(audit.queries), 'query', 'queries')}"
            fault = f"it gives other values than the audit's for {which}"
            raise UserError(f"run {name!r} is not the one that was audited: {fault}")


def _reason(error: UserError) -> str:
    """Why in words for a page, which shows neither lines of files nor folders of this machine."""
    if not isinstance(error, DataError):
        return str(error).removesuffix(".")
    where = f"line {error.line} of " if error.line is not None else ""
    return f"{where}{PurePath(error.path).name} is not what was expected"


def _collection(audit: Audit, files: InputFiles) -> Collection:
    return _audited_part(audit, _whole_collection(audit, files))


def _audited_part(audit: Audit, collection: Collection) -> Collection:
    """Leave out of a whole collection what the audit left out."""
    spec = audit.spec.get("collection", {})
    if COMPARED in spec:
        reference, *_ = spec[COMPARED]
        (source,) = (name for name in spec["only_sources"] if name != reference)
        return again_apart(collection, source, spec[COMPARED])
    left = spec.get("without_sources", ())
    return collection.only_sources(name for name in collection.sources if name not in left)


def _whole_collection(audit: Audit, files: InputFiles) -> Collection:
    from ranktilt.data.labels import with_labels, with_names

    spec = audit.spec.get("collection", {})
    labels = (
        LabelFile(**{**spec.get("label_file", {}), "path": spec["labels"]})
        if "labels" in spec
        else None
    )
    if labels is not None and "path" not in spec and "mix" not in spec:
        collection = _labels_alone(audit, spec, labels, files)
    else:
        collection = _loaded(spec, files)
        if "label_names" in spec:
            collection = with_names(collection, spec["label_names"], by=spec["labels_named"])
        if labels is not None:
            beside = replace(labels, path=str(_beside(files, str(labels.path))))
            collection = with_labels(collection, beside, by=audit.spec.get("by") or "source")
    return collection


def _beside(files: InputFiles, name: str) -> Path:
    """A file of the collection's own, whose hash was found to be right."""
    if name not in files.hashes:
        raise UserError(
            f"the audit does not say what was in {files.shown(name)} (it has no hash of it)"
        )
    return files.base / name


def _labels_alone(
    audit: Audit, spec: Mapping[str, Any], labels: LabelFile, files: InputFiles
) -> Collection:
    from ranktilt.data.formats.qrels import read_qrels
    from ranktilt.data.label_table import read_labels
    from ranktilt.data.labels import from_labels

    ranked = (
        doc for run in (audit.top_results.runs if audit.top_results else ()) for doc in run.ids
    )
    by = str(spec.get("by", "source"))
    qrels = None
    if "qrels" in spec:
        qrels = read_qrels(_with_pairs(_beside(files, spec["qrels"]), spec)).drop("line")
    # In the audit's order: that of the runs, some of which may be gone.
    return from_labels(
        read_labels(replace(labels, path=str(_beside(files, str(labels.path)))), by=by),
        queries=audit.queries,
        qrels=qrels,
        by=by,
        labels_file=labels,
        qrels_file=spec.get("qrels"),
        documents=ranked,
    )


def _with_pairs(file: Path, spec: Mapping[str, Any]) -> str | Path:
    """Return a file of judgments with what was said of its columns."""
    return f"{file}:{spec['qrels_read']}" if spec.get("qrels_read") else file


def _loaded(spec: Mapping[str, Any], files: InputFiles) -> Collection:
    if "mix" in spec:
        from ranktilt.data.mix import mix

        return mix(*(_loaded(part, files) for part in spec["mix"]))
    if "path" not in spec:
        raise UserError(
            "the collection was made in Python and is in no file (pass it: ranktilt.report(…, collection=…))"
        )
    path = str(spec["path"])
    if path == "bundled" and "matched" in spec:
        from ranktilt.data.bundled.reader import bundled

        return bundled()
    from ranktilt.data.load import load

    named = path.startswith(NAMED)
    if not named and not any(PurePath(name).is_relative_to(path) for name in files.hashes):
        # It could be any folder of this machine.
        raise UserError("the audit does not say what was in its files (it has no hashes of them)")
    split, none = spec.get("split"), spec.get("qrels") == NO_QRELS
    given = _with_pairs(files.base / str(split), spec) if split in files.hashes else None
    commit = f"@{spec['revision']}" if "revision" in spec else ""
    collection = load(
        f"{path}{commit}" if named else files.base / path,
        split=None if none or given is not None or path.startswith("irds:") else split,
        qrels=NO_QRELS if none else given,
        ignore_unknown=bool(spec.get("ignore_unknown")),
        docs=str(spec.get("docs", "all")),
    )
    known = {files.base / name for name in files.hashes}
    new = next(
        (Path(file) for file in collection.spec.get("files", ()) if Path(file) not in known), None
    )
    if new is not None and not named:
        shown = str(new.relative_to(files.base)) if new.is_relative_to(files.base) else str(new)
        raise UserError(f"{files.shown(shown)} has been added since the audit")
    return collection


@dataclass(frozen=True)
class InputFiles:
    """The files of a collection as an audit names them, and where they lie now."""

    hashes: Mapping[str, str]
    """SHA-256 of each file that was read, by the name that it had."""
    folder: str | None
    """The collection's, as the audit names it."""
    base: Path = Path()
    """What relative names are relative to."""

    @classmethod
    def of(cls, audit: Audit, file: str | Path | None) -> InputFiles:
        """Find the folder that all of the collection's files are unchanged in; `UserError` names one that is not."""
        spec = audit.spec.get("collection", {})
        hashes = {str(one["path"]): str(one["sha256"]) for one in audit.spec.get("inputs", ())}
        names = hashes.keys() - set(files_of_runs(audit.spec.get("runs", ())))
        if str(spec.get("path", "")).startswith(NAMED) and "revision" in spec:
            names &= {
                spec.get("split"),
                spec.get("labels"),
            }  # the commit says what is in the hub's own files
        faults = []
        for base in (Path(), *(() if file is None else Path(file).absolute().parents)):
            found = cls(hashes, spec.get("path"), base)
            fault = next(
                filter(None, map(found._fault, (name for name in hashes if name in names))), ""
            )
            if not fault:
                return found
            faults.append((sum(os.path.exists(base / name) for name in names), fault))
        # Further up, another file of the same name says nothing about this one.
        raise UserError(max(faults[:2], key=lambda one: one[0])[1])

    def _fault(self, name: str) -> str:
        path = self.base / name
        if not os.path.isfile(path):
            return f"{self.shown(name)} is not there any more"
        try:
            return (
                ""
                if sha256(path) == self.hashes[name]
                else f"{self.shown(name)} has changed since the audit"
            )
        except OSError as error:
            return f"{self.shown(name)} cannot be read: {error.strerror or error}"

    def shown(self, name: str) -> str:
        """Shorten a name to what it is within the collection, or to its last part: no folder of this machine."""
        path = PurePath(name)
        inside = self.folder is not None and path.is_relative_to(self.folder)
        text = str(path.relative_to(str(self.folder))) if inside else path.name
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
