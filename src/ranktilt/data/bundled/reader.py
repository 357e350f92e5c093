"""Read the bundled pairs: rewrites from this folder, and paragraphs of installed documentation.

A *pair* is a human paragraph of a docstring of NumPy or SciPy, and a rewrite of it by a language
model. Only the rewrites and hashes of the paragraphs are in this folder.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.resources
import inspect
import re
import warnings
from dataclasses import dataclass

import orjson
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.errors import DataWarning, UserError

FEWEST = 40
"""Fewest pairs of a usable collection; other versions of NumPy and SciPy may lack paragraphs."""
ENOUGH = 120
"""Number of pairs below which there is a warning."""
_HEADING = re.compile(r"^.+\n-{3,}\n", re.MULTILINE)
"""Heading of a section in a docstring: its name, and the line under it.

It is removed, because it would otherwise be part of the section's first paragraph.
"""
_DOCS_SCHEMA = dict.fromkeys(("id", "title", "text", "source", "origin"), pl.String)
"""Columns of the documents."""


@dataclass(frozen=True, kw_only=True)
class BundledPair:
    """One rewrite, and the place of the paragraph that it rewrites."""

    id: str
    """Id of the pair, without source."""
    function: str
    """Dotted name of the function or class whose docstring holds the human paragraph."""
    sha256: str
    """Hash of the human paragraph, with a single space in place of all other white space."""
    title: str
    """Title of both versions."""
    rewrite: str
    """Text of the rewrite."""


def bundled() -> Collection:
    """Return the bundled collection: human paragraphs, and a language model's rewrite of each.

    The human text is read from the docstrings of the installed NumPy and SciPy, so it needs no
    network. A pair whose paragraph is not in the installed versions is left out, with its
    judgments.

    Returns
    -------
    Collection
        Sources ``"human"`` and ``"claude"``, all human documents first. Grades are 1 (related) and
        2 (answers the query) and the same for both versions. The spec has the number of all
        ``pairs`` and of those ``matched``, and the versions read.

    Raises
    ------
    UserError
        If fewer than 40 pairs match.

    Warns
    -----
    DataWarning
        If fewer than 120 pairs match.
    """
    all_pairs = pairs()
    # Only pairs whose paragraph is in the installed documentation.
    complete_pairs, paragraphs = list[BundledPair](), list[str]()
    for pair in all_pairs:
        text = paragraph(pair.function, pair.sha256)
        if text is not None:
            complete_pairs.append(pair)
            paragraphs.append(text)
    versions = {package: importlib.metadata.version(package) for package in ("numpy", "scipy")}
    pair_count = len(complete_pairs)
    if pair_count < ENOUGH:
        _report_few_matches(pair_count, len(all_pairs), versions)
    return Collection(
        docs=_docs(complete_pairs, paragraphs),
        queries=_queries(),
        qrels=_qrels([pair.id for pair in complete_pairs]),
        spec={"path": "bundled", "pairs": len(all_pairs), "matched": pair_count, **versions},
    )


def pairs() -> list[BundledPair]:
    """Return every pair in the order of the file, whether its paragraph is installed or not."""
    rows = map(orjson.loads, _lines("rewrites.jsonl"))
    return [
        BundledPair(
            id=row["_id"],
            function=row["function"],
            sha256=row["sha256"],
            title=row["title"],
            rewrite=row["text"],
        )
        for row in rows
    ]


def paragraph(function: str, sha256: str) -> str | None:
    """Find a paragraph of a function's docstring by its hash; None if it is missing.

    White space is made single spaces before the hash is computed, because versions of a docstring
    may break lines differently.
    """
    module, _, name = function.rpartition(".")
    try:
        docstring = getattr(importlib.import_module(module), name).__doc__
    except (ImportError, AttributeError):
        return None
    for block in _HEADING.sub("", inspect.cleandoc(docstring or "")).split("\n\n"):
        text = " ".join(block.split())
        if hashlib.sha256(text.encode()).hexdigest() == sha256:
            return text
    return None


def _report_few_matches(match_count: int, pair_count: int, versions: dict[str, str]) -> None:
    """Warn of few pairs; refuse fewer than `FEWEST`."""
    packages = f"numpy {versions['numpy']} and scipy {versions['scipy']}"
    message = (
        f"bundled: found {match_count} of {pair_count} paragraphs in the documentation of "
        f"{packages}"
    )
    remedy = (
        "install numpy 2.0-2.4 and scipy 1.14-1.17, and run Python without -OO, "
        "which drops docstrings"
    )
    if match_count < FEWEST:
        raise UserError(f"{message}, expected at least {FEWEST}; {remedy}")
    warnings.warn(
        f"{message} and left out the other pairs; for all of them, {remedy}",
        DataWarning,
        stacklevel=3,
    )


def _docs(complete_pairs: list[BundledPair], paragraphs: list[str]) -> pl.DataFrame:
    """Return the documents: all human paragraphs, then their rewrites."""
    originals = list[dict[str, str]]()
    rewrites = list[dict[str, str]]()
    for pair, text in zip(complete_pairs, paragraphs, strict=True):
        shared = {"title": pair.title, "origin": f"{pair.id}-human"}
        originals.append({**shared, "id": f"{pair.id}-human", "text": text, "source": "human"})
        rewrites.append(
            {**shared, "id": f"{pair.id}-claude", "text": pair.rewrite, "source": "claude"}
        )
    return pl.DataFrame(originals + rewrites, schema=_DOCS_SCHEMA)


def _queries() -> pl.DataFrame:
    """Return the queries: ``id`` and ``text``."""
    records = [orjson.loads(line) for line in _lines("queries.jsonl")]
    rows = [(record["_id"], record["text"]) for record in records]
    return pl.DataFrame(rows, schema={"id": pl.String, "text": pl.String}, orient="row")


def _qrels(pair_ids: list[str]) -> pl.DataFrame:
    """Return the judgments of both versions of the pairs with these ids."""
    kept_ids = set(pair_ids)
    rows = list[tuple[str, str, int]]()
    _header, *lines = _lines("qrels.tsv")
    for line in lines:
        query, pair_id, grade = line.split("\t")
        if pair_id in kept_ids:
            rows.append((query, f"{pair_id}-human", int(grade)))
            rows.append((query, f"{pair_id}-claude", int(grade)))
    schema = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _lines(name: str) -> list[str]:
    """Read the lines of a bundled file."""
    file = importlib.resources.files("ranktilt.data.bundled").joinpath(name)
    return file.read_text(encoding="utf-8").removesuffix("\n").split("\n")
