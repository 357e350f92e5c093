"""Collections of ir_datasets: its documents, queries and judgments, streamed through its own interface."""

from __future__ import annotations

import difflib
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NoReturn

import polars as pl

from ranktilt.data.assemble import judged, unjudged
from ranktilt.data.collection import Collection
from ranktilt.data.formats.columns import whole_or_fractions
from ranktilt.data.formats.qrels import read_qrels
from ranktilt.data.named import NO_QRELS, Named, Wanted
from ranktilt.errors import DataWarning, UserError, counted, shorten, unknown
from ranktilt.optional import may_fetch, need
from ranktilt.progress import report

_CHUNK = 50_000
_SHOWN = 12
_BODIES = ("text", "body")
_AGREE = "confirm you agree"


def load_irds(name: Named, wanted: Wanted) -> Collection:
    """Load a collection of ir_datasets; its id, such as ``beir/scifact/test``, names the subset too."""
    if wanted.split is not None:
        raise UserError(
            f"{name}: an ir_datasets id contains its split, such as beir/scifact/test; omit --split"
        )
    with open_library(name) as library:
        dataset = find_dataset(
            library, name, ["docs", "queries"] + ["qrels"] * (wanted.qrels is None)
        )
        if str(wanted.qrels) == NO_QRELS:
            qrels, split = None, NO_QRELS
        else:
            qrels = (
                dataset_qrels(dataset, name) if wanted.qrels is None else read_qrels(wanted.qrels)
            )
            split = name.id.rpartition("/")[2] if wanted.qrels is None else str(wanted.qrels)
        queries = dataset_queries(dataset)
        only = None
        if wanted.docs == "judged":
            if qrels is None:
                raise UserError(f"{name}: docs 'judged' needs judgments")
            only = set(qrels["doc_id"])
        docs, total = _docs(dataset, only)
    spec: dict[str, Any] = {"path": str(name), "layout": "irds", "ir_datasets": library.__version__}
    if only is not None:
        spec |= {"docs": "judged", "docs_of": total}
    if qrels is None:
        return unjudged(docs, queries, {**spec, "qrels": NO_QRELS})
    spec |= {"split": split} if wanted.qrels is None else {"split": split, "files": [split]}
    where = str(name) if wanted.qrels is None else str(wanted.qrels)
    return judged(
        (docs, docs["id"]), queries, qrels, where, spec=spec, ignore_unknown=wanted.ignore_unknown
    )


@contextmanager
def open_library(name: Named) -> Iterator[Any]:
    """Give ir_datasets; what it would print is kept for the error, and what it asks to agree to becomes a warning."""
    said: list[str] = []

    def hear(record: logging.LogRecord) -> bool:
        text = " ".join(record.getMessage().split())
        said.append(text)
        if _AGREE in text:
            warnings.warn(f"{name}: {text}", DataWarning, stacklevel=4)
        return False

    logger = logging.getLogger("ir_datasets")
    logger.addFilter(hear)
    try:
        library = need("ir_datasets", extra="datasets", for_=str(name))
        try:
            with nullcontext() if may_fetch() else _held_back(library):
                yield library
        except UserError:
            raise
        except Exception as error:  # whatever the library's many formats raise
            raise _failed(name, error, said, library.util.home_path()) from error
    finally:
        logger.removeFilter(hear)


@contextmanager
def _held_back(library: Any) -> Iterator[None]:
    """Let ir_datasets read what it has, and reach for nothing else: each of its ways to a network ends here."""

    def refuse(self: object) -> NoReturn:
        raise PermissionError("nothing is fetched for a report")

    download = library.util.download
    far = (
        download.RequestsDownload,
        download.GoogleDriveDownload,
        download.GoogleCloudBucketStream,
    )
    before = [kind.stream for kind in far]
    for kind in far:
        kind.stream = refuse
    try:
        yield
    finally:
        for kind, stream in zip(far, before, strict=True):
            kind.stream = stream


def _failed(name: Named, error: Exception, said: list[str], home: Path) -> UserError:
    told = next((text for text in reversed(said) if str(home) in text), "").removesuffix(".")
    reason = told or " ".join((str(error).strip() or type(error).__name__).split())
    keeps = f"ir_datasets keeps its files in {home} (IR_DATASETS_HOME names another place)"
    return UserError(
        f"{name}: cannot be read: {shorten(reason, 400).strip(chr(34) + chr(39))}; {keeps}"
    )


def find_dataset(library: Any, name: Named, kinds: list[str]) -> Any:
    """Return a data set of the library that has what is wanted: ``docs``, ``queries``, ``qrels``."""
    try:
        dataset = library.load(name.id)
    except KeyError:
        near = difflib.get_close_matches(name.id, sorted(library.registry), n=_SHOWN, cutoff=0.0)
        raise UserError(f"{name}: {unknown('collection', name.id, near)}") from None
    missing = next((kind for kind in kinds if not dataset.has(kind)), None)
    if missing is not None:
        noun = {"docs": "documents", "queries": "queries", "qrels": "judgments"}[missing]
        below = sorted(text for text in library.registry if text.startswith(f"{name.id}/"))
        near = [text for text in below if all(library.registry[text].has(kind) for kind in kinds)][
            :_SHOWN
        ]
        advice = f"these have them: {', '.join(near)}" if near else "see https://ir-datasets.com"
        none = "; or --qrels none to do without" if missing == "qrels" else ""
        raise UserError(f"{name}: has no {noun} of its own; {advice}{none}")
    return dataset


def dataset_qrels(dataset: Any, name: Named) -> pl.DataFrame:
    """Judgments, one for a pair: the last where there are several, as the library's own ``qrels_dict`` has it."""
    fields = dataset.qrels_cls()._fields
    if "relevance" not in fields:
        raise UserError(
            f"{name}: its judgments have no relevance, only {', '.join(fields)}; name a file with --qrels"
        )
    rows = [(q.query_id, q.doc_id, q.relevance) for q in dataset.qrels_iter()]
    schema = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.Float64}
    table = pl.DataFrame(rows, schema=schema, orient="row")
    grades = whole_or_fractions(table["grade"])
    broken = table.filter(grades.is_null())
    if broken.height:
        query, doc, grade = broken.row(0)
        raise UserError(
            f"{name}: expected numbers as grades, got {grade} for query {query!r} and document {doc!r}"
        )
    table = table.with_columns(grades)
    key = ["query_id", "doc_id"]
    odd = table.group_by(key).agg(pl.col("grade").n_unique()).filter(pl.col("grade") > 1).height
    if odd:
        pairs = counted(odd, "pair has", "pairs have")
        warnings.warn(
            f"{name}: {pairs} several grades; the last one is used, as in ir_datasets",
            DataWarning,
            stacklevel=4,
        )
    return table.unique(key, keep="last", maintain_order=True)


def dataset_queries(dataset: Any) -> pl.DataFrame:
    """Read the queries: ``id`` and ``text``."""
    own = "text" in dataset.queries_cls()._fields
    rows = [(q.query_id, q.text if own else q.default_text()) for q in dataset.queries_iter()]
    return pl.DataFrame(rows, schema={"id": pl.String, "text": pl.String}, orient="row")


def _docs(dataset: Any, only: set[str] | None) -> tuple[pl.DataFrame, int]:
    """Documents, and how many the library has; a chunk of them at a time as Python objects."""
    fields = dataset.docs_cls()._fields
    body = next((field for field in _BODIES if field in fields), None)
    titled = body is not None and "title" in fields
    schema = {"id": pl.String, "title": pl.String, "text": pl.String}
    frames, chunk, total = list[pl.DataFrame](), list[tuple[str, str, str]](), 0
    expected = dataset.docs_count() or 0
    for total, doc in enumerate(dataset.docs_iter(), start=1):
        if only is None or doc.doc_id in only:
            text = doc.default_text() if body is None else getattr(doc, body)
            chunk.append((doc.doc_id, (doc.title or "") if titled else "", text or ""))
        if len(chunk) == _CHUNK:
            frames.append(pl.DataFrame(chunk, schema=schema, orient="row"))
            chunk = []
        if total % _CHUNK == 0 and total < expected:
            report("reading documents", total, expected)
    frames.append(pl.DataFrame(chunk, schema=schema, orient="row"))
    report("reading documents", total, total)
    return pl.concat(frames), total
