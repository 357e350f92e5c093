"""The collection: documents, queries and judgments, with the source of each document.

The *source* of a document is who wrote it, such as people or a language model. Its *origin* is the
id of the document that it was rewritten from, or its own id. *Twins* are two documents of one
origin by different sources. The *judgments* (*qrels*) say how relevant a document is to a query.
The *spec* says how the collection was made, such as from which files.
"""

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
from ranktilt.data.texts import (
    DOCUMENTS_AT_ONCE,
    LARGE_BYTES,
    digest_of,
    mapped_texts,
    release_texts,
)
from ranktilt.errors import UserError, counted, shorten, unknown_name

T = TypeVar("T")

DOC_COLUMNS = ("id", "title", "text", "source", "origin")
"""Columns that every table of documents has."""
POOL = "pool"
"""Column that says whether a document was chosen for rewriting.

Some collections have rewrites of only some of their documents, which are the *pool*. The others
have no twin by design, and checks must not count that as a fault.
"""
MOST_SOURCES = 50
"""Most sources to compare; if there are more, they are names of persons, hosts or documents."""
_SOURCE_ADVICE = (
    "use the field source for the sides to compare, such as human and llm, and another field "
    "for authors"
)
"""What to do about documents with too many sources, for a message."""
TEXT_CHOICES = ("title+text", "text", "title")
"""Parts of a document that a ranker can read."""
_TIE_SEED = b"ranktilt-tie-0"
"""Prefix of the hashes that order documents with equal scores where a list is cut off.

Another prefix would give another order, and so another run.
"""
_MISSING_SOURCES = ("", "nan")
"""Values that name no source: an empty one, and what pandas writes for a missing value."""
_DOCUMENT_KEYS = frozenset(
    {
        "groups",
        "ids",
        "origin_codes",
        "sources",
        "terms",
        "text bytes",
        "text digest",
        "text flags",
        "texts",
        "tie_keys",
    }
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
        How the collection was made: paths, split, options. Collections with different specs may be
        equal.

    Raises
    ------
    UserError
        If a column is missing or of a type that no file can keep, an id is empty or occurs twice,
        a grade is no number, or a pair has two judgments.
    """

    docs: pl.DataFrame
    """Documents, a row for each."""
    queries: pl.DataFrame
    """Queries, a row for each."""
    qrels: pl.DataFrame
    """Judgments, a row for each."""
    spec: Mapping[str, Any] = field(default_factory=dict)
    """How the collection was made."""
    _memo: dict[Any, Any] = field(default_factory=dict, init=False)
    """Values of `memo` by key."""
    _document_memo: dict[Any, Any] = field(default_factory=dict, init=False)
    """Values of `memo` whose keys are `_DOCUMENT_KEYS`.

    Collections of the same documents share it.
    """

    def __post_init__(self) -> None:
        """Check the tables, and convert their columns to the types that files keep."""
        require_mapping(self.spec, "a mapping", "spec")
        docs = _with_default_columns(_checked_columns(self.docs, "docs", ("id", "text")))
        queries = _checked_columns(self.queries, "queries", ("id", "text"))
        qrels = _checked_columns(self.qrels, "qrels", ("query_id", "doc_id", "grade"))
        docs = _storable_columns(docs, "docs", required=("source",))
        queries = _storable_columns(queries, "queries")
        # The dataclass is frozen, so that its fields cannot be assigned.
        object.__setattr__(self, "docs", docs)
        object.__setattr__(self, "queries", queries)
        object.__setattr__(self, "qrels", _checked_judgments(qrels))
        _require_unique_key(self.docs, ["id"], "document")
        _require_unique_key(self.queries, ["id"], "query")
        _require_unique_key(self.qrels, ["query_id", "doc_id"], "judgment")

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

    def require_few_sources(self, advice: str = _SOURCE_ADVICE) -> None:
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
        """Return the source that a user names as the file does: ``source 1`` for ``1``.

        Where a file has bare numbers as sources, the collection calls them ``source 1``, because a
        ``1`` in a table or a sentence would say nothing. Any other name is returned as it is.
        """
        source = group_name("source", name)
        return source if source in self.sources else name

    def unknown_source(self, name: str) -> UserError:
        """Return the error for a source that no document has."""
        documents = counted(self.sourceless, "document has", "documents have")
        if not self.sources:
            return UserError(f"unknown source {name!r}; the {documents} no source")
        error = unknown_name("source", name, self.sources)
        return UserError(f"{error}; {documents} no source") if self.sourceless else error

    @property
    def has_judgments(self) -> bool:
        """Whether any document is judged."""
        return not self.qrels.is_empty()

    @property
    def queries_with_judgments(self) -> pl.DataFrame:
        """The queries to rank: those with a judgment, or all queries if nothing is judged."""
        if not self.has_judgments:
            return self.queries
        judged = self.qrels.select("query_id").unique()
        return self.queries.join(
            judged, left_on="id", right_on="query_id", how="semi", maintain_order="left"
        )

    def only_queries(self, names: Iterable[str]) -> Collection:
        """Return the collection with only some queries and their judgments.

        `names` are the ids of these queries.
        """
        kept_ids = pl.DataFrame({"id": pl.Series(names, dtype=pl.String)})
        queries = self.queries.join(kept_ids, on="id", how="semi", maintain_order="left")
        qrels = self.qrels.join(
            kept_ids, left_on="query_id", right_on="id", how="semi", maintain_order="left"
        )
        # `copy` skips the checks, and lets both collections share the memo of their documents.
        reduced = copy(self)
        for field_name, value in (("queries", queries), ("qrels", qrels), ("_memo", {})):
            object.__setattr__(reduced, field_name, value)
        return reduced

    def with_judgments(
        self, queries: pl.DataFrame, qrels: pl.DataFrame, spec: Mapping[str, Any]
    ) -> Collection:
        """Return the same documents with other queries, judgments and spec."""
        collection = Collection(self.docs, queries, qrels, spec)
        # What was computed from the documents, such as an index of their terms, holds for both.
        object.__setattr__(collection, "_document_memo", self._document_memo)
        return collection

    def only_sources(self, names: Iterable[str]) -> Collection:
        """Return the collection without the documents of other sources and their judgments.

        `names` are the sources to keep. Documents without a source stay, because they compete with
        all others in a ranking. Judgments of documents that the collection does not have stay too.
        The spec gets ``without_sources`` and ``only_sources``. Returns the collection itself if
        nothing is left out.
        """
        names = dict.fromkeys(map(self.source_named, names))
        known = set(self.sources)
        missing_source = next((name for name in names if name not in known), None)
        if missing_source is not None:
            raise self.unknown_source(missing_source)
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

        `choice` is one of `TEXT_CHOICES`: title and text joined by a space, or only one of them.
        """
        if choice not in TEXT_CHOICES:
            raise unknown_name("text choice", choice, TEXT_CHOICES)
        if choice != "title+text":
            return self.docs[choice].alias("text")
        return self.memo("texts", self._titled_texts)

    def _titled_texts(self) -> pl.Series:
        """Return title and text of each document, joined by a space.

        Joined texts of a large collection are kept in a file that is mapped into memory. Where no
        document has a title, the texts themselves serve, and no second file is needed.
        """
        if all(_is_text_alone(docs) for docs in self.docs.iter_slices(DOCUMENTS_AT_ONCE)):
            return self.docs["text"]
        if self.text_bytes() < LARGE_BYTES:
            return self.docs.select(_JOINED_TEXT)["text"]
        return mapped_texts(self._joined_texts)["text"]

    def _joined_texts(self) -> Iterator[dict[str, pl.Series]]:
        """Yield title and text joined by a space, some thousand documents at a time."""
        for docs in self.docs.iter_slices(DOCUMENTS_AT_ONCE):
            yield docs.select(_JOINED_TEXT).to_dict()

    def text_bytes(self) -> int:
        """Return the number of bytes of all titles and texts."""
        return self.memo("text bytes", self._text_bytes)

    def _text_bytes(self) -> int:
        """Compute `text_bytes`."""
        sizes = self.docs.select(pl.col("title", "text").str.len_bytes().cast(pl.Int64).sum())
        return int(sizes.sum_horizontal()[0])

    def text_digest(self, choice: str) -> bytes:
        """Return a hash of all texts in the order of the documents; `choice` is that of `texts`.

        Where no document has a title, the hashes of "title+text" and "text" are the same.
        """
        if choice not in TEXT_CHOICES:
            raise unknown_name("text choice", choice, TEXT_CHOICES)
        if choice != "title+text":
            return self.memo(("text digest", choice), lambda: digest_of(self.docs[choice]))
        has_title = (self.docs["title"] != "").any()
        return (self.text_digest("title") if has_title else b"") + self.text_digest("text")

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
        docs = self.docs.select("origin", "id", "source")
        docs_of_a = docs.filter(pl.col("source") == a).select("origin", a="id")
        docs_of_b = docs.filter(pl.col("source") == b).select("origin", b="id")
        return docs_of_a.join(docs_of_b, on="origin", how="inner", maintain_order="left_right")

    def unpaired(self, a: str, b: str) -> pl.DataFrame:
        """Return ``id`` and ``source`` of the documents of `a` and `b` without a twin."""
        twins = self.pairs(a, b)
        paired_ids = pl.concat([twins["a"], twins["b"]])
        docs = self.docs.filter(pl.col("source").is_in([a, b]))
        return docs.filter(~pl.col("id").is_in(paired_ids.implode())).select("id", "source")

    def bare_ids(self) -> pl.Series:
        """Return each document's bare id: the id that the document has in its file.

        Loading adds ``-<source>`` to ids that several sources share (`assemble.version_names`).
        """
        suffix = pl.format("-{}", "source")
        bare = pl.col("id").str.head(-suffix.str.len_chars().cast(pl.Int64))
        sourceless_ids = self.docs.filter(pl.col("source").is_null())["id"]
        # An id may end in this way by chance. Loading also sets the origin, in one of two ways:
        # to the document of the bare id that has no source, or else to ``<bare id>-human``.
        has_sourceless_origin = (pl.col("origin") == bare) & bare.is_in(sourceless_ids.implode())
        has_human_origin = pl.col("origin") == pl.format("{}-human", bare)
        has_suffix = pl.col("id").str.ends_with(suffix) & (bare != "")
        is_added = has_suffix & (has_human_origin | has_sourceless_origin)
        return self.docs.select(pl.when(is_added).then(bare).otherwise("id").alias("bare"))["bare"]

    def tie_keys(self) -> npt.NDArray[np.uint64]:
        """Return a number for each document, which orders documents with tied scores at a cutoff.

        A list of the first k documents may have to be cut between documents with the same score.
        Their ids must not decide, because ids often differ by source, so that one source would
        always win. The key is a hash of the origin if a document has a twin or no text, else of its
        text. So twins share a key, and so do documents with identical texts; they are kept or cut
        off together. The key never depends on the source.
        """
        return self.memo("tie_keys", self._tie_keys)

    def _tie_keys(self) -> npt.NDArray[np.uint64]:
        """Compute `tie_keys`."""
        # Hashes of texts would give all documents without any text the same key.
        has_no_text = (pl.col("title") == "") & (pl.col("text") == "")
        has_twin = pl.col("origin").is_duplicated() | (pl.col("origin") != pl.col("id"))
        uses_origin = self.docs.select(has_no_text | has_twin).to_series().to_numpy()
        keys = np.empty(self.docs.height, dtype=np.uint64)
        # The prefixes "o" and "t" keep the hash of an origin apart from that of an equal text.
        for rows, hash_input in (
            (np.flatnonzero(uses_origin), pl.format("o{}", "origin")),
            (np.flatnonzero(~uses_origin), pl.format("t{} {}", "title", "text")),
        ):
            for start in range(0, len(rows), DOCUMENTS_AT_ONCE):
                block = rows[start : start + DOCUMENTS_AT_ONCE]
                texts = self.docs[block].select(hash_input.alias("key"))["key"]
                digests = b"".join(map(_tie_digest, texts))
                keys[block] = np.frombuffer(digests, dtype="<u8")
                release_texts()
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
        """Return the value of a key; `make` computes it at the first call, and it is kept.

        A collection is immutable, so that whatever is computed from it, such as an index of its
        terms, can be kept with it for the next ranker or audit.
        """
        name = key[0] if isinstance(key, tuple) else key
        values = self._document_memo if name in _DOCUMENT_KEYS else self._memo
        if key not in values:
            values[key] = make()
        return cast(T, values[key])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Collection):
            return NotImplemented
        return (
            _have_same_rows(self.docs, other.docs, ["id"])
            and _have_same_rows(self.queries, other.queries, ["id"])
            and _have_same_rows(self.qrels, other.qrels, ["query_id", "doc_id"])
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


def _is_text_alone(docs: pl.DataFrame) -> bool:
    """Return whether `_JOINED_TEXT` of documents is their text as it is: none has a title."""
    has_title = (pl.col("title") != "").any()
    changes = (pl.col("text") != _JOINED_TEXT).any()
    is_text_alone = not docs.select(has_title).item() and not docs.select(changes).item()
    release_texts()  # gives the memory of the texts that were just read back to the system
    return is_text_alone


def _tie_digest(text: str) -> bytes:
    """Return the hash by which a document is ordered among tied ones."""
    return hashlib.blake2b(_TIE_SEED + text.encode(), digest_size=8).digest()


def _checked_columns(frame: pl.DataFrame, table_name: str, needed: tuple[str, ...]) -> pl.DataFrame:
    """Check that a frame has the needed columns, and convert ids and texts to strings.

    `table_name` is ``docs``, ``queries`` or ``qrels``.
    """
    frame = require_frame(frame, needed, table_name)
    for column in needed:
        if frame[column].null_count():
            row = frame[column].is_null().arg_max()
            raise UserError(f"{table_name}: column {column!r} has no value in row {row}")
    id_columns = [column for column in needed if column.endswith("id")]
    text_columns = [
        column
        for column in ("text", "title", "source")
        if column in frame.columns and table_name != "qrels"
    ]
    return frame.with_columns(
        *(ids_of(frame[column], f"{table_name}: column {column!r}") for column in id_columns),
        *(texts_of(frame[column], f"{table_name}: column {column!r}") for column in text_columns),
    )


def _with_default_columns(docs: pl.DataFrame) -> pl.DataFrame:
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
    labels = docs["source"].drop_nulls().unique()
    source_names = {label: group_name("source", label) for label in labels}
    if any(label != name for label, name in source_names.items()):
        docs = docs.with_columns(docs["source"].replace(source_names))
    return docs.select(*DOC_COLUMNS, pl.exclude(DOC_COLUMNS))


def names_somebody(source: str) -> bool:
    """Return whether a value of the column ``source`` names a source, and is no missing value."""
    return source.strip().lower() not in _MISSING_SOURCES


def stated_source() -> pl.Expr:
    """Return the column ``source``, with null instead of values that mean a missing one."""
    source = pl.col("source").cast(pl.String)
    is_stated = ~source.str.strip_chars().str.to_lowercase().is_in(_MISSING_SOURCES)
    return pl.when(is_stated).then(source).alias("source")


def _checked_judgments(qrels: pl.DataFrame) -> pl.DataFrame:
    """Check that all grades are numbers, and drop all columns but those of judgments."""
    column = qrels["grade"]
    grades = None
    if column.dtype.is_numeric() or column.dtype == pl.Null:
        grades = whole_or_fractions(column)
    if grades is None or grades.null_count():
        raise UserError(
            f"qrels: expected numbers in column 'grade', got {column.dtype} {column.to_list()[:3]}"
        )
    return qrels.select("query_id", "doc_id", grades.alias("grade"))


def _storable_columns(
    frame: pl.DataFrame, table_name: str, *, required: tuple[str, ...] = ()
) -> pl.DataFrame:
    """Convert columns to the types that a file keeps, and drop columns without any value.

    Columns in `required` are not dropped.
    """
    columns = []
    for column in frame.iter_columns():
        try:
            series = _storable_column(column)
        except (
            pl.exceptions.InvalidOperationError,
            orjson.JSONDecodeError,
            orjson.JSONEncodeError,
        ):
            series = None
        if series is None:
            raise UserError(
                f"{table_name}: cannot keep column {column.name!r} of type {column.dtype}; use "
                "strings, numbers, truth values, or raw JSON as bytes"
            )
        has_values = series.null_count() < frame.height
        if column.name in required or has_values or not frame.height:
            columns.append(series)
    # polars copies the texts of rows that are picked from several chunks. Rechunking copies none.
    return pl.DataFrame(columns).rechunk()


def _storable_column(series: pl.Series) -> pl.Series | None:
    """Convert a column to a type that files keep; None if no such type holds its values."""
    kind = series.dtype
    if kind.is_integer():
        return series.cast(pl.Int64)
    if kind.is_float():
        numbers = series.cast(pl.Float64)
        # NaN and infinities become null, because JSON has no such numbers.
        finite_or_null = pl.when(pl.first().is_finite()).then(pl.first())
        return numbers.to_frame().select(finite_or_null)[series.name]
    if isinstance(kind, pl.Categorical | pl.Enum):
        return series.cast(pl.String)
    if kind == pl.Binary:
        return _compact_json(series)
    return series if kind in (pl.String, pl.Boolean, pl.Null) else None


def _compact_json(series: pl.Series) -> pl.Series:
    """Return raw JSON in its shortest form, or plain values if it has no lists or objects.

    Only one value is unpacked at a time, because values may be large.
    """
    kinds: set[type] = set()
    documents: list[bytes | None] = []
    for raw in series:
        value = None if raw is None else orjson.loads(raw)
        kinds.add(type(value))
        compact = None if value is None else orjson.dumps(value)
        # The given bytes are kept if they are equal: those from orjson take more memory.
        documents.append(raw if compact == raw else compact)
    if kinds <= {*SCALARS, type(None)}:
        values = [None if raw is None else orjson.loads(raw) for raw in documents]
        return json_series(series.name, values)
    return pl.Series(series.name, documents, dtype=pl.Binary)


def _require_unique_key(frame: pl.DataFrame, key: list[str], noun: str) -> None:
    """Refuse two rows with the same values in the columns `key`; `noun` is what a row is."""
    repeated = frame.filter(pl.struct(key).is_duplicated())
    if repeated.height:
        name = ", ".join(repr(value) for value in repeated.select(key).row(0))
        raise UserError(f"{noun} {name} occurs more than once; ids must be unique")


def _have_same_rows(left: pl.DataFrame, right: pl.DataFrame, key: list[str]) -> bool:
    """Return whether two tables have the same columns and rows, in any order.

    The columns `key` identify a row.
    """
    if set(left.columns) != set(right.columns) or left.height != right.height:
        return False
    return left.sort(key).equals(right.select(left.columns).sort(key), null_equal=True)
