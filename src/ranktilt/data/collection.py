"""The collection: documents, queries and judgments, with the source of each document."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt
import orjson
import polars as pl

from ranktilt.data.formats.ids import id_texts, ids_of, require_frame, require_mapping, texts_of
from ranktilt.data.formats.tables.columns import SCALARS, json_series, whole_or_fractions
from ranktilt.data.labels.group_names import group_name
from ranktilt.data.texts import AT_ONCE, LARGE, aside
from ranktilt.errors import UserError, counted, shorten, unknown

T = TypeVar("T")

DOC_COLUMNS = ("id", "title", "text", "source", "origin")
"""Columns that every table of documents has."""
POOL = "pool"
"""Column that says whether a document was chosen for rewriting.

A pooled collection rewrites only some of its documents. The others have no twin by design.
"""
MOST_SOURCES = 50
"""Most sources to compare; if there are more, they are names of persons, hosts or documents."""
_GROUP_SOURCES = (
    "use the field source for the sides to compare, such as human and llm, and another field "
    "for authors"
)
"""Advice for a column with too many sources."""
TEXT_CHOICES = ("title+text", "text", "title")
"""Parts of a document that a ranker can read."""
_TIE_SEED = b"ranktilt-tie-0"
"""Prefix of the hashes that order tied documents; another prefix would give another order."""
_NOBODY = ("", "nan")
"""Values that name no source: an empty one, and what pandas writes for a missing value."""


_ABOUT_DOCUMENTS = frozenset(
    {"groups", "ids", "origin_codes", "row of id", "sources", "terms", "texts", "tie_keys"}
)
"""Keys of `Collection.memo` for values that depend on the documents alone.

A tuple that begins with one of them is such a key too. Collections with the same documents and
other queries share these values.
"""


@dataclass(frozen=True, eq=False, repr=False)
class Collection:
    """Documents, queries and relevance judgments (qrels); immutable.

    Parameters
    ----------
    docs : polars.DataFrame
        One row per document: ``id`` (unique), ``title``, ``text``, ``source`` (who wrote it; null
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

    Raises
    ------
    UserError
        If a column is missing or of a type that no file can keep, an id is empty or occurs twice,
        a grade is no number, or a pair has two judgments.
    """

    docs: pl.DataFrame
    """Documents, one a row."""
    queries: pl.DataFrame
    """Queries, one a row."""
    qrels: pl.DataFrame
    """Judgments, one a row."""
    spec: Mapping[str, Any] = field(default_factory=dict)
    """How the collection was made."""
    _memo: dict[Any, Any] = field(default_factory=dict, init=False)
    """Values of `memo` by key."""
    _of_documents: dict[Any, Any] = field(default_factory=dict, init=False)
    """Values of `memo` that follow from the documents alone.

    Collections of the same documents share it.
    """

    def __post_init__(self) -> None:
        """Check the tables, and convert their columns to the types that files keep."""
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
        """Document ids in row order: the same object at every call, which runs share."""
        return self.memo("ids", lambda: self.docs["id"])

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the sources in the order of their first document."""
        return self.memo("sources", self._source_names)

    def _source_names(self) -> tuple[str, ...]:
        """Return the names of all sources."""
        return tuple(self.docs["source"].drop_nulls().unique(maintain_order=True))

    def require_few_sources(self, advice: str = _GROUP_SOURCES) -> None:
        """Refuse more than `MOST_SOURCES` sources; `advice` ends the message."""
        if len(self.sources) > MOST_SOURCES:
            examples = ", ".join(shorten(name) for name in self.sources[:3])
            raise UserError(
                f"the documents name {len(self.sources):,} sources ({examples}, …); "
                f"expected at most {MOST_SOURCES}: {advice}"
            )

    @property
    def sourceless(self) -> int:
        """Number of documents without a source."""
        return self.docs["source"].null_count()

    def source_named(self, name: str) -> str:
        """Return the name of a source that is named by its label, such as ``1`` for ``source 1``.

        Any other name is returned as it is.
        """
        called = group_name("source", name)
        return called if called in self.sources else name

    def unknown_source(self, name: str) -> UserError:
        """Return the error for a source that no document has."""
        documents = counted(self.sourceless, "document has", "documents have")
        if not self.sources:
            return UserError(f"unknown source {name!r}; the {documents} no source")
        error = unknown("source", name, self.sources)
        return UserError(f"{error}; {documents} no source") if self.sourceless else error

    @property
    def has_judgments(self) -> bool:
        """Whether any document is judged."""
        return not self.qrels.is_empty()

    @property
    def queries_with_judgments(self) -> pl.DataFrame:
        """The queries to rank: those with a judgment, or all if nothing is judged."""
        if not self.has_judgments:
            return self.queries
        judged = self.qrels.select("query_id").unique()
        return self.queries.join(
            judged, left_on="id", right_on="query_id", how="semi", maintain_order="left"
        )

    def only_queries(self, names: Iterable[str]) -> Collection:
        """Return the collection with these queries and their judgments alone."""
        chosen = pl.DataFrame({"id": pl.Series(names, dtype=pl.String)})
        queries = self.queries.join(chosen, on="id", how="semi", maintain_order="left")
        qrels = self.qrels.join(
            chosen, left_on="query_id", right_on="id", how="semi", maintain_order="left"
        )
        # A copy is not checked again, and shares the memo of the documents.
        part = copy(self)
        for name, value in (("queries", queries), ("qrels", qrels), ("_memo", {})):
            object.__setattr__(part, name, value)
        return part

    def with_judgments(
        self, queries: pl.DataFrame, qrels: pl.DataFrame, spec: Mapping[str, Any]
    ) -> Collection:
        """Return the same documents with other queries and judgments."""
        collection = Collection(self.docs, queries, qrels, spec)
        # The index of the documents' terms, for one, holds for both collections.
        object.__setattr__(collection, "_of_documents", self._of_documents)
        return collection

    def only_sources(self, names: Iterable[str]) -> Collection:
        """Return the collection without the documents of other sources and their judgments.

        Documents without a source stay, because they compete with all others. Judgments of unknown
        documents stay too. The spec gets ``without_sources`` and ``only_sources``. Returns the
        collection itself if nothing is left out.
        """
        names = dict.fromkeys(map(self.source_named, names))
        known = set(self.sources)
        strange = next((name for name in names if name not in known), None)
        if strange is not None:
            raise self.unknown_source(strange)
        excluded = [name for name in self.sources if name not in names]
        if not excluded:
            return self
        is_excluded = pl.col("source").is_in(excluded).fill_null(False)
        excluded_ids = self.docs.filter(is_excluded)["id"]
        qrels = self.qrels.filter(~pl.col("doc_id").is_in(excluded_ids.implode()))
        excluded_before = self.spec.get("without_sources", ())
        spec = {
            **self.spec,
            "without_sources": [*excluded_before, *excluded],
            "only_sources": [name for name in self.sources if name in names],
        }
        return Collection(self.docs.filter(~is_excluded), self.queries, qrels, spec)

    def texts(self, choice: str = "title+text") -> pl.Series:
        """Return the text of each document for ranking, in row order.

        Title and text joined by a space, or only one of them.
        """
        if choice not in TEXT_CHOICES:
            raise unknown("text choice", choice, TEXT_CHOICES)
        if choice != "title+text":
            return self.docs[choice].alias("text")
        sizes = self.docs.select(pl.col("title", "text").str.len_bytes().cast(pl.Int64).sum())
        if sizes.sum_horizontal()[0] < LARGE:
            return self.docs.select(_JOINED_TEXT)["text"]
        return self.memo("texts", lambda: aside(self._joined_texts)["text"])

    def _joined_texts(self) -> Iterator[dict[str, pl.Series]]:
        """Yield title and text joined, some thousand documents at a time."""
        for part in self.docs.iter_slices(AT_ONCE):
            yield part.select(_JOINED_TEXT).to_dict()

    def pairs(self, a: str, b: str) -> pl.DataFrame:
        """Return the twins, documents of two sources with the same origin.

        Columns are ``origin``, and the document ids ``a`` and ``b``; rows are in the order of `a`'s
        documents. If a source has several documents of one origin, there is a row for each
        combination.
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
        """Return ``id`` and ``source`` of the documents of `a` and `b` without a twin."""
        twins = self.pairs(a, b)
        paired_ids = pl.concat([twins["a"], twins["b"]])
        docs = self.docs.filter(pl.col("source").is_in([a, b]))
        return docs.filter(~pl.col("id").is_in(paired_ids.implode())).select("id", "source")

    def bare_ids(self) -> pl.Series:
        """Return each document's id as its file has it.

        Loading adds ``-<source>`` to ids that several sources share (`assemble.version_names`).
        """
        suffix = pl.format("-{}", "source")
        bare = pl.col("id").str.head(-suffix.str.len_chars().cast(pl.Int64))
        sourceless = self.docs.filter(pl.col("source").is_null())["id"]
        # Loading names the origin in one of two ways, by which the suffix is recognised.
        has_sourceless_origin = (pl.col("origin") == bare) & bare.is_in(sourceless.implode())
        has_human_origin = pl.col("origin") == pl.format("{}-human", bare)
        has_suffix = pl.col("id").str.ends_with(suffix) & (bare != "")
        is_added = has_suffix & (has_human_origin | has_sourceless_origin)
        return self.docs.select(pl.when(is_added).then(bare).otherwise("id").alias("bare"))["bare"]

    def tie_keys(self) -> npt.NDArray[np.uint64]:
        """Return a number for each document, which decides the order of tied documents at a cutoff.

        It is a hash of the origin if a document has a twin or no text, else of its text. So twins
        share a key, and so do documents with identical texts; they are kept or cut off together.
        The key never depends on the source.
        """
        return self.memo("tie_keys", self._tie_keys)

    def _tie_keys(self) -> npt.NDArray[np.uint64]:
        """Compute `tie_keys`."""
        # By their texts, all documents without any text would share one key.
        blank = (pl.col("title") == "") & (pl.col("text") == "")
        shared = blank | pl.col("origin").is_duplicated() | (pl.col("origin") != pl.col("id"))
        uses_origin = self.docs.select(shared).to_series().to_numpy()
        keys = np.empty(self.docs.height, dtype=np.uint64)
        for rows, basis in (
            (np.flatnonzero(uses_origin), pl.format("o{}", "origin")),
            (np.flatnonzero(~uses_origin), pl.format("t{} {}", "title", "text")),
        ):
            for start in range(0, len(rows), AT_ONCE):
                part = rows[start : start + AT_ONCE]
                texts = self.docs[part].select(basis.alias("key"))["key"]
                digests = b"".join(map(_tie_digest, texts))
                keys[part] = np.frombuffer(digests, dtype="<u8")
        return keys

    def origin_codes(self) -> npt.NDArray[np.int64]:
        """Return the number of each document's origin, shape (n_docs,).

        Origins are numbered from 0 in alphabetical order.
        """
        return self.memo("origin_codes", self._origin_codes)

    def _origin_codes(self) -> npt.NDArray[np.int64]:
        """Compute `origin_codes`."""
        return self.docs["origin"].rank("dense").to_numpy().astype(np.int64) - 1

    def memo(self, key: Any, make: Callable[[], T]) -> T:
        """Return what `make` returns; it is called only once for each `key` of the collection."""
        name = key[0] if isinstance(key, tuple) else key
        values = self._of_documents if name in _ABOUT_DOCUMENTS else self._memo
        if key not in values:
            values[key] = make()
        return cast(T, values[key])

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
            f"{count} {'without a source' if source is None else source}"
            for source, count in counts.iter_rows()
        )
        return (
            f"Collection({sources}; {self.queries.height} queries, {self.qrels.height} judgments)"
        )


_JOINED_TEXT = pl.concat_str("title", "text", separator=" ").str.strip_chars().alias("text")
"""Title and text joined by a space."""


def _tie_digest(text: str) -> bytes:
    """Return the hash by which a document is ordered among tied ones."""
    return hashlib.blake2b(_TIE_SEED + text.encode(), digest_size=8).digest()


def _columns(frame: pl.DataFrame, name: str, needed: tuple[str, ...]) -> pl.DataFrame:
    """Check that a frame has the needed columns, and convert ids and texts to strings."""
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
    """Add the columns that may be left out.

    The title is empty by default, the origin is the document itself, and the source is unknown.
    """
    title, origin = pl.lit(""), pl.col("id")
    if "title" in docs.columns:
        title = pl.col("title").fill_null(title)
    if "origin" in docs.columns:
        docs = docs.with_columns(id_texts(docs["origin"], "docs: column 'origin'").alias("origin"))
        origin = pl.col("origin").fill_null(origin)
    source = stated_source() if "source" in docs.columns else pl.lit(None, dtype=pl.String)
    docs = docs.with_columns(title=title, origin=origin, source=source)
    names = {name: group_name("source", name) for name in docs["source"].drop_nulls().unique()}
    if any(name != called for name, called in names.items()):
        docs = docs.with_columns(docs["source"].replace(names))
    return docs.select(*DOC_COLUMNS, pl.exclude(DOC_COLUMNS))


def names_somebody(source: str) -> bool:
    """Return whether a source is the name of somebody."""
    return source.strip().lower() not in _NOBODY


def stated_source() -> pl.Expr:
    """Return the column ``source``, with null instead of values that name nobody."""
    source = pl.col("source").cast(pl.String)
    is_stated = ~source.str.strip_chars().str.to_lowercase().is_in(_NOBODY)
    return pl.when(is_stated).then(source).alias("source")


def _judgments(qrels: pl.DataFrame) -> pl.DataFrame:
    """Check the grades, and keep the columns of judgments."""
    column = qrels["grade"]
    grades = None
    if column.dtype.is_numeric() or column.dtype == pl.Null:
        grades = whole_or_fractions(column)
    if grades is None or grades.null_count():
        raise UserError(
            f"qrels: expected numbers in column 'grade', got {column.dtype} {column.to_list()[:3]}"
        )
    return qrels.select("query_id", "doc_id", grades.alias("grade"))


def _canonical(frame: pl.DataFrame, name: str, *, always: tuple[str, ...] = ()) -> pl.DataFrame:
    """Convert columns to the types that a file keeps, and drop columns without any value.

    Columns in `always` are not dropped.
    """
    columns = []
    for column in frame.iter_columns():
        try:
            series = _storable(column)
        except (
            pl.exceptions.InvalidOperationError,
            orjson.JSONDecodeError,
            orjson.JSONEncodeError,
        ):
            series = None
        if series is None:
            raise UserError(
                f"{name}: cannot keep column {column.name!r} of type {column.dtype}; use "
                "strings, numbers, truth values, or raw JSON as bytes"
            )
        if column.name in always or series.null_count() < frame.height or not frame.height:
            columns.append(series)
    # Rechunking moves no text, but picking rows from several chunks would copy theirs.
    return pl.DataFrame(columns).rechunk()


def _storable(series: pl.Series) -> pl.Series | None:
    """Convert a column to a type that files keep; None if there is none."""
    kind = series.dtype
    if kind.is_integer():
        return series.cast(pl.Int64)
    if kind.is_float():
        numbers = series.cast(pl.Float64)
        finite = pl.when(pl.first().is_finite()).then(pl.first())
        return numbers.to_frame().select(finite)[series.name]
    if isinstance(kind, pl.Categorical | pl.Enum):
        return series.cast(pl.String)
    if kind == pl.Binary:
        return _compact(series)
    return series if kind in (pl.String, pl.Boolean, pl.Null) else None


def _compact(series: pl.Series) -> pl.Series:
    """Return raw JSON in its shortest form, or plain values if it has no lists or objects.

    Only one value is unpacked at a time, because values may be large.
    """
    kinds: set[type] = set()
    documents: list[bytes | None] = []
    for raw in series:
        value = None if raw is None else orjson.loads(raw)
        kinds.add(type(value))
        compact = None if value is None else orjson.dumps(value)
        # Bytes that orjson makes take more memory than they need.
        documents.append(raw if compact == raw else compact)
    if kinds <= {*SCALARS, type(None)}:
        values = [None if raw is None else orjson.loads(raw) for raw in documents]
        return json_series(series.name, values)
    return pl.Series(series.name, documents, dtype=pl.Binary)


def _unique(frame: pl.DataFrame, key: list[str], noun: str) -> None:
    """Refuse two rows with the same key."""
    repeated = frame.filter(pl.struct(key).is_duplicated())
    if repeated.height:
        name = ", ".join(repr(value) for value in repeated.select(key).row(0))
        raise UserError(f"{noun} {name} occurs more than once; ids must be unique")


def _same(left: pl.DataFrame, right: pl.DataFrame, key: list[str]) -> bool:
    """Return whether two tables have the same columns and rows, in any order."""
    if set(left.columns) != set(right.columns) or left.height != right.height:
        return False
    return left.sort(key).equals(right.select(left.columns).sort(key), null_equal=True)
