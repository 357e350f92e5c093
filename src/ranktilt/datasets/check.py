"""Whether a collection makes a fair comparison: what its texts, pairs and judgments lack, before anything is ranked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import polars as pl

from ranktilt._version import __version__
from ranktilt.collection import Collection
from ranktilt.datasets.check_limits import LIMITS, CheckLimits
from ranktilt.datasets.label_remarks import label_remarks
from ranktilt.datasets.stated_sources import no_source
from ranktilt.errors import UserError, counted
from ranktilt.io.artifact import Result
from ranktilt.io.texts import AT_ONCE
from ranktilt.progress import report
from ranktilt.text import quality

Verdict = Literal["ok", "warning", "void"]

MISSING, LENGTH, ONE_SIDED, DANGLING, REPEATED = (
    "pairs missing a side",
    "length ratio",
    "one-sided judgments",
    "dangling judgments",
    "repeated queries",
)
POOL = "pool"
"""Boolean column of the documents of a pooled collection: whether one was chosen to be rewritten."""
LENGTH_NOTICE = (0.9, 1.1)
"""Median length ratios outside of this are a warning."""


@dataclass(frozen=True)
class CheckRow:
    name: str
    source: str
    """The source that is held against the reference; empty for the collection as a whole."""
    meaning: str
    """Why it matters, in one line."""
    found: int
    """Documents, pairs or judgments with the fault; for the length ratio, pairs outside of the limits."""
    total: int
    value: float
    """Share in %, or the median length ratio; NaN where there is nothing to count."""
    verdict: Verdict
    limit: str = ""
    """The values that do not void the comparison, in words; empty where none does."""
    reference: float = math.nan
    """The share in the reference, where it has one of its own."""
    note: str = ""
    examples: tuple[str, ...] = ()
    """Ids of the first documents with the fault; for judgments, query and document."""


CHANCE = 0.05
"""Share of audits in which a side may be named where nobody is favoured."""


@dataclass(frozen=True, kw_only=True)
class InstrumentRow:
    """How often an audit of one ranker names a side where a coin decided who wrote what."""

    ranker: str
    """Its text."""
    question: str
    """Notation of the primary question."""
    named: int
    """Audits that named a side."""
    tosses: int
    """Audits in all."""
    low: float
    high: float
    """95 % interval of the share, 0 to 1."""

    @property
    def is_calibrated(self) -> bool:
        """Whether the share may be that of chance, or is below it."""
        return self.low <= CHANCE

    @property
    def sentence(self) -> str:
        """What was counted, in one sentence."""
        share, low, high = (
            f"{100 * part:.1f}" for part in (self.named / self.tosses, self.low, self.high)
        )
        expected = f"at most {100 * CHANCE:g} % are expected"
        outcome = expected if self.is_calibrated else f"too often: {expected}"
        return (
            f"{self.ranker} on {self.question}: with sources by a coin, {self.named} of {self.tosses} audits "
            f"name a side ({share} % [{low}, {high}]); {outcome}"
        )


@dataclass(frozen=True, eq=False)
class CheckResult(
    Result, format="ranktilt-check", version=1, noun="a check", command="ranktilt check"
):
    """The result of `check`: its rows by source, and those on the whole collection last."""

    rows: tuple[CheckRow, ...]
    reference: str
    """The source that the others are held against; empty where one source is left, which is compared with none."""
    sources: tuple[str, ...]
    limits: CheckLimits = LIMITS
    sourceless: int = 0
    """Documents without a source, which are on no side."""
    spec: Mapping[str, Any] = field(default_factory=dict)
    instrument: tuple[InstrumentRow, ...] = ()
    """Audits with sources by a coin, ranker by ranker, where they were asked for."""

    def of(self, verdict: Verdict) -> tuple[CheckRow, ...]:
        """Return the rows with a verdict."""
        return tuple(row for row in self.rows if row.verdict == verdict)

    @property
    def fair(self) -> bool:
        """Whether no row voids the comparison, and no audit names a side more often than chance does."""
        return not self.of("void") and all(row.is_calibrated for row in self.instrument)

    @property
    def sentence(self) -> str:
        """The verdict on the whole, in one sentence."""
        faults, warnings = self.of("void"), self.of("warning")
        if faults:
            return f"Void because of {'; '.join(self._named(row, amounts=True) for row in faults)}."
        text = f"A fair comparison of {' and '.join(self.sources)} with {self.reference}: nothing found that voids it"
        if not self.reference:
            text = f"Only source {self.sources[0]!r} is left: nothing is compared"
        names = ", ".join(self._named(row) for row in warnings)
        return (
            f"{text}; {counted(len(warnings), 'warning', 'warnings')}: {names}."
            if warnings
            else f"{text}."
        )

    def _named(self, row: CheckRow, *, amounts: bool = False) -> str:
        where = f" of {row.source}" if row.source and len(self.sources) > 1 else ""
        amount = (
            f"median {shown(row)}"
            if row.name == LENGTH
            else f"{row.found:,} of {row.total:,}, {shown(row)}"
        )
        return f"{row.name}{where}" + (f" ({amount}; limit {row.limit})" if amounts else "")

    def derived(self) -> dict[str, Any]:
        return {"fair": self.fair, "sentence": self.sentence}


def shown(row: CheckRow) -> str:
    """Print a row's value with its unit, a dash where it is undefined."""
    if math.isnan(row.value):
        return "–"
    return f"{row.value:.2f}" if row.name == LENGTH else percent(row.value)


def percent(share: float) -> str:
    """Print a share in %; what is not nothing never reads 0, and what is not all never 100."""
    if math.isnan(share):
        return ""
    text = f"{share:.1f}"
    if text == "0.0" and share:
        text = "< 0.1"
    if text == "100.0" and share < 100:
        text = "> 99.9"
    return f"{text} %"


MEANINGS = {
    MISSING: "documents without a twin of the same origin: the sides do not hold the same content",
    "identical pairs": "both sides have the same text: they can only tie",
    "near-identical pairs": "both sides have nearly the same text: little is left to tell them apart",
    "refusals": "the model declined to write: such a text cannot be relevant",
    "boilerplate openings": "the text begins with words about the rewrite, which no searcher asks for",
    "cut-off endings": "the text ends without a full stop: its rest may have held the answer",
    "empty texts": "there is nothing to rank",
    "duplicate texts": "the same text again within the source: copies share one fate",
    LENGTH: "rankers weigh length by themselves: a tilt may be one of length",
    "script differs": "the twins are written in different scripts: a translation, not a rewrite",
    "title prefixes": "the text begins with its title, which counts twice then: an advantage if one side dropped it",
    "texts cut short": "the text stops at one length for all: what stood behind it can be found on the other side only",
    "shared titles": "both twins carry the same title: ranked with it, they differ less than their texts do",
    ONE_SIDED: "relevant documents whose twin has another grade or none: the measure favours the judged side",
    DANGLING: "judgments of documents or queries that the collection does not hold count in no group",
    REPEATED: "queries with the text of another are no evidence of their own: an audit resamples them together",
}
"""Names of the checks, in order, each with why it matters."""


def check(
    collection: Collection,
    *,
    reference: str | None = None,
    limits: CheckLimits = LIMITS,
    examples: int = 3,
) -> CheckResult:
    """Check whether a collection makes a fair comparison of its sources.

    Parameters
    ----------
    collection : Collection
        With two sources or more. Documents without a source are on no side, and counted; where one
        source is left beside them, its texts are examined, and compared with none. Load it with
        ``ignore_unknown=True``, so that judgments of unknown documents are counted.
    reference : str, optional
        The source that each of the others is held against: ``"human"`` where there is one, or else
        the first.
    limits : CheckLimits, optional
        From where on a fault voids the comparison.
    examples : int, optional
        Most ids to name in a row.

    Returns
    -------
    CheckResult
        A row for each other source and check. Pairs are documents with one origin. ``void``: beyond
        the limit, or no pair is left that differs; ``warning``: over ``limits.notice`` % (for title
        prefixes and cuts, so many points between the sides), a median length ratio outside 0.9–1.1,
        any unknown judgment, or nothing to count. Documents outside of a pool (column ``pool``)
        miss no twin, unless they are relevant to a query.
    """
    sources = collection.sources
    collection.require_few_sources()
    for remark in label_remarks("source", collection.docs["source"]):
        remark.warn()
    if not sources and collection.docs.height:
        raise UserError(
            no_source(collection, advice="name the source of each document, in the field source")
        )
    if not sources or (len(sources) < 2 and not collection.sourceless):
        came = f"only source {sources[0]!r}" if sources else "no document"
        raise UserError(
            f"nothing to compare: {came}; expected two sources, such as human text and its rewrites"
        )
    if reference is not None and reference not in sources:
        raise collection.unknown_source(reference)
    first = reference or ("human" if "human" in sources else sources[0])
    if len(sources) < 2:
        first = ""  # nothing to hold it against
    others = tuple(s for s in sources if s != first)
    docs = _examined(collection)
    rows = list[CheckRow]()
    for other in others:
        twins = _Twins(docs, first, other, limits, examples)
        rows += _compared(twins, collection) if first else _texts_alone(twins)
    rows += [_dangling(collection, examples), _repeated(collection, examples)]
    spec = {
        **{name: collection.spec[name] for name in ("path", "split") if name in collection.spec},
        "documents": collection.docs.height,
        "queries": collection.queries.height,
        "judgments": collection.qrels.height,
        "ranktilt": __version__,
    }
    return CheckResult(tuple(rows), first, others, limits, collection.sourceless, spec)


_FEATURES = {
    "opening": lambda text: quality.opening(text).is_not_null(),
    "refusal": quality.refusal,
    "cut_off": quality.cut_off,
    "script": quality.script,
    "words": quality.words,
}


def _examined(collection: Collection) -> pl.DataFrame:
    """Every document with what can be seen in its text."""
    pooled = collection.docs.schema.get(POOL) == pl.Boolean
    outside = ~pl.col(POOL).fill_null(True) if pooled else pl.lit(False)
    docs = collection.docs.select("id", "title", "source", "origin", given="text", outside=outside)
    found, done = list[pl.DataFrame](), 0
    for part in docs.iter_slices(AT_ONCE) if docs.height else [docs]:
        text = part["given"].str.strip_chars()
        seen = {name: look(text) for name, look in _FEATURES.items()}
        # Two hashes of 64 bits stand for a text, so that copies are told without holding all texts.
        found.append(
            pl.DataFrame({**seen, "empty": text == "", "one": text.hash(0), "two": text.hash(1)})
        )
        done += part.height
        report("examining texts", done, docs.height)
    docs = pl.concat([docs, pl.concat(found)], how="horizontal")
    copy = ~pl.col("empty") & ~pl.struct("source", "one", "two").is_first_distinct()
    docs = docs.with_columns(
        copy=copy,
        prefixed=title_prefixed(collection.docs).fill_null(False),
        relevant=collection.ids.is_in(
            collection.qrels.filter(pl.col("grade") > 0)["doc_id"].implode()
        ),
    )
    stated = docs.filter(pl.col("source").is_not_null())
    cuts = {
        source: cut_at(part["words"])[0]
        for (source,), part in stated.partition_by("source", as_dict=True).items()
    }
    docs = docs.with_columns(
        limit=pl.col("source").replace_strict(cuts, default=None, return_dtype=pl.Int64)
    )
    return docs.with_columns(cut=(pl.col("words") == pl.col("limit")).fill_null(False))


class _Twins:
    """A source beside the reference: the documents of both, and their pairs."""

    def __init__(
        self, docs: pl.DataFrame, reference: str, other: str, limits: CheckLimits, examples: int
    ) -> None:
        self.name, self.limits, self.examples = other, limits, examples
        self.reference = docs.filter(pl.col("source") == reference)
        self.docs = docs.filter(pl.col("source") == other)
        self.pairs = self.reference.join(
            self.docs, on="origin", suffix="_b", maintain_order="left_right"
        )
        # A source that holds a twin of what a pool left out was not made from that pool.
        self.pooled = (
            not self.pairs.select(pl.col("outside") | pl.col("outside_b")).to_series().any()
        )

    def unpaired(self) -> tuple[pl.Series, str]:
        """Ids of one document for each origin that only one side has and should not; and a word on the others."""
        left = self.reference.join(self.docs, on="origin", how="anti", maintain_order="left")
        right = self.docs.join(self.reference, on="origin", how="anti", maintain_order="left")
        found = pl.concat([left, right]).unique("origin", keep="first", maintain_order=True)
        outside = found.filter("outside") if self.pooled else found.clear()
        asked = outside.filter("relevant").height
        notes = [
            f"{counted(outside.height - asked, 'document', 'documents')} outside the pool have no twin by design",
            f"{asked:,} outside the pool are relevant to a query and count as missing: pool with these queries too",
        ]
        note = "; ".join(
            text for text, n in zip(notes, (outside.height - asked, asked), strict=True) if n
        )
        missing = found.filter(~pl.col("outside") | pl.col("relevant")) if self.pooled else found
        return missing["id"], note

    def row(
        self, name: str, found: pl.Series, total: int, *, limit: float | None = None, **more: Any
    ) -> CheckRow:
        """What was found of a total, judged by its share."""
        value = 100 * len(found) / total if total else math.nan
        return CheckRow(
            name,
            self.name,
            MEANINGS[name],
            len(found),
            total,
            value,
            _verdict(value, limit, self.limits.notice),
            limit="" if limit is None else f"≤ {limit:g} %",
            examples=tuple(found.head(self.examples)),
            **more,
        )

    def twins(
        self, name: str, fault: pl.Expr | pl.Series, *, limit: float | None = None, note: str = ""
    ) -> CheckRow:
        """Pairs with a fault, named by their other side."""
        return self.row(
            name, self.pairs.filter(fault)["id_b"], self.pairs.height, limit=limit, note=note
        )

    def texts(self, name: str, column: str, *, limit: float | None = None) -> CheckRow:
        """Documents of the other side with a fault, beside the reference's own share."""
        beside = (
            100 * int(self.reference[column].sum()) / self.reference.height
            if self.reference.height
            else math.nan
        )
        found = self.docs.filter(pl.col(column))["id"]
        return self.row(name, found, self.docs.height, limit=limit, reference=beside)

    def apart(self, name: str, column: str, *, note: str = "") -> CheckRow:
        """Documents of the other side with something that favours the side that has more of it, on either side."""
        row = self.texts(name, column)
        gap = abs(row.value - row.reference)
        return replace(row, verdict=_verdict(gap, None, self.limits.notice), note=note)


def _limits(twins: _Twins) -> str:
    sides = ((side["source"][0], side["limit"][0]) for side in (twins.reference, twins.docs))
    return "; ".join(f"{source} at {limit:,} words" for source, limit in sides if limit is not None)


def _compared(twins: _Twins, collection: Collection) -> Iterator[CheckRow]:
    pairs, limits = twins.pairs, twins.limits
    lone, note = twins.unpaired()
    alike = pl.Series(quality.likeness(pairs["given"], pairs["given_b"], limits.near_identical))
    titled = (pl.col("title") == pl.col("title_b")) & (pl.col("title").str.strip_chars() != "")
    total, one_sided = _one_sided(pairs, collection)
    missing = len(lone) + pairs["origin"].n_unique()
    note = (
        note
        if pairs.height
        else "no origin is shared: twins need one origin, or one _id in two files"
    )
    yield twins.row(MISSING, lone, missing, limit=limits.missing, note=note)
    same = twins.twins("identical pairs", alike == 2, limit=limits.identical)
    yield same
    note = f"Jaccard similarity of terms ≥ {limits.near_identical:g}"
    near = twins.twins("near-identical pairs", alike == 1, note=note)
    near = replace(near, limit=f"< 100 %{' with identical ones' if same.found else ''}")
    none_left = bool((alike > 0).any()) and bool(
        ((alike > 0) | (pairs["empty"] & pairs["empty_b"])).all()
    )
    yield replace(near, verdict="void") if none_left else near
    yield from _texts_alone(twins, limits)
    yield _length(twins)
    yield twins.twins("script differs", pl.col("script") != pl.col("script_b"))
    yield twins.apart("title prefixes", "prefixed")
    yield twins.apart("texts cut short", "cut", note=_limits(twins))
    yield twins.twins("shared titles", titled)
    yield twins.row(ONE_SIDED, one_sided, total, limit=limits.one_sided)


def _texts_alone(twins: _Twins, limits: CheckLimits | None = None) -> Iterator[CheckRow]:
    """Examine the texts of a source, without their twins; within `limits` where they void a comparison."""
    yield twins.texts("refusals", "refusal", limit=limits.refusals if limits else None)
    yield twins.texts(
        "boilerplate openings", "opening", limit=limits.boilerplate if limits else None
    )
    yield twins.texts("cut-off endings", "cut_off", limit=limits.cut_off if limits else None)
    yield twins.texts("empty texts", "empty")
    yield twins.texts("duplicate texts", "copy")


def _verdict(value: float, limit: float | None, notice: float) -> Verdict:
    if limit is not None and value > limit:
        return "void"
    return "ok" if value <= notice else "warning"  # what is undefined is no reason to be at ease


def _length(twins: _Twins) -> CheckRow:
    """Words of the rewrite over words of the reference, pairs without words in the reference left out."""
    limits, known = twins.limits, twins.pairs.filter(pl.col("words") > 0)
    ratio = known["words_b"].to_numpy() / known["words"].to_numpy()
    outside = (ratio < limits.shortest) | (ratio > limits.longest)
    low, median, high = np.quantile(ratio, (0.25, 0.5, 0.75)) if len(ratio) else (math.nan,) * 3
    verdict: Verdict = "ok" if LENGTH_NOTICE[0] <= median <= LENGTH_NOTICE[1] else "warning"
    if median < limits.shortest or median > limits.longest:
        verdict = "void"
    note = f"words for each word of the reference, median; quartiles {low:.2f} and {high:.2f}"
    return CheckRow(
        LENGTH,
        twins.name,
        MEANINGS[LENGTH],
        int(outside.sum()),
        len(ratio),
        float(median),
        verdict,
        limit=f"{limits.shortest:g}–{limits.longest:g}",
        note=note if len(ratio) else "",
        examples=tuple(
            known["id_b"].filter(pl.Series(outside, dtype=pl.Boolean)).head(twins.examples)
        ),
    )


def _one_sided(pairs: pl.DataFrame, collection: Collection) -> tuple[int, pl.Series]:
    """How many relevant (query, pair) there are, and those whose sides do not have the same grade, named."""
    relevant = collection.qrels.filter(pl.col("grade") > 0)
    relevant = relevant.join(collection.queries, left_on="query_id", right_on="id", how="semi")
    key = ["query_id", "id", "id_b"]
    a = relevant.join(pairs.select("id", "id_b"), left_on="doc_id", right_on="id", coalesce=False)
    b = relevant.join(pairs.select("id", "id_b"), left_on="doc_id", right_on="id_b", coalesce=False)
    both = a.select(*key, a="grade").join(
        b.select(*key, b="grade"), on=key, how="full", coalesce=True
    )
    both = both.with_columns(pl.col("a", "b").fill_null(0)).sort(key)
    higher = pl.when(pl.col("a") > pl.col("b")).then("id").otherwise("id_b")
    odd = both.filter(pl.col("a") != pl.col("b")).select(
        pl.format("{} {}", "query_id", higher).alias("name")
    )
    return both.height, odd["name"]


def _dangling(collection: Collection, examples: int) -> CheckRow:
    """Judgments that name a document or a query that the collection does not hold."""
    qrels = collection.qrels
    sound = qrels.join(collection.docs, left_on="doc_id", right_on="id", how="semi")
    sound = sound.join(collection.queries, left_on="query_id", right_on="id", how="semi")
    odd = qrels.join(sound, on=["query_id", "doc_id"], how="anti", maintain_order="left")
    names = odd.select(pl.format("{} {}", "query_id", "doc_id").alias("name"))["name"]
    return _whole(DANGLING, names, qrels.height, examples)


def _repeated(collection: Collection, examples: int) -> CheckRow:
    """Queries with the text of an earlier one."""
    asked = collection.judged.with_columns(pl.col("text").str.strip_chars())
    again = asked.filter((pl.col("text") != "") & ~pl.col("text").is_first_distinct())["id"]
    return _whole(REPEATED, again, asked.height, examples)


def _whole(name: str, found: pl.Series, total: int, examples: int) -> CheckRow:
    """A row on the collection as a whole; anything found is a warning."""
    value = 100 * len(found) / total if total else math.nan
    named = tuple(found.head(examples))
    return CheckRow(
        name, "", MEANINGS[name], len(found), total, value, _verdict(value, None, 0), examples=named
    )


PAGE_TITLE = "page_title"
"""A column that keeps the title of documents whose title stands in their text, so that it is not ranked twice."""

SHORTEST_CUT = 20
"""Fewer words than this are no cut, but short texts."""
_FEWEST, _SHARE, _LONGER, _NEIGHBOURS, _PILE = 5, 0.02, 0.05, 10, 5
_AHEAD, _ROOM = 4, 64
_FOLD = r"[^\p{L}\p{N}]+"


def title_prefixed(docs: pl.DataFrame) -> pl.Series:
    """Tell which texts begin with their title (`PAGE_TITLE`, or the origin's), word by word; null if none is known."""
    table = docs.select(
        "id",
        "title",
        "text",
        "origin",
        _page=PAGE_TITLE if PAGE_TITLE in docs.columns else pl.lit(None),
    )
    own = pl.when(pl.col("title").str.strip_chars() != "").then("title").otherwise("_page")
    table = table.with_columns(_folded(own).alias("own"))
    origins = table.select(pl.col("id").alias("origin"), pl.col("own").alias("given")).unique(
        "origin", keep="first"
    )
    table = table.join(origins, on="origin", how="left", maintain_order="left")
    title = pl.coalesce(_known("own"), _known("given"))
    start = pl.col("text").str.head(
        _AHEAD * title.str.len_chars() + _ROOM
    )  # folding a whole text takes long
    begins = pl.concat_str(_folded(start), pl.lit(" ")).str.starts_with(
        pl.concat_str(title, pl.lit(" "))
    )
    return table.select(begins.alias("title_prefixed"))["title_prefixed"]


def _folded(text: pl.Expr) -> pl.Expr:
    return (
        text.str.normalize("NFKC").str.to_lowercase().str.replace_all(_FOLD, " ").str.strip_chars()
    )


def _known(name: str) -> pl.Expr:
    return pl.when(pl.col(name) != "").then(name)


def cut_at(lengths: pl.Series) -> tuple[int | None, pl.Series]:
    """Find the length (in words) at which the texts of a source were cut, and which have it; None if they were not.

    That is the most frequent length among those that at most 5 % of the texts exceed, at least
    `SHORTEST_CUT`, which at least 5 texts and 2 % of them have, and 5 times as many as have any
    other length within 10 words of it.
    """
    total = len(lengths)
    counts = lengths.rename("length").value_counts(name="texts").sort("length", descending=True)
    counts = counts.with_columns(longer=pl.col("texts").cum_sum() - pl.col("texts"))
    least = max(_FEWEST, _SHARE * total)
    high = counts.filter(
        (pl.col("longer") <= _LONGER * total)
        & (pl.col("texts") >= least)
        & (pl.col("length") >= SHORTEST_CUT)
    )
    for limit, texts, _ in high.sort("texts", "length", descending=True).head(1).iter_rows():
        near = counts.filter(
            ((pl.col("length") - limit).abs() <= _NEIGHBOURS) & (pl.col("length") != limit)
        )
        if texts >= _PILE * max(near["texts"], default=0):
            return int(limit), (lengths == limit).alias("cut")
    return None, pl.repeat(False, total, dtype=pl.Boolean, eager=True).alias("cut")
