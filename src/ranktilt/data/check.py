"""Whether a collection makes a fair comparison: what its texts, pairs and judgments lack, before anything is ranked."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from ranktilt._version import __version__
from ranktilt.collection import Collection
from ranktilt.data import quality
from ranktilt.data.checked import (
    DANGLING,
    LENGTH,
    LENGTH_NOTICE,
    LIMITS,
    MISSING,
    ONE_SIDED,
    Check,
    Limits,
    Row,
    Verdict,
)
from ranktilt.errors import UserError, unknown
from ranktilt.progress import report

MEANINGS = {
    MISSING: "documents without a twin of the same origin: the sides do not hold the same content",
    "identical pairs": "both sides have the same text: they can only tie",
    "near-identical pairs": "both sides have nearly the same terms: little is left to tell them apart",
    "refusals": "the model declined to write: such a text cannot be relevant",
    "boilerplate openings": "the text begins with words about the rewrite, which no searcher asks for",
    "cut-off endings": "the text ends without a full stop: its rest may have held the answer",
    "empty texts": "there is nothing to rank",
    "duplicate texts": "the same text again within the source: copies share one fate",
    LENGTH: "rankers weigh length by themselves: a tilt may be one of length",
    "script differs": "the twins are written in different scripts: a translation, not a rewrite",
    "shared titles": "both twins carry the same title: ranked with it, they differ less than their texts do",
    ONE_SIDED: "relevant documents whose twin has another grade or none: the measure favours the judged side",
    DANGLING: "judgments of documents or queries that the collection does not hold count in no group",
}
"""Names of the checks, in order, each with why it matters."""


def check(collection: Collection, *, reference: str | None = None, limits: Limits = LIMITS, examples: int = 3) -> Check:
    """Check whether a collection makes a fair comparison of its sources.

    Parameters
    ----------
    collection : Collection
        With two sources or more; load it with ``ignore_unknown=True``, so that judgments of unknown documents are
        counted.
    reference : str, optional
        The source that each of the others is held against: ``"human"`` where there is one, or else the first.
    limits : Limits, optional
        From where on a fault voids the comparison.
    examples : int, optional
        Most ids to name in a row.

    Returns
    -------
    Check
        A row for each other source and check. Pairs are documents with one origin. ``void``: beyond the limit;
        ``warning``: over ``limits.notice`` %, a median length ratio outside 0.9–1.1, any judgment of something
        unknown, or nothing to count.

    Raises
    ------
    UserError
        If there is one source only, or none of the reference's name.
    """
    sources = collection.sources
    if len(sources) < 2:
        came = f"only source {sources[0]!r}" if sources else "no document"
        raise UserError(f"nothing to compare: {came}; expected two sources, such as human text and its rewrites")
    if reference is not None and reference not in sources:
        raise unknown("source", reference, sources)
    first = reference or ("human" if "human" in sources else sources[0])
    others = tuple(s for s in sources if s != first)
    docs = _examined(collection)
    rows = [row for other in others for row in _compared(_Twins(docs, first, other, limits, examples), collection)]
    rows.append(_dangling(collection, examples))
    spec = {
        **{name: collection.spec[name] for name in ("path", "split") if name in collection.spec},
        "documents": collection.docs.height,
        "queries": collection.queries.height,
        "judgments": collection.qrels.height,
        "ranktilt": __version__,
    }
    return Check(tuple(rows), first, others, limits, spec)


_FEATURES = {
    "opening": lambda text: quality.opening(text).is_not_null(),
    "refusal": quality.refusal,
    "cut_off": quality.cut_off,
    "script": quality.script,
    "words": quality.words,
}


def _examined(collection: Collection) -> pl.DataFrame:
    """Every document with what can be seen in its text."""
    docs = collection.docs.select("id", "title", pl.col("text").str.strip_chars(), "source", "origin")
    for number, (name, look) in enumerate(_FEATURES.items()):
        report("examining texts", number, len(_FEATURES))
        docs = docs.with_columns(look(docs["text"]).alias(name))
    report("examining texts", len(_FEATURES), len(_FEATURES))
    empty = pl.col("text") == ""
    copy = ~empty & ~pl.struct("source", "text").is_first_distinct()
    return docs.with_columns(empty=empty, copy=copy)


class _Twins:
    """A source beside the reference: the documents of both, and their pairs."""

    def __init__(self, docs: pl.DataFrame, reference: str, other: str, limits: Limits, examples: int) -> None:
        self.name, self.limits, self.examples = other, limits, examples
        self.reference = docs.filter(pl.col("source") == reference)
        self.docs = docs.filter(pl.col("source") == other)
        self.pairs = self.reference.join(self.docs, on="origin", suffix="_b", maintain_order="left_right")

    def lone(self) -> pl.Series:
        """Ids of one document for each origin that only one side has."""
        left = self.reference.join(self.docs, on="origin", how="anti", maintain_order="left")
        right = self.docs.join(self.reference, on="origin", how="anti", maintain_order="left")
        return pl.concat([left, right]).unique("origin", keep="first", maintain_order=True)["id"]

    def row(self, name: str, found: pl.Series, total: int, *, limit: float | None = None, **more: Any) -> Row:
        """What was found of a total, judged by its share."""
        value = 100 * len(found) / total if total else math.nan
        return Row(
            name, self.name, MEANINGS[name], len(found), total, value, _verdict(value, limit, self.limits.notice),
            limit="" if limit is None else f"≤ {limit:g} %", examples=tuple(found.head(self.examples)), **more,
        )  # fmt: skip

    def twins(self, name: str, fault: pl.Expr | pl.Series, *, limit: float | None = None, note: str = "") -> Row:
        """Pairs with a fault, named by their other side."""
        return self.row(name, self.pairs.filter(fault)["id_b"], self.pairs.height, limit=limit, note=note)

    def texts(self, name: str, column: str, *, limit: float | None = None) -> Row:
        """Documents of the other side with a fault, beside the reference's own share."""
        beside = 100 * int(self.reference[column].sum()) / self.reference.height
        found = self.docs.filter(pl.col(column))["id"]
        return self.row(name, found, self.docs.height, limit=limit, reference=beside)


def _compared(twins: _Twins, collection: Collection) -> Iterator[Row]:
    pairs, limits, lone = twins.pairs, twins.limits, twins.lone()
    same = (pairs["text"] == pairs["text_b"]) & ~pairs["empty"]
    alike = pl.Series(quality.jaccard(pairs["text"], pairs["text_b"]) >= limits.near_identical, dtype=pl.Boolean)
    titled = (pl.col("title") == pl.col("title_b")) & (pl.col("title").str.strip_chars() != "")
    total, one_sided = _one_sided(pairs, collection)
    missing = len(lone) + pairs["origin"].n_unique()
    note = "" if pairs.height else "no origin is shared: twins need one origin, or one _id in two files"
    yield twins.row(MISSING, lone, missing, limit=limits.missing, note=note)
    yield twins.twins("identical pairs", same, limit=limits.identical)
    yield twins.twins(
        "near-identical pairs", alike & ~same, note=f"Jaccard similarity of terms ≥ {limits.near_identical:g}"
    )
    yield twins.texts("refusals", "refusal", limit=limits.refusals)
    yield twins.texts("boilerplate openings", "opening", limit=limits.boilerplate)
    yield twins.texts("cut-off endings", "cut_off", limit=limits.cut_off)
    yield twins.texts("empty texts", "empty")
    yield twins.texts("duplicate texts", "copy")
    yield _length(twins)
    yield twins.twins("script differs", pl.col("script") != pl.col("script_b"))
    yield twins.twins("shared titles", titled)
    yield twins.row(ONE_SIDED, one_sided, total, limit=limits.one_sided)


def _verdict(value: float, limit: float | None, notice: float) -> Verdict:
    if limit is not None and value > limit:
        return "void"
    return "ok" if value <= notice else "warning"  # what is undefined is no reason to be at ease


def _length(twins: _Twins) -> Row:
    """Words of the rewrite over words of the reference, pairs without words in the reference left out."""
    limits, known = twins.limits, twins.pairs.filter(pl.col("words") > 0)
    ratio = known["words_b"].to_numpy() / known["words"].to_numpy()
    outside = (ratio < limits.shortest) | (ratio > limits.longest)
    low, median, high = np.quantile(ratio, (0.25, 0.5, 0.75)) if len(ratio) else (math.nan,) * 3
    verdict: Verdict = "ok" if LENGTH_NOTICE[0] <= median <= LENGTH_NOTICE[1] else "warning"
    if median < limits.shortest or median > limits.longest:
        verdict = "void"
    note = f"words for each word of the reference, median; quartiles {low:.2f} and {high:.2f}"
    return Row(
        LENGTH, twins.name, MEANINGS[LENGTH], int(outside.sum()), len(ratio), float(median), verdict,
        limit=f"{limits.shortest:g}–{limits.longest:g}", note=note if len(ratio) else "",
        examples=tuple(known["id_b"].filter(pl.Series(outside, dtype=pl.Boolean)).head(twins.examples)),
    )  # fmt: skip


def _one_sided(pairs: pl.DataFrame, collection: Collection) -> tuple[int, pl.Series]:
    """How many relevant (query, pair) there are, and those whose sides do not have the same grade, named."""
    relevant = collection.qrels.filter(pl.col("grade") > 0)
    relevant = relevant.join(collection.queries, left_on="query_id", right_on="id", how="semi")
    key = ["query_id", "id", "id_b"]
    a = relevant.join(pairs.select("id", "id_b"), left_on="doc_id", right_on="id", coalesce=False)
    b = relevant.join(pairs.select("id", "id_b"), left_on="doc_id", right_on="id_b", coalesce=False)
    both = a.select(*key, a="grade").join(b.select(*key, b="grade"), on=key, how="full", coalesce=True)
    both = both.with_columns(pl.col("a", "b").fill_null(0)).sort(key)
    higher = pl.when(pl.col("a") > pl.col("b")).then("id").otherwise("id_b")
    odd = both.filter(pl.col("a") != pl.col("b")).select(pl.format("{} {}", "query_id", higher).alias("name"))
    return both.height, odd["name"]


def _dangling(collection: Collection, examples: int) -> Row:
    """Judgments that name a document or a query that the collection does not hold."""
    qrels = collection.qrels
    sound = qrels.join(collection.docs, left_on="doc_id", right_on="id", how="semi")
    sound = sound.join(collection.queries, left_on="query_id", right_on="id", how="semi")
    odd = qrels.join(sound, on=["query_id", "doc_id"], how="anti", maintain_order="left")
    total = qrels.height
    value = 100 * odd.height / total if total else math.nan
    names = odd.head(examples).select(pl.format("{} {}", "query_id", "doc_id").alias("name"))["name"]
    return Row(
        DANGLING, "", MEANINGS[DANGLING], odd.height, total, value, _verdict(value, None, 0),
        examples=tuple(names),
    )  # fmt: skip
