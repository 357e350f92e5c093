"""The collection: documents, queries and judgments, with where each document came from."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
import orjson
import polars as pl

from ranktilt.data.formats.columns import SCALARS, json_series, whole_or_fractions
from ranktilt.data.formats.ids import id_texts, ids_of, require_frame, require_mapping, texts_of
from ranktilt.data.texts import AT_ONCE, LARGE, aside
from ranktilt.errors import UserError, counted, shorten, unknown

T = TypeVar("T")

DOC_COLUMNS = ("id", "title", "text", "source", "origin")
POOL = "pool"
"""Boolean column of the documents of a pooled collection: whether one was chosen to be rewritten."""
MOST_SOURCES = 50
"""Sources that are compared one by one; more are names of persons, hosts or documents."""
_GROUP_SOURCES = "let the field source name the sides to compare, such as human and llm, and keep authors in another"
TEXT_CHOICES = ("title+text", "text", "title")
_TIE_SEED = b"ranktilt-tie-0"
_NOBODY = ("", "nan")
"""Sources that name nobody: nothing but blanks, and what pandas writes for a missing value."""


_ABOUT_DOCUMENTS = frozenset(
    {"groups", "ids", "origin_codes", "row of id", "sources", "terms", "texts", "tie_keys"}
)
"""What is kept under these names, or tuples that begin with one, comes of the documents alone."""


@dataclass(frozen=True, eq=False, repr=False)
class Collection:
    """Documents, queries and relevance judgments (qrels); immutable.

    Parameters
    ----------
    docs : polars.DataFrame
        One row a document: ``id`` (unique), ``title``, ``text``, ``source`` (who wrote it; null
        where nobody says), ``origin`` (id of the document it was rewritten from; its own id
        otherwise), and any further columns to group by. Only ``id`` and ``text`` must be given: the
        title defaults to ``""`` and the origin to the id. There is no default source: a document
        without one is ranked, and is in no group. Columns of type Binary hold raw JSON.
    queries : polars.DataFrame
        ``id`` (unique) and ``text``, and any further columns.
    qrels : polars.DataFrame
        ``query_id``, ``doc_id`` and ``grade`` (Int32, or Float64 where one is a fraction; 0 or less
        is not relevant). May judge documents and queries that are not in the collection; they count
        only where no grouping is used.
    spec : mapping, optional
        How it was made: paths, split, options. Not part of equality.

    A column that is missing or of a type that no file could keep, an id that is empty or given
    twice, a grade that is no number, and a pair with two judgments are a `UserError`.
    """

    docs: pl.DataFrame
    queries: pl.DataFrame
    qrels: pl.DataFrame
    spec: Mapping[str, Any] = field(default_factory=dict)
    _memo: dict[Any, Any] = field(default_factory=dict, init=False)
    _of_documents: dict[Any, Any] = field(default_factory=dict, init=False)
    """What is kept of the documents alone: shared with collections of the same ones."""

    def __post_init__(self) -> None:
        require_mapping(self.spec, "a mapping", "spec")
        docs = _with_defaults(_columns(self.docs, "docs", ("id", "text")))
        queries = _columns(self.queries, "queries", ("id", "text"))
        qrels = _columns(self.qrels, "qrels", ("query_id", "doc_id", "grade"))
        docs = _canonical(docs, "docs", always=("source",))
        queries = _canonical(queries, "queries")
        object.__setattr__(self, "docs", docs)
        object.__setattr__(self, "queries", queries)
        object.__setattr__(self, "qrels", _judgments(qrels))
        _unique(self.docs, ["id"], "document")
        _unique(self.queries, ["id"], "query")
        _unique(self.qrels, ["query_id", "doc_id"], "judgment")

    @property
    def ids(self) -> pl.Series:
        """Document ids in row order; the same object at every call, so that runs can share it."""
        return self.memo("ids", lambda: self.docs["id"])

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the sources, in the order in which they first appear; documents may have none."""
        return self.memo(
            "sources", lambda: tuple(self.docs["source"].drop_nulls().unique(maintain_order=True))
        )

    def require_few_sources(self, advice: str = _GROUP_SOURCES) -> None:
        """Refuse more than `MOST_SOURCES`, each of which would be compared by itself; `advice` says what to do."""
        if len(self.sources) > MOST_SOURCES:
            shown = ", ".join(shorten(name) for name in self.sources[:3])
            raise UserError(
                f"the documents name {len(self.sources):,} sources ({shown}, …); expected at most {MOST_SOURCES}: "
                f"{advice}"
            )

    @property
    def sourceless(self) -> int:
        """How many documents have no source."""
        return self.docs["source"].null_count()

    def unknown_source(self, name: str) -> UserError:
        """Return the error of a source that no document has; it counts those that have none."""
        documents = counted(self.sourceless, "document has", "documents have")
        if not self.sources:
            return UserError(f"unknown source {name!r}: the {documents} no source")
        error = unknown("source", name, self.sources)
        return UserError(f"{error}; {documents} no source") if self.sourceless else error

    @property
    def queries_with_judgments(self) -> pl.DataFrame:
        """The queries that are ranked: those with a judgment, in their order; all where nothing is judged."""
        if not self.qrels.height:
            return self.queries
        judged = self.qrels.select("query_id").unique()
        return self.queries.join(
            judged, left_on="id", right_on="query_id", how="semi", maintain_order="left"
        )

    def only_queries(self, names: Iterable[str]) -> Collection:
        """Return the collection with these queries, and their judgments, alone."""
        asked = pl.DataFrame({"id": pl.Series(names, dtype=pl.String)})
        queries = self.queries.join(asked, on="id", how="semi", maintain_order="left")
        qrels = self.qrels.join(
            asked, left_on="query_id", right_on="id", how="semi", maintain_order="left"
        )
        found = copy(self)  # nothing is checked again, and what is known of the documents is shared
        for name, value in (("queries", queries), ("qrels", qrels), ("_memo", {})):
            object.__setattr__(found, name, value)
        return found

    def with_judgments(
        self, queries: pl.DataFrame, qrels: pl.DataFrame, spec: Mapping[str, Any]
    ) -> Collection:
        """Return the same documents with other queries and judgments."""
        other = Collection(self.docs, queries, qrels, spec)
        # What is known of the documents is shared, such as an index of their terms.
        object.__setattr__(other, "_of_documents", self._of_documents)
        return other

    def only_sources(self, names: Iterable[str]) -> Collection:
        """Return the collection without the documents of other sources and their judgments.

        Documents without a source stay: they compete with those of any. Judgments of documents that
        the collection does not hold stay. The spec's ``without_sources`` and ``only_sources`` name
        what was left out and what is left; the collection itself comes back where nothing is.
        """
        names = dict.fromkeys(names)
        known = set(self.sources)
        strange = next((name for name in names if name not in known), None)
        if strange is not None:
            raise self.unknown_source(strange)
        left = [name for name in self.sources if name not in names]
        if not left:
            return self
        lost = pl.col("source").is_in(left).fill_null(False)
        gone = self.docs.filter(lost)["id"]
        qrels = self.qrels.filter(~pl.col("doc_id").is_in(gone.implode()))
        held = [name for name in self.sources if name in names]
        gone_before = self.spec.get("without_sources", ())
        spec = {**self.spec, "without_sources": [*gone_before, *left], "only_sources": held}
        return Collection(self.docs.filter(~lost), self.queries, qrels, spec)

    def texts(self, choice: str = "title+text") -> pl.Series:
        """Return the text of each document that is ranked, in row order: title and text, joined by a space, or one."""
        if choice not in TEXT_CHOICES:
            raise unknown("text choice", choice, TEXT_CHOICES)
        if choice != "title+text":
            return self.docs[choice].alias("text")
        joined = pl.concat_str("title", "text", separator=" ").str.strip_chars().alias("text")
        size = self.docs.select(
            pl.col("title", "text").str.len_bytes().cast(pl.Int64).sum()
        ).sum_horizontal()[0]
        if size < LARGE:
            return self.docs.select(joined)["text"]
        parts = partial(self.docs.iter_slices, AT_ONCE)
        return self.memo(
            "texts",
            lambda: aside(lambda: (part.select(joined).to_dict() for part in parts()))["text"],
        )

    def pairs(self, a: str, b: str) -> pl.DataFrame:
        """Return the twins, documents of two sources with one origin: ``origin``, ``a`` and ``b`` (document ids).

        In the order of `a`'s documents; where a source has several documents of one origin, each
        combination is a row.
        """
        for name in (a, b):
            if name not in self.sources:
                raise self.unknown_source(name)
        if a == b:
            raise UserError(f"twins need two different sources, got {a!r} twice")
        side = self.docs.select("origin", "id", "source")
        left = side.filter(pl.col("source") == a).select("origin", a="id")
        right = side.filter(pl.col("source") == b).select("origin", b="id")
        return left.join(right, on="origin", how="inner", maintain_order="left_right")

    def unpaired(self, a: str, b: str) -> pl.DataFrame:
        """Return the documents of `a` and `b` that have no twin on the other side (``id``, ``source``)."""
        twins = self.pairs(a, b)
        lone = self.docs.filter(pl.col("source").is_in([a, b]))
        return lone.filter(
            ~pl.col("id").is_in(pl.concat([twins["a"], twins["b"]]).implode())
        ).select("id", "source")

    def bare_ids(self) -> pl.Series:
        """Return each document's id without the ``-<source>`` that loading added where files share ids."""
        suffix = pl.format("-{}", "source")
        bare = pl.col("id").str.head(-suffix.str.len_chars().cast(pl.Int64))
        sourceless = self.docs.filter(pl.col("source").is_null())["id"]
        of_sourceless = (pl.col("origin") == bare) & bare.is_in(sourceless.implode())
        shared = (pl.col("origin") == pl.format("{}-human", bare)) | of_sourceless
        added = pl.col("id").str.ends_with(suffix) & shared & (bare != "")
        return self.docs.select(pl.when(added).then(bare).otherwise("id").alias("bare"))["bare"]

    def tie_keys(self) -> npt.NDArray[np.uint64]:
        """Return the seeded key of each document by which a cut through tied documents is decided.

        A hash of the origin where a document has a twin or no text, of its text otherwise; it
        depends on neither source nor the id of a document with a text, and twins and identical lone
        texts share it.
        """
        return self.memo("tie_keys", self._tie_keys)

    def _tie_keys(self) -> npt.NDArray[np.uint64]:
        # Documents without any text would all share one key.
        blank = (pl.col("title") == "") & (pl.col("text") == "")
        shared = blank | pl.col("origin").is_duplicated() | (pl.col("origin") != pl.col("id"))
        alike = self.docs.select(shared).to_series().to_numpy()
        keys = np.empty(self.docs.height, dtype=np.uint64)
        for rows, basis in (
            (np.flatnonzero(alike), pl.format("o{}", "origin")),
            (np.flatnonzero(~alike), pl.format("t{} {}", "title", "text")),
        ):
            for start in range(0, len(rows), AT_ONCE):
                some = rows[start : start + AT_ONCE]
                strings = self.docs[some].select(basis.alias("key"))["key"]
                digests = b"".join(
                    hashlib.blake2b(_TIE_SEED + s.encode(), digest_size=8).digest() for s in strings
                )
                keys[some] = np.frombuffer(digests, dtype="<u8")
        return keys

    def origin_codes(self) -> npt.NDArray[np.int64]:
        """Return the number of each document's origin, from 0 in the order of their names: shape (n_docs,)."""
        return self.memo(
            "origin_codes",
            lambda: self.docs["origin"].rank("dense").to_numpy().astype(np.int64) - 1,
        )

    def memo(self, key: Any, make: Callable[[], T]) -> T:
        """Return what `make` gives, made once and kept with the collection under `key`."""
        held = (
            self._of_documents
            if (key[0] if isinstance(key, tuple) else key) in _ABOUT_DOCUMENTS
            else self._memo
        )
        if key not in held:
            held[key] = make()
        return cast(T, held[key])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Collection):
            return NotImplemented
        return (
            _same(self.docs, other.docs, ["id"])
            and _same(self.queries, other.queries, ["id"])
            and _same(self.qrels, other.qrels, ["query_id", "doc_id"])
        )

    def __hash__(self) -> int:
        return hash((self.docs.height, self.queries.height, self.qrels.height))

    def __repr__(self) -> str:
        counts = self.docs.group_by("source", maintain_order=True).len()
        sources = ", ".join(
            f"{n} {'without a source' if s is None else s}" for s, n in counts.iter_rows()
        )
        return (
            f"Collection({sources}; {self.queries.height} queries, {self.qrels.height} judgments)"
        )


def _columns(frame: pl.DataFrame, name: str, needed: tuple[str, ...]) -> pl.DataFrame:
    frame = require_frame(frame, needed, name)
    for column in needed:
        if frame[column].null_count():
            row = frame[column].is_null().arg_max()
            raise UserError(f"{name}: column {column!r} has no value in row {row}")
    ids = [column for column in needed if column.endswith("id")]
    texts = [
        column
        for column in ("text", "title", "source")
        if column in frame.columns and name != "qrels"
    ]
    return frame.with_columns(
        *(ids_of(frame[column], f"{name}: column {column!r}") for column in ids),
        *(texts_of(frame[column], f"{name}: column {column!r}") for column in texts),
    )


def _with_defaults(docs: pl.DataFrame) -> pl.DataFrame:
    """Add the columns that may be left out; who wrote a document is never assumed."""
    defaults = {"title": pl.lit(""), "origin": pl.col("id")}
    if "origin" in docs.columns:
        docs = docs.with_columns(id_texts(docs["origin"], "docs: column 'origin'").alias("origin"))
    given = {
        name: pl.col(name).fill_null(default) if name in docs.columns else default
        for name, default in defaults.items()
    }
    source = stated_source() if "source" in docs.columns else pl.lit(None, dtype=pl.String)
    docs = docs.with_columns(**given, source=source)
    return docs.select(*DOC_COLUMNS, pl.exclude(DOC_COLUMNS))


def names_somebody(source: str) -> bool:
    """Whether a source is a name at all."""
    return source.strip().lower() not in _NOBODY


def stated_source() -> pl.Expr:
    """Return the column ``source`` where it names somebody; null elsewhere."""
    source = pl.col("source").cast(pl.String)
    is_stated = ~source.str.strip_chars().str.to_lowercase().is_in(_NOBODY)
    return pl.when(is_stated).then(source).alias("source")


def _judgments(qrels: pl.DataFrame) -> pl.DataFrame:
    grades = qrels["grade"]
    found = (
        whole_or_fractions(grades) if grades.dtype.is_numeric() or grades.dtype == pl.Null else None
    )
    if found is None or found.null_count():
        raise UserError(
            f"qrels: expected numbers in column 'grade', got {grades.dtype} {grades.to_list()[:3]}"
        )
    return qrels.select("query_id", "doc_id", found.alias("grade"))


def _canonical(frame: pl.DataFrame, name: str, *, always: tuple[str, ...] = ()) -> pl.DataFrame:
    """Further columns in the types that a file keeps; `always` are kept, others only with a value."""
    columns = []
    for given in frame.iter_columns():
        try:
            series = _storable(given)
        except (
            pl.exceptions.InvalidOperationError,
            orjson.JSONDecodeError,
            orjson.JSONEncodeError,
        ):
            series = None
        if series is None:
            raise UserError(
                f"{name}: column {given.name!r} of type {given.dtype} cannot be kept; use strings, "
                "numbers, truth values, or raw JSON as bytes"
            )
        if given.name in always or series.null_count() < frame.height or not frame.height:
            columns.append(series)
    return pl.DataFrame(
        columns
    ).rechunk()  # moves no text; rows picked from several chunks would copy theirs


def _storable(series: pl.Series) -> pl.Series | None:
    kind = series.dtype
    if kind.is_integer():
        return series.cast(pl.Int64)
    if kind.is_float():
        series = series.cast(pl.Float64)
        return series.to_frame().select(pl.when(pl.first().is_finite()).then(pl.first()))[
            series.name
        ]
    if isinstance(kind, pl.Categorical | pl.Enum):
        return series.cast(pl.String)
    if kind == pl.Binary:
        return _compact(series)
    return series if kind in (pl.String, pl.Boolean, pl.Null) else None


def _compact(series: pl.Series) -> pl.Series:
    """Raw JSON as `json_series` would write it; with no more than one value unpacked at a time."""
    kinds: set[type] = set()
    out: list[bytes | None] = []
    for raw in series:
        value = None if raw is None else orjson.loads(raw)
        kinds.add(type(value))
        compact = None if value is None else orjson.dumps(value)
        out.append(
            raw if compact == raw else compact
        )  # what orjson makes holds more memory than it needs
    if kinds <= {*SCALARS, type(None)}:
        return json_series(series.name, [None if raw is None else orjson.loads(raw) for raw in out])
    return pl.Series(series.name, out, dtype=pl.Binary)


def _unique(frame: pl.DataFrame, key: list[str], noun: str) -> None:
    repeated = frame.filter(pl.struct(key).is_duplicated())
    if repeated.height:
        name = ", ".join(repr(value) for value in repeated.select(key).row(0))
        raise UserError(f"{noun} {name} occurs more than once; ids must be unique")


def _same(one: pl.DataFrame, two: pl.DataFrame, key: list[str]) -> bool:
    if set(one.columns) != set(two.columns) or one.height != two.height:
        return False
    return one.sort(key).equals(two.select(one.columns).sort(key), null_equal=True)
