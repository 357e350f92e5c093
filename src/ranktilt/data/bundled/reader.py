"""The bundled pairs: rewrites from this folder, human paragraphs from the installed documentation."""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.resources
import inspect
import re
import warnings
from typing import NamedTuple

import orjson
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.errors import DataWarning, UserError

FEWEST = 40
ENOUGH = 120
# A section's name and the line under it, so that the section's first paragraph is found alone.
_HEADING = re.compile(r"^.+\n-{3,}\n", re.MULTILINE)
_DOCS = dict.fromkeys(("id", "title", "text", "source", "origin"), pl.String)


class Pair(NamedTuple):
    """One rewrite, and where the paragraph that it rewrites is found."""

    id: str
    function: str
    """Dotted name of the function or class whose docstring holds the human paragraph."""
    sha256: str
    """Hash of the human paragraph with its white space folded."""
    title: str
    rewrite: str


def bundled() -> Collection:
    """Return the bundled collection: human paragraphs, and a language model's rewrite of each.

    The human text is read from the docstrings of the installed NumPy and SciPy, so it needs no
    network. A pair whose paragraph the installed versions no longer hold is left out, with its
    judgments.

    Returns
    -------
    Collection
        Sources ``"human"`` and ``"claude"``, all human documents first. Grades are 1 (related) and
        2 (answers the query) and the same for both versions. The spec counts the ``pairs`` there
        are and those ``matched``, and names the versions read. Fewer than 120 matches are warned
        of, fewer than 40 refused.
    """
    every = pairs()
    found = [
        (pair, text)
        for pair in every
        if (text := paragraph(pair.function, pair.sha256)) is not None
    ]
    versions = {package: importlib.metadata.version(package) for package in ("numpy", "scipy")}
    if len(found) < ENOUGH:
        _complain(len(found), len(every), versions)
    return Collection(
        docs=_docs(found),
        queries=_queries(),
        qrels=_qrels([pair.id for pair, _ in found]),
        spec={"path": "bundled", "pairs": len(every), "matched": len(found), **versions},
    )


def pairs() -> list[Pair]:
    """Return every pair, in the order of the file, whether or not its paragraph can be found."""
    rows = map(orjson.loads, _lines("rewrites.jsonl"))
    return [
        Pair(row["_id"], row["function"], row["sha256"], row["title"], row["text"]) for row in rows
    ]


def paragraph(function: str, sha256: str) -> str | None:
    """Find a paragraph of a docstring by the hash of its folded text; None where the function or it is gone."""
    module, _, name = function.rpartition(".")
    try:
        doc = getattr(importlib.import_module(module), name).__doc__
    except (ImportError, AttributeError):
        return None
    for block in _HEADING.sub("", inspect.cleandoc(doc or "")).split("\n\n"):
        text = " ".join(block.split())
        if hashlib.sha256(text.encode()).hexdigest() == sha256:
            return text
    return None


def _complain(found: int, every: int, versions: dict[str, str]) -> None:
    where = f"numpy {versions['numpy']} and scipy {versions['scipy']}"
    have = f"bundled: {found} of {every} paragraphs were found in the documentation of {where}"
    remedy = "install numpy 2.0-2.4 and scipy 1.14-1.17, and run Python without -OO, which drops docstrings"
    if found < FEWEST:
        raise UserError(f"{have}, expected at least {FEWEST}; {remedy}")
    warnings.warn(
        f"{have}, the other pairs are left out; for all of them, {remedy}",
        DataWarning,
        stacklevel=3,
    )


def _docs(found: list[tuple[Pair, str]]) -> pl.DataFrame:
    human = [(f"{p.id}-human", p.title, text, "human", f"{p.id}-human") for p, text in found]
    claude = [(f"{p.id}-claude", p.title, p.rewrite, "claude", f"{p.id}-human") for p, _ in found]
    return pl.DataFrame(human + claude, schema=_DOCS, orient="row")


def _queries() -> pl.DataFrame:
    rows = [orjson.loads(line) for line in _lines("queries.jsonl")]
    data = [(row["_id"], row["text"]) for row in rows]
    return pl.DataFrame(data, schema={"id": pl.String, "text": pl.String}, orient="row")


def _qrels(matched: list[str]) -> pl.DataFrame:
    known = set(matched)
    rows = [line.split("\t") for line in _lines("qrels.tsv")[1:]]
    data = [
        (query, f"{pair}-{side}", int(grade))
        for query, pair, grade in rows
        if pair in known
        for side in ("human", "claude")
    ]
    schema = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32}
    return pl.DataFrame(data, schema=schema, orient="row")


def _lines(name: str) -> list[str]:
    text = (
        importlib.resources.files("ranktilt.data.bundled")
        .joinpath(name)
        .read_text(encoding="utf-8")
    )
    return text.removesuffix("\n").split("\n")
