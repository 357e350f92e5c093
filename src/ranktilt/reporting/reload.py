"""Load an audit for a report: with its collection, if the files are unchanged, and its runs.

An audit's file keeps the heads of its ranked lists, and no texts. Its *spec* says how it was made:
it names the files that were read, with a hash of each. These are the documents and queries, the
*judgments* (*qrels*: which documents are relevant to a query) and the *labels* by which documents
are grouped. The collection is read again only from files with these hashes: somebody else's audit
must not make a page show your files. A *split* is a named set of judgments, and the *source* of a
document is who wrote it.
"""

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
from ranktilt.auditing.result import Audit
from ranktilt.auditing.sources.source_audits import SourceAudits
from ranktilt.auditing.sources.sources_apart import COMPARED, again_apart
from ranktilt.auditing.storage.provenance import files_of_runs
from ranktilt.data.collection import Collection
from ranktilt.data.files import sha256
from ranktilt.data.labels.label_file import LabelFile
from ranktilt.data.loading.collection_name import NO_QRELS
from ranktilt.data.runs.run import Run, named_apart
from ranktilt.errors import DataError, UserError, counted, list_names, unknown_name
from ranktilt.optional import forbid_fetching

NO_COLLECTION = "The collection could not be opened again: "
"""Beginning of the note on a collection that cannot be opened."""
NO_LISTS = "The ranked lists are left out: the audit keeps none (keep_top=0)."
"""Note on an audit without ranked lists."""
LIBRARY_PREFIXES = ("hub:", "irds:")
"""Beginnings of the names of collections that a library keeps: the Hugging Face hub, ir_datasets.
"""
_LONGEST_NAME = 120
"""Most characters of a file's name in a note."""
_TOLERANCE = 1e-6
"""Largest difference of two values of a measure that counts as none.

It is far below what two swapped documents change, and above what the rounding of another processor
does.
"""


@dataclass(frozen=True)
class LoadedAudit:
    """An audit with its collection and runs, as far as these could be loaded."""

    audit: Audit
    """The audit."""
    collection: Collection | None = None
    """The audited collection; None where its files are gone or have changed."""
    runs: tuple[Run, ...] = ()
    """Runs that the audit keeps, or that were passed, in its order and with distinct names."""
    notes: tuple[str, ...] = ()
    """Sentences for the reader of a report on why the collection or runs are missing."""


@dataclass(frozen=True)
class LoadedSourceAudits:
    """An audit of several sources, with the collection and runs of each as far as they loaded."""

    audit: SourceAudits
    """The audit of all sources."""
    parts: tuple[LoadedAudit, ...]
    """The audit of each source, in the order of the sources."""

    @property
    def collection(self) -> Collection | None:
        """The collection of the first source; None where its files are gone or have changed."""
        return self.parts[0].collection

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on why a collection or runs are missing, each once."""
        return tuple(dict.fromkeys(chain.from_iterable(part.notes for part in self.parts)))


Loaded = LoadedAudit | LoadedSourceAudits
"""An audit that was loaded with its collection and runs."""


def reload_sources(
    result: SourceAudits, path: str | Path | None = None, *, collection: Collection | None = None
) -> LoadedSourceAudits:
    """Load an audit of several sources: split the collection by source, and load each audit.

    `path` is the file of the result, near which a collection is searched. A `collection` that is
    passed must be the audited one (`UserError`).
    """
    was_passed = collection is not None
    try:
        if collection is None:
            with forbid_fetching():  # somebody else's audit may name any collection of a library
                first = result.audits[0]
                collection = _full_collection(first, InputFiles.from_audit(first, path))
        parts = tuple(
            reload(audit, collection=_audited_part(audit, collection)) for audit in result.audits
        )
    except UserError as error:
        if was_passed:
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
    """Load an audit: read its collection again, and take the ranked lists that it keeps.

    Nothing is ranked or downloaded. Files are searched where the audit says; a relative name is
    also searched in the folder of the audit's file, `path`, and in the folders above it. Each file
    must have the hash that it had. A note says what could not be loaded. A `collection` or `runs`
    that are passed must be the audited ones (`UserError`).
    """
    was_passed = collection is not None
    try:
        if collection is None:
            with forbid_fetching():  # somebody else's audit may name any collection of a library
                collection = _collection(audit, InputFiles.from_audit(audit, path))
        collection = tested_part(audit, collection)
        groups, judgments = _groups_and_judgments(audit, collection)
    except UserError as error:
        if was_passed:
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


def _groups_and_judgments(audit: Audit, collection: Collection) -> tuple[Groups, Judgments]:
    """Return the groups and judgments of a collection as an audit has them.

    `UserError` where the collection has other groups or queries than the audit.
    """
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
    """Refuse a run whose values of the measures are not those of the audit."""
    if run.name not in audit.runs:
        raise unknown_name("run of the audit", run.name, audit.runs)
    judged_run = JudgedRun.from_run(run, collection, judgments)
    ties = str(audit.spec.get("ties", "expected"))
    values = group_values(judged_run, audit.measures, groups, ties)
    # Queries that the audit does not count, as its spec says, have no value in it.
    values[:, :, judged_run.left_out(str(audit.spec.get("missing", "zero")))] = np.nan
    expected = audit.values[audit.runs.index(run.name)]
    is_same = np.isclose(values, expected, rtol=0, atol=_TOLERANCE, equal_nan=True)
    differing = int((~is_same.all(axis=(0, 1))).sum())
    if differing:
        share = f"{differing:,} of {counted(len(audit.queries), 'query', 'queries')}"
        fault = f"it gives other values than the audit's for {share}"
        raise UserError(f"run {run.name!r} is not the one that was audited: {fault}")


def _reason(error: UserError) -> str:
    """Return the reason of an error for a page, without content or folders of this machine."""
    if not isinstance(error, DataError):
        return str(error).removesuffix(".")
    line = f"line {error.line} of " if error.line is not None else ""
    return f"{line}{PurePath(error.path).name} is not what was expected"


def _collection(audit: Audit, files: InputFiles) -> Collection:
    """Read the collection of an audit, without the sources that the audit left out."""
    return _audited_part(audit, _full_collection(audit, files))


def _audited_part(audit: Audit, collection: Collection) -> Collection:
    """Leave out of a collection the sources that the audit left out.

    An audit that is one of several has the reference and a single other source.
    """
    spec = audit.spec.get("collection", {})
    if COMPARED in spec:
        reference, *_ = spec[COMPARED]
        (source,) = (name for name in spec["only_sources"] if name != reference)
        return again_apart(collection, source, spec[COMPARED])
    left_out = spec.get("without_sources", ())
    return collection.only_sources(name for name in collection.sources if name not in left_out)


def _full_collection(audit: Audit, files: InputFiles) -> Collection:
    """Read the collection of an audit with all sources, and labels from their file."""
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
    """Return the path of a file; `UserError` where the audit has no hash of it."""
    if name not in files.hashes:
        visible_name = files.visible_name(name)
        raise UserError(f"the audit does not say what was in {visible_name} (it has no hash of it)")
    return files.base / name


def _labels_alone(
    audit: Audit, spec: Mapping[str, Any], labels: LabelFile, files: InputFiles
) -> Collection:
    """Read a collection that has labels and judgments but no texts."""
    from ranktilt.data.formats.judgments.qrels import read_qrels
    from ranktilt.data.labels.label_table import read_labels
    from ranktilt.data.labels.labels import from_labels

    runs = audit.top_results.runs if audit.top_results else ()
    ranked_docs = chain.from_iterable(run.ids for run in runs)
    by = str(spec.get("by", "source"))
    qrels = None
    if "qrels" in spec:
        qrels = read_qrels(_with_columns(_checked_path(files, spec["qrels"]), spec)).drop("line")
    unchanged = replace(labels, path=str(_checked_path(files, str(labels.path))))
    # Queries in the audit's order, which was that of its runs: some of these may be gone.
    return from_labels(
        read_labels(unchanged, by=by),
        queries=audit.queries,
        qrels=qrels,
        by=by,
        labels_file=labels,
        qrels_file=spec.get("qrels"),
        documents=ranked_docs,
    )


def _with_columns(file: Path, spec: Mapping[str, Any]) -> str | Path:
    """Return the path of a file of judgments, followed by the columns that it was read with."""
    return f"{file}:{spec['qrels_read']}" if spec.get("qrels_read") else file


def _loaded(spec: Mapping[str, Any], files: InputFiles) -> Collection:
    """Load a collection by its spec; a mix of several collections from each of them."""
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

    is_in_library = path.startswith(LIBRARY_PREFIXES)
    has_hashes = any(PurePath(name).is_relative_to(path) for name in files.hashes)
    if not is_in_library and not has_hashes:
        # Without a hash, the path could be of any folder of this machine.
        raise UserError("the audit does not say what was in its files (it has no hashes of them)")
    split = spec.get("split")
    qrels: str | Path | None = None
    if spec.get("qrels") == NO_QRELS:
        qrels = NO_QRELS
    elif split in files.hashes:  # then the split is the name of a file of judgments
        qrels = _with_columns(files.base / str(split), spec)
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
    """Refuse a collection with files that were not there at the time of the audit."""
    audited_files = {files.base / name for name in files.hashes}
    for file in map(Path, collection.spec.get("files", ())):
        if file not in audited_files:
            is_inside = file.is_relative_to(files.base)
            name = str(file.relative_to(files.base)) if is_inside else str(file)
            raise UserError(f"{files.visible_name(name)} has been added since the audit")


@dataclass(frozen=True, kw_only=True)
class InputFiles:
    """The files of a collection as an audit names them, and where they are now."""

    hashes: Mapping[str, str]
    """SHA-256 of each file that the audit read, by the path in the audit's spec."""
    folder: str | None
    """Folder of the collection, as the audit names it."""
    base: Path = Path()
    """Folder that relative paths are relative to."""

    @classmethod
    def from_audit(cls, audit: Audit, file: str | Path | None) -> InputFiles:
        """Find the folder in which all of the collection's files are unchanged.

        It is the working directory, or else the folder of the audit's `file` or one above it.

        Raises
        ------
        UserError
            If there is no such folder: names a file that is gone or has changed.
        """
        spec = audit.spec.get("collection", {})
        inputs = audit.spec.get("inputs", ())
        hashes = {str(record["path"]): str(record["sha256"]) for record in inputs}
        names = hashes.keys() - set(files_of_runs(audit.spec.get("runs", ())))
        if str(spec.get("path", "")).startswith(LIBRARY_PREFIXES) and "revision" in spec:
            # The commit identifies the content of the hub's files, so only others are checked.
            names &= {spec.get("split"), spec.get("labels")}
        faults: list[tuple[int, str]] = []  # number of existing files, and what is wrong
        for base in (Path(), *(() if file is None else Path(file).absolute().parents)):
            files = cls(hashes=hashes, folder=spec.get("path"), base=base)
            file_faults = (files._fault(name) for name in hashes if name in names)
            fault = next(filter(None, file_faults), "")
            if not fault:
                return files
            existing_count = sum(os.path.exists(base / name) for name in names)
            faults.append((existing_count, fault))
        # The error is that of the folder with most files, either the working directory or that of
        # the audit's file; in a folder above, a file of the same name is another file.
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
        """Shorten a path to its part within the collection, or else to the file's name.

        A page must not name folders of this machine.
        """
        path = PurePath(name)
        inside = self.folder is not None and path.is_relative_to(self.folder)
        text = str(path.relative_to(str(self.folder))) if inside else path.name
        return text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"
