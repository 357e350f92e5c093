"""An audit loaded for its reports: its collection, if the files are unchanged, and its lists."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from ranktilt.auditing.grouping.labels import grouping
from ranktilt.auditing.groups import ALL, Groups
from ranktilt.auditing.judged_run import JudgedRun, group_values
from ranktilt.auditing.judgments import Judgments
from ranktilt.auditing.notes import without_fitted
from ranktilt.auditing.provenance import files_of_runs
from ranktilt.auditing.result import Audit
from ranktilt.auditing.source_audits import SourceAudits
from ranktilt.auditing.sources_apart import COMPARED, again_apart
from ranktilt.data.collection import Collection
from ranktilt.data.files import sha256
from ranktilt.data.labels.label_file import LabelFile
from ranktilt.data.loading.collection_name import NO_QRELS
from ranktilt.data.runs.run import Run, named_apart
from ranktilt.errors import DataError, UserError, counted, list_names, unknown
from ranktilt.optional import forbid_fetching

NO_COLLECTION = "The collection could not be opened again: "
"""Beginning of the note on a collection that cannot be opened."""
NO_LISTS = "The ranked lists are left out: the audit keeps none (keep_top=0)."
"""Note on an audit without ranked lists."""
NAMED = ("hub:", "irds:")
"""How a collection begins that a library keeps."""
_LONGEST_REASON = 120
"""Most characters of a reason."""
_TOLERANCE = 1e-6
"""Far below what one swapped pair changes, above what another processor's rounding does."""


@dataclass(frozen=True)
class LoadedAudit:
    """An audit, and as much of its collection and runs as could be had."""

    audit: Audit
    """The audit."""
    collection: Collection | None = None
    """None where it is gone or has changed."""
    runs: tuple[Run, ...] = ()
    """Runs that the audit keeps, or that were passed, in its order and with distinct names."""
    notes: tuple[str, ...] = ()
    """Why a part is missing, in sentences for the reader of a report."""


@dataclass(frozen=True)
class LoadedSourceAudits:
    """Audits of several sources, each with as much of its collection and runs as could be had."""

    audit: SourceAudits
    """The audits."""
    parts: tuple[LoadedAudit, ...]
    """One per source, in the order of the result's."""

    @property
    def collection(self) -> Collection | None:
        """That of the first source; None where the whole is gone or has changed."""
        return self.parts[0].collection

    @property
    def notes(self) -> tuple[str, ...]:
        """Why a part is missing, each reason once."""
        return tuple(dict.fromkeys(chain.from_iterable(part.notes for part in self.parts)))


Loaded = LoadedAudit | LoadedSourceAudits
"""An audit that was opened with its collection and runs."""


def reload_sources(
    result: SourceAudits, path: str | Path | None = None, *, collection: Collection | None = None
) -> LoadedSourceAudits:
    """Read a collection of several sources again, and take it apart as audited; see `reload`."""
    is_given = collection is not None
    try:
        if collection is None:
            with forbid_fetching():
                first = result.audits[0]
                collection = _whole_collection(first, InputFiles.from_audit(first, path))
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
    """Read an audit's collection again, and add the ranked lists that the audit keeps.

    Nothing is ranked.

    Files are looked for where the audit says, and a relative name also beside the audit's file and
    in the folders above it; each must have the hash that it had, so that a file of somebody else's
    can name no file of yours. Nothing is fetched. What could not be had has a note; what is given
    and was not audited is refused (`UserError`).
    """
    is_given = collection is not None
    try:
        if collection is None:
            with forbid_fetching():
                collection = _collection(audit, InputFiles.from_audit(audit, path))
        collection = tested_part(audit, collection)
        groups, judgments = _joined(audit, collection)
    except UserError as error:
        if is_given:
            raise
        if runs is not None:
            raise UserError(
                f"runs need the audit's collection, and {_reason(error)}; pass it too"
            ) from error
        return LoadedAudit(audit, notes=(f"{NO_COLLECTION}{_reason(error)}.",))
    if runs is not None:
        runs_by_name = {run.name: run for run in named_apart(runs)}
        for run in runs_by_name.values():
            _require_audited(audit, run, collection, groups=groups, judgments=judgments)
        return _with_runs(audit, collection, runs_by_name)
    if audit.top_results is None:
        return LoadedAudit(audit, collection, notes=(NO_LISTS,))
    notes: tuple[str, ...] = ()
    if not audit.top_results.is_complete:
        notes = (f"The audit keeps its lists down to rank {audit.top_results.depth:,}.",)
    return LoadedAudit(audit, collection, audit.top_results.runs, notes)


def tested_part(audit: Audit, collection: Collection) -> Collection:
    """Leave out of a collection the queries that a run of the audit was fitted on."""
    return without_fitted(collection, audit.spec.get("runs", ()))[0]


def _with_runs(
    audit: Audit, collection: Collection, runs_by_name: Mapping[str, Run]
) -> LoadedAudit:
    """Return an audit with the runs that were passed, and a note for each that was not."""
    runs, notes = [], []
    for name in audit.runs:
        if name in runs_by_name:
            runs.append(runs_by_name[name])
        else:
            notes.append(f"The lists of {name} are left out: its run was not given.")
    return LoadedAudit(audit, collection, tuple(runs), tuple(notes))


def _joined(audit: Audit, collection: Collection) -> tuple[Groups, Judgments]:
    """Join an audit with its collection; `UserError` where they do not belong together."""
    groups = grouping(collection, audit.spec.get("by"), audit.groups, fewest=1)
    judgments = Judgments.from_collection(collection, groups)
    if (ALL, *groups.names) != audit.groups:
        raise UserError(
            f"the collection has other groups than the audit ({list_names(groups.names)})"
        )
    if judgments.queries != audit.queries:
        raise UserError("the collection has other queries than the audit")
    return groups, judgments


def _require_audited(
    audit: Audit, run: Run, collection: Collection, *, groups: Groups, judgments: Judgments
) -> None:
    """Refuse a run that gives other values than the audit's."""
    if run.name not in audit.runs:
        raise unknown("run of the audit", run.name, audit.runs)
    judged_run = JudgedRun.from_run(run, collection, judgments)
    ties = str(audit.spec.get("ties", "expected"))
    values = group_values(judged_run, audit.measures, groups, ties)
    values[:, :, judged_run.left_out(str(audit.spec.get("missing", "zero")))] = np.nan
    expected = audit.values[audit.runs.index(run.name)]
    is_same = np.isclose(values, expected, rtol=0, atol=_TOLERANCE, equal_nan=True)
    differing = int((~is_same.all(axis=(0, 1))).sum())
    if differing:
        share = f"{differing:,} of {counted(len(audit.queries), 'query', 'queries')}"
        fault = f"it gives other values than the audit's for {share}"
        raise UserError(f"run {run.name!r} is not the one that was audited: {fault}")


def _reason(error: UserError) -> str:
    """Say why, for a page: it shows neither lines of files nor folders of this machine."""
    if not isinstance(error, DataError):
        return str(error).removesuffix(".")
    where = f"line {error.line} of " if error.line is not None else ""
    return f"{where}{PurePath(error.path).name} is not what was expected"


def _collection(audit: Audit, files: InputFiles) -> Collection:
    """Open the collection of an audit, as it was audited."""
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
    """Open the collection of an audit, with labels from a file of their own."""
    from ranktilt.data.labels.labels import with_labels, with_names

    spec = audit.spec.get("collection", {})
    labels = None
    if "labels" in spec:
        labels = LabelFile(**{**spec.get("label_file", {}), "path": spec["labels"]})
    if labels is not None and "path" not in spec and "mix" not in spec:
        collection = _labels_alone(audit, spec, labels, files)
    else:
        collection = _loaded(spec, files)
        if "label_names" in spec:
            collection = with_names(collection, spec["label_names"], by=spec["labels_named"])
        if labels is not None:
            unchanged = replace(labels, path=str(_checked_path(files, str(labels.path))))
            collection = with_labels(collection, unchanged, by=audit.spec.get("by") or "source")
    return collection


def _checked_path(files: InputFiles, name: str) -> Path:
    """Return the path of a file that belongs to the collection and has the right hash."""
    if name not in files.hashes:
        visible_name = files.visible_name(name)
        raise UserError(f"the audit does not say what was in {visible_name} (it has no hash of it)")
    return files.base / name


def _labels_alone(
    audit: Audit, spec: Mapping[str, Any], labels: LabelFile, files: InputFiles
) -> Collection:
    """Make a collection of labels and judgments: the audit had no texts."""
    from ranktilt.data.formats.judgments.qrels import read_qrels
    from ranktilt.data.labels.label_table import read_labels
    from ranktilt.data.labels.labels import from_labels

    runs = audit.top_results.runs if audit.top_results else ()
    ranked_docs = chain.from_iterable(run.ids for run in runs)
    by = str(spec.get("by", "source"))
    qrels = None
    if "qrels" in spec:
        qrels = read_qrels(_with_pairs(_checked_path(files, spec["qrels"]), spec)).drop("line")
    unchanged = replace(labels, path=str(_checked_path(files, str(labels.path))))
    # In the audit's order: that of the runs, some of which may be gone.
    return from_labels(
        read_labels(unchanged, by=by),
        queries=audit.queries,
        qrels=qrels,
        by=by,
        labels_file=labels,
        qrels_file=spec.get("qrels"),
        documents=ranked_docs,
    )


def _with_pairs(file: Path, spec: Mapping[str, Any]) -> str | Path:
    """Return a file of judgments, followed by the columns that were named for it."""
    return f"{file}:{spec['qrels_read']}" if spec.get("qrels_read") else file


def _loaded(spec: Mapping[str, Any], files: InputFiles) -> Collection:
    """Load a collection by its spec, also one that is a mix of several."""
    if "mix" in spec:
        from ranktilt.data.mix import mix

        return mix(*(_loaded(part, files) for part in spec["mix"]))
    if "path" not in spec:
        raise UserError(
            "the collection was made in Python and is in no file "
            "(pass it: ranktilt.report(…, collection=…))"
        )
    path = str(spec["path"])
    if path == "bundled" and "matched" in spec:
        from ranktilt.data.bundled.reader import bundled

        return bundled()
    from ranktilt.data.loading.load import load

    is_in_library = path.startswith(NAMED)
    has_hashes = any(PurePath(name).is_relative_to(path) for name in files.hashes)
    if not is_in_library and not has_hashes:
        # It could be any folder of this machine.
        raise UserError("the audit does not say what was in its files (it has no hashes of them)")
    split = spec.get("split")
    qrels: str | Path | None = None
    if spec.get("qrels") == NO_QRELS:
        qrels = NO_QRELS
    elif split in files.hashes:
        # The split was a file of judgments.
        qrels = _with_pairs(files.base / str(split), spec)
    commit = f"@{spec['revision']}" if "revision" in spec else ""
    collection = load(
        f"{path}{commit}" if is_in_library else files.base / path,
        split=None if qrels is not None or path.startswith("irds:") else split,
        qrels=qrels,
        ignore_unknown=bool(spec.get("ignore_unknown")),
        docs=str(spec.get("docs", "all")),
    )
    if not is_in_library:
        _require_no_new_files(collection, files)
    return collection


def _require_no_new_files(collection: Collection, files: InputFiles) -> None:
    """Raise a `UserError` if a folder holds more files than at the time of the audit."""
    known = {files.base / name for name in files.hashes}
    for file in map(Path, collection.spec.get("files", ())):
        if file not in known:
            is_inside = file.is_relative_to(files.base)
            name = str(file.relative_to(files.base)) if is_inside else str(file)
            raise UserError(f"{files.visible_name(name)} has been added since the audit")


@dataclass(frozen=True, kw_only=True)
class InputFiles:
    """The files of a collection as an audit names them, and where they lie now."""

    hashes: Mapping[str, str]
    """SHA-256 of each file that was read, by the name that it had."""
    folder: str | None
    """Folder of the collection, as the audit names it."""
    base: Path = Path()
    """Folder of relative names."""

    @classmethod
    def from_audit(cls, audit: Audit, file: str | Path | None) -> InputFiles:
        """Find the folder in which all of the collection's files are unchanged.

        Raises
        ------
        UserError
            If there is none: names a file that is gone or has changed.
        """
        spec = audit.spec.get("collection", {})
        inputs = audit.spec.get("inputs", ())
        hashes = {str(record["path"]): str(record["sha256"]) for record in inputs}
        names = hashes.keys() - set(files_of_runs(audit.spec.get("runs", ())))
        if str(spec.get("path", "")).startswith(NAMED) and "revision" in spec:
            # The commit says what is in the hub's own files.
            names &= {spec.get("split"), spec.get("labels")}
        faults: list[tuple[int, str]] = []
        for base in (Path(), *(() if file is None else Path(file).absolute().parents)):
            files = cls(hashes=hashes, folder=spec.get("path"), base=base)
            file_faults = (files._fault(name) for name in hashes if name in names)
            fault = next(filter(None, file_faults), "")
            if not fault:
                return files
            existing = sum(os.path.exists(base / name) for name in names)
            faults.append((existing, fault))
        # Further up, another file of the same name says nothing about this one.
        _, fault = max(faults[:2], key=lambda count_and_fault: count_and_fault[0])
        raise UserError(fault)

    def _fault(self, name: str) -> str:
        """Say why a file cannot be used; empty where it is unchanged."""
        path, visible_name = self.base / name, self.visible_name(name)
        if not os.path.isfile(path):
            return f"{visible_name} is not there any more"
        try:
            is_unchanged = sha256(path) == self.hashes[name]
        except OSError as error:
            return f"{visible_name} cannot be read: {error.strerror or error}"
        return "" if is_unchanged else f"{visible_name} has changed since the audit"

    def visible_name(self, name: str) -> str:
        """Shorten a name to its part within the collection, or to its last part.

        A page names no folder of this machine.
        """
        path = PurePath(name)
        inside = self.folder is not None and path.is_relative_to(self.folder)
        text = str(path.relative_to(str(self.folder))) if inside else path.name
        return text if len(text) <= _LONGEST_REASON else f"{text[: _LONGEST_REASON - 1]}…"
