"""The one call that makes a page people look at: report(results, path)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import orjson

from ranktilt.auditing.result import Audit
from ranktilt.auditing.study import Study
from ranktilt.collection import Collection
from ranktilt.errors import DataError, UserError, shorten
from ranktilt.io.files import read_bytes, require_regular, write_bytes
from ranktilt.probes.validation import Validation
from ranktilt.reporting.reload import reload
from ranktilt.reporting.views.report import Result, report_page
from ranktilt.run import Run

Given = Audit | Validation | Study | str | Path

_WANTED = "an audit, a validation or a study"
_MADE = "ranktilt audit, validate and study write one with --json FILE"
_OTHERS = {
    "ranktilt-comparison": "a comparison of two audits",
    "ranktilt-gate": "the outcome of a gate",
    "ranktilt-calibration": "a calibration",
}


def report(
    results: Given | Sequence[Given],
    path: str | Path,
    *,
    collection: Collection | None = None,
    runs: Run | Iterable[Run] | None = None,
    texts: bool = True,
) -> Path:
    """Write results as one HTML page that opens anywhere, offline.

    Parameters
    ----------
    results : Audit, Validation, Study, str or Path, or a sequence of these
        Results, or the JSON files they were saved in. Several become the parts of one page, in the order given.
    path : str or Path
        The page's file, such as ``report.html``.
    collection : Collection, optional
        What the audit was made from, where it is at hand. By default it is read again from the files that the audit
        names, if they are unchanged; without it queries, ranked lists and texts are left out, and the page says so.
    runs : Run or sequence of Run, optional
        The audit's runs, known by their names. By default as far as the audit keeps its lists (``heads``).
    texts : bool, optional
        Whether queries, ranked lists and documents can be looked through; False keeps them out of the page.

    Returns
    -------
    Path
        The page's file.

    Raises
    ------
    UserError
        If there is nothing to report, or the page would replace one of the results; if a collection or runs are given
        beside several audits, or are not those that were audited.
    DataError
        If a file is no result, or cannot be read.
    """
    listed = [results] if isinstance(results, Audit | Validation | Study | str | Path) else list(results)
    target = Path(path)
    if any(isinstance(one, str | Path) and os.path.realpath(one) == os.path.realpath(target) for one in listed):
        raise UserError(f"{target}: this file is read too; choose another place for the page")
    chosen = [runs] if isinstance(runs, Run) else runs
    page = report_page(opened(listed, collection=collection, runs=chosen), texts=texts)
    write_bytes(target, page.encode())
    return target


def opened(
    results: Sequence[Given],
    *,
    collection: Collection | None = None,
    runs: Iterable[Run] | None = None,
) -> list[Result]:
    """Read results, and the collections of audits.

    Parameters
    ----------
    results : sequence of Audit, Validation, Study, str or Path
        A file that is named twice counts once.
    collection : Collection, optional
    runs : iterable of Run, optional
        As for `report`.

    Returns
    -------
    list of Opened, Validation or Study
        In the order given.

    Raises
    ------
    UserError
        As for `report`.
    """
    named: dict[object, tuple[Any, Path | None]] = {}
    for one in results:
        file = Path(one) if isinstance(one, str | Path) else None
        key = id(one) if file is None else os.path.realpath(file)
        if key not in named:
            named[key] = (one if file is None else read_result(file), file)
    for found, _ in named.values():
        if not isinstance(found, Audit | Validation | Study):
            raise UserError(f"expected {_WANTED}, or its file, got {shorten(found)}")
    if collection is None and runs is None:
        return [reload(one, file) if isinstance(one, Audit) else one for one, file in named.values()]
    audits = sum(isinstance(one, Audit) for one, _ in named.values())
    if audits != 1:
        raise UserError(
            f"a collection or runs go with one audit, got {audits} of them; let the report open them itself"
        )
    return [
        reload(one, file, collection=collection, runs=runs) if isinstance(one, Audit) else one
        for one, file in named.values()
    ]


def read_result(path: str | Path) -> Audit | Validation | Study:
    """Read an audit, a validation or a study, whichever a file holds.

    Parameters
    ----------
    path : str or Path
        A JSON file, plain or gzip, that says its format.

    Returns
    -------
    Audit, Validation or Study
        As their own ``load`` gives it.

    Raises
    ------
    DataError
        If the file cannot be read, or holds something else; says what.
    """
    path = Path(path)
    require_regular(path)
    kind = _format(path)
    if kind == Audit.header.format:
        return Audit.load(path)
    if kind == Validation.header.format:
        return Validation.load(path)
    if kind == Study.header.format:
        return Study.load(path)
    came = _OTHERS.get(str(kind), "JSON without a format" if kind is None else f"format {shorten(kind)}")
    raise DataError(path, f"expected {_WANTED}, got {came}; {_MADE}")


def _format(path: Path) -> Any:
    """What a JSON file says it holds; None where it says nothing."""
    if os.path.isdir(path) and (path / "audit.json").is_file():
        raise DataError(path, f"expected a file, got a folder; name the audit in it: {path / 'audit.json'}")
    if path.name.endswith((".csv", ".csv.gz")):
        raise DataError(path, f"expected {_WANTED} as JSON, got CSV; cells of a paper's table go with --layout NAME")
    data = read_bytes(path)
    if not data.strip():
        raise DataError(path, "the file is empty")
    if data.lstrip(b"\xef\xbb\xbf \r\n\t")[:1] == b"<":
        raise DataError(path, f"expected {_WANTED} as JSON, got HTML; a page is opened with: ranktilt view {path}")
    try:
        content = orjson.loads(data.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError as error:
        raise DataError(path, f"expected {_WANTED} as JSON: {error}; {_MADE}") from error
    return content.get("format") if isinstance(content, dict) else None
