"""Find faults in the texts, pairs and judgments of a collection, before anything is ranked."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl

from ranktilt.data.check_limits import LIMITS, CheckLimits
from ranktilt.data.collection import POOL, Collection
from ranktilt.data.text import quality
from ranktilt.data.texts import AT_ONCE
from ranktilt.data.trimmed_texts import cut_at, title_prefixed
from ranktilt.errors import counted
from ranktilt.progress import report

Verdict = Literal["ok", "warning", "void"]

MISSING = "pairs missing a side"
LENGTH = "length ratio"
ONE_SIDED = "one-sided judgments"
DANGLING = "dangling judgments"
REPEATED = "repeated queries"
LENGTH_NOTICE = (0.9, 1.1)
"""Range of the median length ratio; a ratio outside of it is a warning."""


@dataclass(frozen=True, kw_only=True)
class FaultRow:
    """The frequency of one fault in one source, and its verdict on a comparison."""

    name: str
    source: str
    """Source that is compared with the reference; empty for the collection as a whole."""
    meaning: str
    """Reason why the fault matters, in one line."""
    count: int
    """Documents, pairs or judgments with the fault; pairs outside the limits of a length ratio."""
    total: int
    value: float
    """Share in %, or the median length ratio; NaN if there is nothing to count."""
    verdict: Verdict
    limit: str = ""
    """Values that do not void the comparison, in words; empty if none voids it."""
    reference: float = math.nan
    """Share in the reference, in %; NaN for faults of pairs and judgments."""
    note: str = ""
    examples: tuple[str, ...] = ()
    """Ids of the first documents with the fault; query and document for judgments."""

    @property
    def shown_value(self) -> str:
        """The value with its unit; a dash if it is undefined."""
        if math.isnan(self.value):
            return "–"
        if self.name != LENGTH:
            return percent(self.value)
        text = f"{self.value:.2f}"
        # A value outside of a bound must not read as if it were the bound.
        is_bound = text in self.limit.split("–") or float(text) in LENGTH_NOTICE
        if is_bound and float(text) != self.value:
            return f"{self.value:.4f}"
        return text


def percent(share: float) -> str:
    """Format a share in %; only an exact 0 reads 0, and only an exact 100 reads 100."""
    if math.isnan(share):
        return ""
    text = f"{share:.1f}"
    if text == "0.0" and share:
        text = "< 0.1"
    if text == "100.0" and share < 100:
        text = "> 99.9"
    return f"{text} %"


MEANINGS = {
    MISSING: "documents without a twin of the same origin, so the sides differ in content",
    "identical pairs": "both sides have the same text, so they can only tie",
    "near-identical pairs": "both sides have nearly the same text, so they hardly differ",
    "refusals": "the model declined to write, and a refusal cannot be relevant",
    "boilerplate openings": (
        "the text begins with words about the rewrite, which nobody searches for"
    ),
    "cut-off endings": "the text ends without a full stop; the rest may have held the answer",
    "empty texts": "there is nothing to rank",
    "duplicate texts": "the same text again in the source; copies rise and fall together",
    LENGTH: "rankers respond to length, so a tilt may be due to length alone",
    "script differs": "the twins use different scripts: a translation, not a rewrite",
    "title prefixes": (
        "the text begins with its title, which then counts twice: an advantage if one side "
        "dropped it"
    ),
    "texts cut short": (
        "all texts stop at the same length; only the other side still holds the rest"
    ),
    "shared titles": (
        "both twins have the same title; ranked with it, they differ less than their texts do"
    ),
    ONE_SIDED: (
        "relevant documents whose twin has another grade or none; the measure favours the judged "
        "side"
    ),
    DANGLING: "judgments for documents or queries outside the collection count in no group",
    REPEATED: (
        "queries with the same text as another add no evidence; an audit resamples them together"
    ),
}
"""Names of the checks in their order, each with the reason why it matters."""


def find_faults(
    collection: Collection,
    reference: str,
    sources: tuple[str, ...],
    *,
    limits: CheckLimits = LIMITS,
    examples: int = 3,
) -> tuple[FaultRow, ...]:
    """Count faults of the texts of each source, of its pairs, and of the judgments.

    Parameters
    ----------
    collection : Collection
        Loaded with ``ignore_unknown=True``, so that judgments of unknown documents are counted.
    reference : str
        The source to compare each of the `sources` with; empty to examine texts alone.
    sources : tuple of str
        The sources to examine.
    limits : CheckLimits, optional
        Limits beyond which a fault voids the comparison.
    examples : int, optional
        Most ids to name in a row.

    Returns
    -------
    tuple of FaultRow
        By source, and those on the whole collection last. Pairs are documents with one origin.
        ``void``: beyond the limit, or no pair is left that differs; ``warning``: over
        ``limits.warn_above`` % (for title prefixes and cuts, so many points between the sides), a
        median length ratio outside 0.9–1.1, any unknown judgment, or nothing to count. Documents
        outside of a pool (column ``pool``) miss no twin, unless they are relevant to a query.
    """
    documents = _examined_documents(collection)
    rows = list[FaultRow]()
    for source in sources:
        twins = _Twins(documents, reference, source, limits=limits, examples=examples)
        rows += _faults_of_twins(twins, collection) if reference else _faults_of_texts(twins, None)
    rows += [_dangling(collection, examples), _repeated(collection, examples)]
    return tuple(rows)


_TEXT_FLAGS = {
    "opening": lambda text: quality.opening(text).is_not_null(),
    "refusal": quality.refusal,
    "cut_off": quality.cut_off,
    "script": quality.script,
    "words": quality.words,
}


def _examined_documents(collection: Collection) -> pl.DataFrame:
    """Return every document with the flags of its text."""
    has_pool = collection.docs.schema.get(POOL) == pl.Boolean
    outside = ~pl.col(POOL).fill_null(True) if has_pool else pl.lit(False)
    docs = collection.docs.select("id", "title", "text", "source", "origin", outside=outside)
    docs = pl.concat([docs, _text_flags(docs)], how="horizontal")
    copy = ~pl.col("empty") & ~pl.struct("source", "hash", "hash_again").is_first_distinct()
    relevant_ids = collection.qrels.filter(pl.col("grade") > 0)["doc_id"]
    docs = docs.with_columns(
        copy=copy,
        prefixed=title_prefixed(collection.docs).fill_null(False),
        relevant=collection.ids.is_in(relevant_ids.implode()),
    )
    stated = docs.filter(pl.col("source").is_not_null())
    cuts = {
        source: cut_at(part["words"])[0]
        for (source,), part in stated.partition_by("source", as_dict=True).items()
    }
    limit = pl.col("source").replace_strict(cuts, default=None, return_dtype=pl.Int64)
    docs = docs.with_columns(limit=limit)
    return docs.with_columns(cut=(pl.col("words") == pl.col("limit")).fill_null(False))


def _text_flags(docs: pl.DataFrame) -> pl.DataFrame:
    """Examine the texts, a few at a time."""
    parts, examined = list[pl.DataFrame](), 0
    for part in docs.iter_slices(AT_ONCE) if docs.height else [docs]:
        text = part["text"].str.strip_chars()
        flags = {name: flag(text) for name, flag in _TEXT_FLAGS.items()}
        # Two hashes of 64 bits stand for a text, so that copies are found without all texts.
        hashes = {"hash": text.hash(0), "hash_again": text.hash(1)}
        parts.append(pl.DataFrame({**flags, **hashes, "empty": text == ""}))
        examined += part.height
        report("examining texts", examined, docs.height)
    return pl.concat(parts)


class _Twins:
    """The documents of a source and of the reference, and their pairs."""

    def __init__(
        self,
        docs: pl.DataFrame,
        reference: str,
        source: str,
        *,
        limits: CheckLimits,
        examples: int,
    ) -> None:
        self.name, self.limits, self.examples = source, limits, examples
        self.reference = docs.filter(pl.col("source") == reference)
        self.docs = docs.filter(pl.col("source") == source)
        self.pairs = self.reference.join(
            self.docs, on="origin", suffix="_b", maintain_order="left_right"
        )
        # A source with twins of documents that a pool left out was not made from that pool.
        is_outside = self.pairs.select(pl.col("outside") | pl.col("outside_b")).to_series()
        self.is_pooled = not is_outside.any()

    def unpaired(self) -> tuple[pl.Series, str]:
        """Return one id for each origin that misses a side, and a note on those that should."""
        left = self.reference.join(self.docs, on="origin", how="anti", maintain_order="left")
        right = self.docs.join(self.reference, on="origin", how="anti", maintain_order="left")
        lone = pl.concat([left, right]).unique("origin", keep="first", maintain_order=True)
        if not self.is_pooled:
            return lone["id"], ""
        outside = lone.filter("outside")
        relevant = outside.filter("relevant").height
        by_design = outside.height - relevant
        notes = []
        if by_design:
            documents = counted(by_design, "document", "documents")
            notes.append(f"{documents} outside the pool have no twin, by design")
        if relevant:
            notes.append(
                f"{relevant:,} outside the pool are relevant to a query and count as missing; "
                "include these queries when you pool"
            )
        return lone.filter(~pl.col("outside") | pl.col("relevant"))["id"], "; ".join(notes)

    def row(
        self, name: str, ids: pl.Series, total: int, *, limit: float | None = None, **details: Any
    ) -> FaultRow:
        """Count documents or pairs with a fault, and give a verdict on their share."""
        value = 100 * len(ids) / total if total else math.nan
        return FaultRow(
            name=name,
            source=self.name,
            meaning=MEANINGS[name],
            count=len(ids),
            total=total,
            value=value,
            verdict=_verdict(value, limit, self.limits.warn_above),
            limit="" if limit is None else f"≤ {limit:g} %",
            examples=tuple(ids.head(self.examples)),
            **details,
        )

    def pairs_with(
        self, name: str, fault: pl.Expr | pl.Series, *, limit: float | None = None, note: str = ""
    ) -> FaultRow:
        """Count pairs with a fault; the examples are documents of the source."""
        ids = self.pairs.filter(fault)["id_b"]
        return self.row(name, ids, self.pairs.height, limit=limit, note=note)

    def texts_with(self, name: str, column: str, *, limit: float | None = None) -> FaultRow:
        """Count documents of the source with a fault; the row has the reference's share too."""
        in_reference = math.nan
        if self.reference.height:
            in_reference = 100 * int(self.reference[column].sum()) / self.reference.height
        ids = self.docs.filter(pl.col(column))["id"]
        row = self.row(name, ids, self.docs.height, limit=limit, reference=in_reference)
        # A fault of the reference spoils the same pairs.
        worse = float(np.fmax(row.value, in_reference))
        return replace(row, verdict=_verdict(worse, limit, self.limits.warn_above))

    def texts_apart(self, name: str, column: str, *, note: str = "") -> FaultRow:
        """Count documents with a trait that favours the side that has more of it."""
        row = self.texts_with(name, column)
        gap = abs(row.value - row.reference)
        return replace(row, verdict=_verdict(gap, None, self.limits.warn_above), note=note)

    @property
    def has_unequal_cuts(self) -> bool:
        """Whether the texts of both sides stop at a length, but not the same one."""
        lengths = [
            side["limit"].drop_nulls().unique().to_list() for side in (self.reference, self.docs)
        ]
        return bool(lengths[0] and lengths[1] and lengths[0] != lengths[1])

    @property
    def cut_note(self) -> str:
        """Number of words at which the texts of each side stop; empty if they do not."""
        sides = ((side["source"][0], side["limit"][0]) for side in (self.reference, self.docs))
        return "; ".join(f"{name} at {limit:,} words" for name, limit in sides if limit is not None)


def _faults_of_twins(twins: _Twins, collection: Collection) -> Iterator[FaultRow]:
    pairs, limits = twins.pairs, twins.limits
    lone, note = twins.unpaired()
    if not pairs.height:
        note = "no origin is shared; twins need the same origin, or the same _id in two files"
    yield twins.row(
        MISSING, lone, len(lone) + pairs["origin"].n_unique(), limit=limits.max_missing, note=note
    )
    yield from _faults_of_likeness(twins)
    yield from _faults_of_texts(twins, limits)
    yield _length(twins)
    yield twins.pairs_with("script differs", pl.col("script") != pl.col("script_b"))
    yield twins.texts_apart("title prefixes", "prefixed")
    cut = twins.texts_apart("texts cut short", "cut", note=twins.cut_note)
    yield replace(cut, verdict="warning") if twins.has_unequal_cuts else cut
    has_title = pl.col("title").str.strip_chars() != ""
    yield twins.pairs_with("shared titles", (pl.col("title") == pl.col("title_b")) & has_title)
    relevant_pairs, one_sided = _one_sided(pairs, collection)
    yield twins.row(ONE_SIDED, one_sided, relevant_pairs, limit=limits.max_one_sided)


def _faults_of_likeness(twins: _Twins) -> Iterator[FaultRow]:
    """Count identical and near-identical pairs; void if no pair is left that differs."""
    pairs, limits = twins.pairs, twins.limits
    likeness = pl.Series(quality.likeness(pairs["text"], pairs["text_b"], limits.near_identical))
    yield twins.pairs_with("identical pairs", likeness == 2, limit=limits.max_identical)
    note = (
        f"Jaccard similarity of terms is {limits.near_identical:g} or more; "
        "void if no pair differs more"
    )
    near = twins.pairs_with("near-identical pairs", likeness == 1, note=note)
    near = replace(near, limit="not all")
    is_alike = likeness > 0
    none_differs = bool((is_alike | (pairs["empty"] & pairs["empty_b"])).all())
    # No pair at all is no comparison either.
    is_void = none_differs and bool(is_alike.any() or not pairs.height)
    yield replace(near, verdict="void") if is_void else near


def _faults_of_texts(twins: _Twins, limits: CheckLimits | None) -> Iterator[FaultRow]:
    """Examine the texts of a source without their twins; no `limits` if nothing is compared."""
    yield twins.texts_with("refusals", "refusal", limit=limits.max_refusals if limits else None)
    yield twins.texts_with(
        "boilerplate openings", "opening", limit=limits.max_boilerplate if limits else None
    )
    yield twins.texts_with(
        "cut-off endings", "cut_off", limit=limits.max_cut_off if limits else None
    )
    yield twins.texts_with("empty texts", "empty")
    yield twins.texts_with("duplicate texts", "copy")


def _verdict(value: float, limit: float | None, notice: float) -> Verdict:
    if limit is not None and value > limit:
        return "void"
    # NaN compares as false, so that an undefined share is a warning.
    return "ok" if value <= notice else "warning"


def _length(twins: _Twins) -> FaultRow:
    """Divide words of the rewrite by words of the reference, in pairs whose reference has any."""
    limits, pairs = twins.limits, twins.pairs.filter(pl.col("words") > 0)
    ratio = pairs["words_b"].to_numpy() / pairs["words"].to_numpy()
    is_outside = (ratio < limits.min_length_ratio) | (ratio > limits.max_length_ratio)
    low, median, high = np.quantile(ratio, (0.25, 0.5, 0.75)) if len(ratio) else (math.nan,) * 3
    verdict: Verdict = "ok" if LENGTH_NOTICE[0] <= median <= LENGTH_NOTICE[1] else "warning"
    if median < limits.min_length_ratio or median > limits.max_length_ratio:
        verdict = "void"
    note = (
        "median of rewrite words per reference word; "
        f"half of the pairs lie between {low:.2f} and {high:.2f}"
    )
    ids = pairs["id_b"].filter(pl.Series(is_outside, dtype=pl.Boolean))
    return FaultRow(
        name=LENGTH,
        source=twins.name,
        meaning=MEANINGS[LENGTH],
        count=len(ids),
        total=len(ratio),
        value=float(median),
        verdict=verdict,
        limit=f"{limits.min_length_ratio:g}–{limits.max_length_ratio:g}",
        note=note if len(ratio) else "",
        examples=tuple(ids.head(twins.examples)),
    )


def _one_sided(pairs: pl.DataFrame, collection: Collection) -> tuple[int, pl.Series]:
    """Count the relevant pairs of all queries, and name those with unequal grades."""
    relevant = collection.qrels.filter(pl.col("grade") > 0)
    relevant = relevant.join(collection.queries, left_on="query_id", right_on="id", how="semi")
    key = ["query_id", "id", "id_b"]
    ids = pairs.select("id", "id_b")
    left = relevant.join(ids, left_on="doc_id", right_on="id", coalesce=False)
    right = relevant.join(ids, left_on="doc_id", right_on="id_b", coalesce=False)
    grades = left.select(*key, a="grade").join(
        right.select(*key, b="grade"), on=key, how="full", coalesce=True
    )
    grades = grades.with_columns(pl.col("a", "b").fill_null(0)).sort(key)
    higher = pl.when(pl.col("a") > pl.col("b")).then("id").otherwise("id_b")
    uneven = grades.filter(pl.col("a") != pl.col("b"))
    return grades.height, uneven.select(name=pl.format("{} {}", "query_id", higher))["name"]


def _dangling(collection: Collection, examples: int) -> FaultRow:
    """Count judgments that name a document or a query that the collection does not hold."""
    qrels = collection.qrels
    sound = qrels.join(collection.docs, left_on="doc_id", right_on="id", how="semi")
    sound = sound.join(collection.queries, left_on="query_id", right_on="id", how="semi")
    dangling = qrels.join(sound, on=["query_id", "doc_id"], how="anti", maintain_order="left")
    names = dangling.select(name=pl.format("{} {}", "query_id", "doc_id"))["name"]
    return _collection_row(DANGLING, names, qrels.height, examples)


def _repeated(collection: Collection, examples: int) -> FaultRow:
    """Count queries with the text of an earlier one."""
    queries = collection.queries_with_judgments.with_columns(pl.col("text").str.strip_chars())
    is_repeated = (pl.col("text") != "") & ~pl.col("text").is_first_distinct()
    return _collection_row(REPEATED, queries.filter(is_repeated)["id"], queries.height, examples)


def _collection_row(name: str, names: pl.Series, total: int, examples: int) -> FaultRow:
    """Return a row on the collection as a whole; a single case is a warning."""
    value = 100 * len(names) / total if total else math.nan
    return FaultRow(
        name=name,
        source="",
        meaning=MEANINGS[name],
        count=len(names),
        total=total,
        value=value,
        verdict=_verdict(value, None, 0),
        examples=tuple(names.head(examples)),
    )
