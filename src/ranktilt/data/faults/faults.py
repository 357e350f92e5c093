"""Find faults in the texts, pairs and judgments of a collection, before anything is ranked.

A comparison of two sources is fair only if their texts differ in who wrote them and in nothing
else. Each fault is another difference, and is counted. Beyond a limit, a fault *voids* the
comparison: its results would say nothing about sources.

Each source is compared with the *reference*, usually human text. A *pair*, or *twins*, are two
documents with one origin, one by each of the two sources. A data set may rewrite only some of its
documents; the others are *outside* the pool, and have no twin by design.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from ranktilt.data.collection import POOL, Collection
from ranktilt.data.faults.check_limits import LIMITS, CheckLimits
from ranktilt.data.faults.trimmed_texts import cut_at, title_prefixed
from ranktilt.data.faults.twin_likeness import ALIKE_TEXTS, IDENTICAL_TEXTS, twin_likeness
from ranktilt.data.text import quality
from ranktilt.data.texts import TEXTS_A_BLOCK, map_in_threads, release_texts
from ranktilt.progress import report

Verdict = Literal["ok", "warning", "void"]
"""What a fault means for the comparison: nothing, a warning, or that it is void."""

# Names of faults that several functions use.
MISSING = "pairs missing a side"
"""Fault of documents without a twin by the other source."""
NEAR_IDENTICAL = "near-identical pairs"
"""Fault of twins with nearly the same text."""
CUT = "texts cut short"
"""Fault of texts that all stop at the same number of words."""
LENGTH = "length ratio"
"""Fault of texts that are longer or shorter than their twins in the reference."""
ONE_SIDED = "one-sided judgments"
"""Fault of relevant documents whose twins have another grade."""
DANGLING = "dangling judgments"
"""Fault of judgments of documents or queries that are not in the collection."""
REPEATED = "repeated queries"
"""Fault of queries with the same text as another query."""
_BOUND = re.compile(r"[0-9.]+(?:e[-+][0-9]+)?")
"""A number in the words of `FaultRow.limit`."""
LENGTH_NOTICE = (0.9, 1.1)
"""Smallest and largest median length ratio without a warning."""


@dataclass(frozen=True, kw_only=True)
class TextCut:
    """The length at which all long texts of a source stop."""

    source: str
    """Name of the source."""
    words: int
    """Length of the cut texts, in whitespace words."""


@dataclass(frozen=True, kw_only=True)
class FaultDetails:
    """Numbers that only some faults have; the defaults are those of all others."""

    without_twin_by_design: int = 0
    """Number of documents that were not chosen for rewriting, and are relevant to no query."""
    relevant_without_twin: int = 0
    """Number of documents that were not chosen for rewriting, but are relevant to a query."""
    least_similarity: float = math.nan
    """Smallest Jaccard similarity of terms from which pairs count as near-identical."""
    lower_quartile: float = math.nan
    """Length ratio below which a quarter of the pairs are."""
    upper_quartile: float = math.nan
    """Length ratio above which a quarter of the pairs are."""
    cuts: tuple[TextCut, ...] = ()
    """Sources whose texts are cut short, the reference first."""


@dataclass(frozen=True, kw_only=True)
class FaultRow:
    """The frequency of one fault in one source, and its verdict on a comparison."""

    name: str
    """Name of the fault, such as ``length ratio``."""
    source: str
    """Source that is compared with the reference; empty for the collection as a whole."""
    count: int
    """Number of documents, pairs or judgments with the fault.

    For the length ratio, it is the number of pairs outside its limits.
    """
    total: int
    """Number of documents, pairs or judgments that were examined."""
    value: float
    """Share in percent, or the median length ratio; NaN if nothing could be examined."""
    verdict: Verdict
    """What the fault means for the comparison."""
    limit: str = ""
    """Values that do not void the comparison, in words; empty if no value voids it."""
    reference: float = math.nan
    """Share in the reference, in percent; NaN for faults of pairs and judgments."""
    details: FaultDetails = FaultDetails()
    """Further numbers, if the fault has any."""
    examples: tuple[str, ...] = ()
    """Ids of the first documents with the fault; for judgments, of query and document."""

    @property
    def shown_value(self) -> str:
        """The value with its unit; a dash if it is undefined."""
        if math.isnan(self.value):
            return "–"
        # A value just outside a bound must not be rounded to the bound itself.
        bounds = list(map(float, _BOUND.findall(self.limit)))
        if self.name != LENGTH:
            reads_as_bound = round(self.value, 1) in bounds and self.value not in bounds
            return f"{self.value:.4g} %" if reads_as_bound else percent(self.value)
        text = f"{self.value:.2f}"
        reads_as_bound = float(text) in (*bounds, *LENGTH_NOTICE)
        if reads_as_bound and float(text) != self.value:
            return f"{self.value:.4f}"
        return text


def percent(share: float) -> str:
    """Format a share in percent with one decimal; empty for NaN.

    Only an exact 0 reads ``0.0 %``, and only an exact 100 reads ``100.0 %``.
    """
    if math.isnan(share):
        return ""
    text = f"{share:.1f}"
    if text == "0.0" and share:
        text = "< 0.1"
    if text == "100.0" and share < 100:
        text = "> 99.9"
    return f"{text} %"


def find_faults(
    collection: Collection,
    reference: str,
    sources: tuple[str, ...],
    *,
    limits: CheckLimits = LIMITS,
    examples: int = 3,
) -> tuple[FaultRow, ...]:
    """Count the faults of each source's texts and pairs, of the judgments and of the queries.

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
        The faults of each source, and at the end those of the collection as a whole.

        The verdict is ``void`` if a limit is exceeded, or if no pair of different texts is left. It
        is ``warning`` if a share exceeds ``limits.warn_above``, if the median length ratio is
        outside 0.9–1.1, if a judgment is of an unknown document, or if nothing could be examined.
        For title prefixes and cut texts, it is the gap between the sources' shares that must not
        exceed ``limits.warn_above``.

        Documents that were not chosen for rewriting (column ``pool``) do not lack a twin, unless
        they are relevant to a query.
    """
    documents = _examined_documents(collection)
    rows = list[FaultRow]()
    for source in sources:
        twins = _Twins(documents, reference, source, limits=limits, examples=examples)
        if reference:
            rows += _faults_of_twins(twins, collection)
        else:
            rows += _faults_of_texts(twins, None)
    rows.append(_dangling_judgments(collection, examples))
    rows.append(_repeated_queries(collection, examples))
    return tuple(rows)


_TEXT_FLAGS = {
    "opening": lambda text: quality.opening(text).is_not_null(),
    "refusal": quality.refusal,
    "cut_off": quality.cut_off,
    "script": quality.script,
    "words": quality.words,
}
"""Functions that examine texts, by the name of the column that they make."""


def _examined_documents(collection: Collection) -> pl.DataFrame:
    """Return every document with the columns of `_TEXT_FLAGS`, and with further ones.

    - ``row``: its row in the collection
    - ``outside``: whether it was not chosen for rewriting (`POOL`)
    - ``copy``: whether it has the text of an earlier document of its source
    - ``prefixed``: whether its text begins with its title
    - ``relevant``: whether it is relevant to any query
    - ``limit``: number of words at which the texts of its source stop; null if they do not stop
    - ``cut``: whether it has exactly that many words
    """
    has_pool = collection.docs.schema.get(POOL) == pl.Boolean
    outside = ~pl.col(POOL).fill_null(True) if has_pool else pl.lit(False)
    docs = collection.docs.select("id", "title", "text", "source", "origin", outside=outside)
    docs = pl.concat([docs, _text_flags(docs)], how="horizontal").with_row_index("row")
    copy = ~pl.col("empty") & ~pl.struct("source", "hash", "hash_again").is_first_distinct()
    relevant_ids = collection.qrels.filter(pl.col("grade") > 0)["doc_id"]
    docs = docs.with_columns(
        copy=copy,
        prefixed=title_prefixed(collection.docs).fill_null(False),
        relevant=collection.ids.is_in(relevant_ids.implode()),
    )
    stated = docs.filter(pl.col("source").is_not_null())
    cuts = {
        source: cut_at(part["words"])
        for (source,), part in stated.partition_by("source", as_dict=True).items()
    }
    limit = pl.col("source").replace_strict(cuts, default=None, return_dtype=pl.Int64)
    docs = docs.with_columns(limit=limit)
    return docs.with_columns(cut=(pl.col("words") == pl.col("limit")).fill_null(False))


def _text_flags(docs: pl.DataFrame) -> pl.DataFrame:
    """Return the columns of `_TEXT_FLAGS` for each text, whether it is empty, and two hashes.

    A few blocks of texts are examined at a time, in threads.
    """
    frames, examined_count = list[pl.DataFrame](), 0
    blocks = list(docs.iter_slices(TEXTS_A_BLOCK)) if docs.height else [docs]
    for frame in map_in_threads(_flags_of_block, blocks):
        frames.append(frame)
        examined_count += frame.height
        report("examining texts", examined_count, docs.height)
    return pl.concat(frames)


def _flags_of_block(docs: pl.DataFrame) -> pl.DataFrame:
    """Return what `_text_flags` returns, for a block of documents."""
    text = docs["text"].str.strip_chars()
    flags = {name: flag(text) for name, flag in _TEXT_FLAGS.items()}
    # Texts are compared by two hashes of 64 bits, so that not all texts are in memory together.
    hashes = {"hash": text.hash(0), "hash_again": text.hash(1)}
    release_texts()
    return pl.DataFrame({**flags, **hashes, "empty": text == ""})


class _Twins:
    """The documents of a source and of the reference, and their pairs.

    Its methods count faults. `pairs` has the columns of both documents of a pair; the names of the
    columns of the source's document end in ``_b``.

    Parameters
    ----------
    docs : polars.DataFrame
        All documents, as `_examined_documents` returns them.
    reference, source : str
        The sources to compare; without a reference there are no pairs.
    limits : CheckLimits
        Limits beyond which a fault voids the comparison.
    examples : int
        Most ids to name in a row.
    """

    def __init__(
        self,
        docs: pl.DataFrame,
        reference: str,
        source: str,
        *,
        limits: CheckLimits,
        examples: int,
    ) -> None:
        self.source, self.limits, self.examples = source, limits, examples
        self.reference = docs.filter(pl.col("source") == reference)
        self.docs = docs.filter(pl.col("source") == source)
        self.pairs = self.reference.join(
            self.docs, on="origin", suffix="_b", maintain_order="left_right"
        )
        # If the source has twins of documents that were not chosen for rewriting, the choice does
        # not apply to this source.
        is_outside = self.pairs.select(pl.col("outside") | pl.col("outside_b")).to_series()
        self.is_pooled = not is_outside.any()

    def missing_twins(self, limit: float) -> FaultRow:
        """Count origins with a document by only one of the two sources.

        Documents that were not chosen for rewriting do not count, unless they are relevant. `limit`
        is the largest allowed share, in percent.
        """
        only_reference = self.reference.join(
            self.docs, on="origin", how="anti", maintain_order="left"
        )
        only_source = self.docs.join(self.reference, on="origin", how="anti", maintain_order="left")
        unpaired = pl.concat([only_reference, only_source])
        unpaired = unpaired.unique("origin", keep="first", maintain_order=True)
        details = FaultDetails()
        if self.is_pooled:
            outside = unpaired.filter("outside")
            relevant_count = outside.filter("relevant").height
            details = FaultDetails(
                without_twin_by_design=outside.height - relevant_count,
                relevant_without_twin=relevant_count,
            )
            unpaired = unpaired.filter(~pl.col("outside") | pl.col("relevant"))
        total = unpaired.height + self.pairs["origin"].n_unique()
        return self.row(MISSING, unpaired["id"], total, limit=limit, details=details)

    def row(
        self,
        name: str,
        ids: pl.Series,
        total: int,
        *,
        limit: float | None = None,
        reference: float = math.nan,
        details: FaultDetails = FaultDetails(),
    ) -> FaultRow:
        """Return the row of a fault, with a verdict on its share.

        Parameters
        ----------
        name : str
            Name of the fault.
        ids : polars.Series
            Ids of the documents with the fault; for pairs, of one of the two documents.
        total : int
            Number of documents or pairs that were examined.
        limit : float, optional
            Share in percent above which the fault voids the comparison; by default no share does.
        reference : float, optional
            Share of the reference's documents that have the fault, in percent.
        details : FaultDetails, optional
            Further numbers.
        """
        value = 100 * len(ids) / total if total else math.nan
        return FaultRow(
            name=name,
            source=self.source,
            count=len(ids),
            total=total,
            value=value,
            verdict=_verdict(value, limit, self.limits.warn_above),
            limit="" if limit is None else f"≤ {limit:g} %",
            reference=reference,
            details=details,
            examples=tuple(ids.head(self.examples)),
        )

    def pairs_with(
        self, name: str, fault: pl.Expr | pl.Series, *, limit: float | None = None
    ) -> FaultRow:
        """Count the pairs for which `fault` is true; the examples are documents of the source."""
        ids = self.pairs.filter(fault)["id_b"]
        return self.row(name, ids, self.pairs.height, limit=limit)

    def texts_with(self, name: str, column: str, *, limit: float | None = None) -> FaultRow:
        """Count documents of the source for which `column` is true.

        The row has the reference's share too, and the verdict is on the larger of both shares.
        """
        reference_share = math.nan
        if self.reference.height:
            reference_share = 100 * int(self.reference[column].sum()) / self.reference.height
        ids = self.docs.filter(pl.col(column))["id"]
        row = self.row(name, ids, self.docs.height, limit=limit, reference=reference_share)
        # A pair is spoilt whichever of its documents has the fault.
        larger_share = float(np.fmax(row.value, reference_share))
        return replace(row, verdict=_verdict(larger_share, limit, self.limits.warn_above))

    def uneven_trait(self, name: str, column: str) -> FaultRow:
        """Count documents with a trait; the verdict is on the gap between both sources' shares.

        A trait that both sources have equally often favours neither.
        """
        row = self.texts_with(name, column)
        gap = abs(row.value - row.reference)
        return replace(row, verdict=_verdict(gap, None, self.limits.warn_above))

    def cut_texts(self) -> FaultRow:
        """Count texts that are cut short; a warning if the two sources are cut differently."""
        row = self.uneven_trait(CUT, "cut")
        if self.has_unequal_cuts:
            row = replace(row, verdict="warning")
        return replace(row, details=FaultDetails(cuts=self.cuts))

    @property
    def has_unequal_cuts(self) -> bool:
        """Whether the texts of both sources stop at a length, but not at the same length."""
        reference_length, source_length = (
            docs["limit"].drop_nulls().unique().to_list() for docs in (self.reference, self.docs)
        )
        return bool(reference_length and source_length and reference_length != source_length)

    @property
    def cuts(self) -> tuple[TextCut, ...]:
        """The lengths at which texts stop, for those of the two sources whose texts do."""
        limits = [(docs["source"][0], docs["limit"][0]) for docs in (self.reference, self.docs)]
        return tuple(
            TextCut(source=source, words=words) for source, words in limits if words is not None
        )


def _faults_of_twins(twins: _Twins, collection: Collection) -> Iterator[FaultRow]:
    """Count all faults of one source compared with the reference."""
    pairs, limits = twins.pairs, twins.limits
    yield twins.missing_twins(limits.max_missing)
    yield from _faults_of_likeness(twins, collection)
    yield from _faults_of_texts(twins, limits)
    yield _length_ratio(twins)
    yield twins.pairs_with("script differs", pl.col("script") != pl.col("script_b"))
    yield twins.uneven_trait("title prefixes", "prefixed")
    yield twins.cut_texts()
    has_title = pl.col("title").str.strip_chars() != ""
    yield twins.pairs_with("shared titles", (pl.col("title") == pl.col("title_b")) & has_title)
    relevant_pair_count, one_sided = _one_sided_judgments(pairs, collection)
    yield twins.row(ONE_SIDED, one_sided, relevant_pair_count, limit=limits.max_one_sided)


def _faults_of_likeness(twins: _Twins, collection: Collection) -> Iterator[FaultRow]:
    """Count identical and near-identical pairs; void if all pairs are alike or empty."""
    pairs, limits = twins.pairs, twins.limits
    rows = pairs.select("row", "row_b").to_numpy().astype(np.int64)
    likeness = pl.Series(twin_likeness(collection, rows, limits.near_identical))
    is_identical, is_near_identical = likeness == IDENTICAL_TEXTS, likeness == ALIKE_TEXTS
    yield twins.pairs_with("identical pairs", is_identical, limit=limits.max_identical)
    near_identical = replace(
        twins.pairs_with(NEAR_IDENTICAL, is_near_identical),
        limit="not all",
        details=FaultDetails(least_similarity=limits.near_identical),
    )
    is_alike = is_identical | is_near_identical
    none_differs = bool((is_alike | (pairs["empty"] & pairs["empty_b"])).all())
    # Without any pair there is no comparison either. If all texts are empty, that is another fault.
    is_void = none_differs and bool(is_alike.any() or not pairs.height)
    yield replace(near_identical, verdict="void") if is_void else near_identical


def _faults_of_texts(twins: _Twins, limits: CheckLimits | None) -> Iterator[FaultRow]:
    """Count the faults of a source's texts by themselves.

    `limits` is None if the source is not compared with another, so that no fault voids anything.
    """
    max_refusals = None if limits is None else limits.max_refusals
    max_boilerplate = None if limits is None else limits.max_boilerplate
    max_cut_off = None if limits is None else limits.max_cut_off
    yield twins.texts_with("refusals", "refusal", limit=max_refusals)
    yield twins.texts_with("boilerplate openings", "opening", limit=max_boilerplate)
    yield twins.texts_with("cut-off endings", "cut_off", limit=max_cut_off)
    yield twins.texts_with("empty texts", "empty")
    yield twins.texts_with("duplicate texts", "copy")


def _verdict(value: float, limit: float | None, notice: float) -> Verdict:
    """Return the verdict on a share in percent.

    It is ``void`` above `limit`, and ``warning`` above `notice` or for NaN. If the limit is None,
    the fault never voids a comparison.
    """
    if limit is not None and value > limit:
        return "void"
    # NaN is not smaller than anything, so that an undefined share is a warning.
    return "ok" if value <= notice else "warning"


def _length_ratio(twins: _Twins) -> FaultRow:
    """Compare the lengths of each pair: words of the source's text over words of the reference's.

    Pairs whose reference has no word are left out.
    """
    limits, pairs = twins.limits, twins.pairs.filter(pl.col("words") > 0)
    ratios = pairs["words_b"].to_numpy() / pairs["words"].to_numpy()
    is_outside = (ratios < limits.min_length_ratio) | (ratios > limits.max_length_ratio)
    low, median, high = np.quantile(ratios, (0.25, 0.5, 0.75)) if len(ratios) else (math.nan,) * 3
    verdict: Verdict = "ok" if LENGTH_NOTICE[0] <= median <= LENGTH_NOTICE[1] else "warning"
    if median < limits.min_length_ratio or median > limits.max_length_ratio:
        verdict = "void"
    ids = pairs["id_b"].filter(pl.Series(is_outside, dtype=pl.Boolean))
    return FaultRow(
        name=LENGTH,
        source=twins.source,
        count=len(ids),
        total=len(ratios),
        value=float(median),
        verdict=verdict,
        limit=f"{limits.min_length_ratio:g}–{limits.max_length_ratio:g}",
        details=FaultDetails(lower_quartile=float(low), upper_quartile=float(high)),
        examples=tuple(ids.head(twins.examples)),
    )


def _one_sided_judgments(pairs: pl.DataFrame, collection: Collection) -> tuple[int, pl.Series]:
    """Compare the grades of the two documents of each pair, for each query.

    Only pairs with a document that is relevant to the query count. Returns their number over all
    queries, and the names of those with unequal grades: the query, and the document with the higher
    grade. A twin without a judgment has grade 0.
    """
    relevant = collection.qrels.filter(pl.col("grade") > 0)
    relevant = relevant.join(collection.queries, left_on="query_id", right_on="id", how="semi")
    key = ["query_id", "id", "id_b"]
    ids = pairs.select("id", "id_b")
    first_grades = relevant.join(ids, left_on="doc_id", right_on="id", coalesce=False)
    second_grades = relevant.join(ids, left_on="doc_id", right_on="id_b", coalesce=False)
    grades = first_grades.select(*key, a="grade").join(
        second_grades.select(*key, b="grade"), on=key, how="full", coalesce=True
    )
    grades = grades.with_columns(pl.col("a", "b").fill_null(0)).sort(key)
    higher_id = pl.when(pl.col("a") > pl.col("b")).then("id").otherwise("id_b")
    unequal = grades.filter(pl.col("a") != pl.col("b"))
    names = unequal.select(name=pl.format("{} {}", "query_id", higher_id))["name"]
    return grades.height, names


def _dangling_judgments(collection: Collection, examples: int) -> FaultRow:
    """Count judgments of documents or queries that are not in the collection."""
    qrels = collection.qrels
    known = qrels.join(collection.docs, left_on="doc_id", right_on="id", how="semi")
    known = known.join(collection.queries, left_on="query_id", right_on="id", how="semi")
    dangling = qrels.join(known, on=["query_id", "doc_id"], how="anti", maintain_order="left")
    names = dangling.select(name=pl.format("{} {}", "query_id", "doc_id"))["name"]
    return _collection_row(DANGLING, names, qrels.height, examples)


def _repeated_queries(collection: Collection, examples: int) -> FaultRow:
    """Count queries with the text of an earlier query."""
    queries = collection.queries_with_judgments.with_columns(pl.col("text").str.strip_chars())
    is_repeated = (pl.col("text") != "") & ~pl.col("text").is_first_distinct()
    return _collection_row(REPEATED, queries.filter(is_repeated)["id"], queries.height, examples)


def _collection_row(name: str, names: pl.Series, total: int, examples: int) -> FaultRow:
    """Return the row of a fault of the collection as a whole; a single occurrence is a warning.

    `names` has the name of each judgment or query with the fault, and `total` is the number of all.
    """
    value = 100 * len(names) / total if total else math.nan
    return FaultRow(
        name=name,
        source="",
        count=len(names),
        total=total,
        value=value,
        verdict=_verdict(value, None, 0),
        examples=tuple(names.head(examples)),
    )
