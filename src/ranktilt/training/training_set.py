"""Material of a training: queries, relevant documents, their twins, and their negatives.

A *positive* is a relevant document to learn from. Its *negatives* are drawn from a *pool* of
documents that are not relevant. A *source* is the author of documents. Versions of a document have
the same origin; a *twin* is the version by another source, which the debiased constraint compares
with the positive. Documents are given as *rows* of the subset that is learned from.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.files import decode_lines, line_chunks
from ranktilt.data.runs.run import collection_rows
from ranktilt.errors import DataError, UserError, shorten
from ranktilt.rankers.lexical.bm25 import BM25
from ranktilt.statistics.sampling import sample_rows
from ranktilt.training.options import RerankerTraining, RetrieverTraining, Training

Ints = npt.NDArray[np.int64]
_TRIPLE_FIELDS = ("query_id", "doc_id", "negative")
"""Fields of a line of triples: ids of a query, a relevant document, and a negative."""


@dataclass(frozen=True, eq=False, kw_only=True)
class _LearnableJudgments:
    """Judgments that can be learned from, and their documents."""

    relevant: pl.DataFrame
    """All judgments with a grade above 0, including those of documents of other sources."""
    judgments: pl.DataFrame
    """Judgments among `relevant` of queries and documents in `subset`."""
    subset: Collection
    """Collection with only the documents of the chosen sources."""


@dataclass(frozen=True, kw_only=True)
class Positives:
    """Relevant documents to learn from, and the pools that their negatives are drawn from.

    Positives of the same query may share a pool, so a positive has the index of its pool.
    """

    frame: pl.DataFrame
    """Columns ``query_id``, ``doc_id``, ``row`` and ``pool`` (an index of `pools`)."""
    pools: list[Ints]
    """Documents of each pool; no pools if negatives are mined during the training."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainingSet:
    """Queries, documents and pools to learn from; documents are given as rows of `subset`."""

    subset: Collection
    """The collection with only the sources to learn from, and the queries with a positive."""
    texts: list[str]
    """Texts of the documents, and after them the texts of their twins."""
    positives: tuple[Ints, ...]
    """Relevant documents of each query."""
    negatives: tuple[tuple[Ints, ...], ...]
    """For each query, the pool of each positive; empty if negatives are mined."""
    barred: tuple[Ints, ...]
    """Documents that are never a query's negatives: those relevant to it, their versions, and
    documents with the same texts."""
    twins: Ints
    """Index of each document's twin in `texts`; the document's own index if it has no twin."""
    twin_source: str | None
    """Source of the twins; None without a constraint."""
    twin_count: int
    """Number of positives with a twin."""
    skipped_queries: int
    """Number of queries with relevant documents but no positive."""
    skipped_positives: int
    """Number of relevant documents that are no positives: BM25 does not find them, or no triple
    names them."""

    @cached_property
    def queries(self) -> list[str]:
        """Texts of the queries."""
        return self.subset.queries["text"].to_list()

    def positive_count(self, most_per_query: int | None) -> int:
        """Return the number of positives of an epoch, which has at most so many of each query.

        None stands for all of a query.
        """
        return sum(len(positives[:most_per_query]) for positives in self.positives)


def reranker_set(collection: Collection, options: RerankerTraining) -> TrainingSet:
    """Return what a re-ranker can learn from a collection's judgments; grades above 0 are relevant.

    If the options choose sources, documents of other sources are left out. With the constraint,
    positives have twins; if no source is chosen, the first one is then learned from. A version
    (same origin) or copy (same text) of a document relevant to a query is never its negative,
    except where a file of triples says so.
    """
    sources = options.sources or (_first_source(collection) if options.alpha else None)
    if options.alpha and sources is None:
        raise UserError(
            f"{collection_name(collection)}: a constraint compares sources, and no document has one"
        )
    learnable = _learnable_judgments(collection, sources)
    barred = barred_rows(collection, learnable.subset, learnable.relevant, options.text)
    positives = _positives_with_pools(collection, learnable, barred, options)
    if not positives.frame.height:
        among = ""
        if options.retrieved_only and options.triples is None:
            among = f" among BM25's best {options.pool[1]}"
        raise UserError(
            f"{collection_name(collection)}: no query has relevant documents"
            f"{_source_phrase(sources)} and others{among}; there is nothing to learn"
        )
    limited = replace(positives, frame=_apply_limits(collection, positives.frame, options))
    sources_with_twins = sources if options.alpha and sources else ()
    training_set = _training_set(
        collection,
        learnable,
        limited,
        barred=barred,
        options=options,
        sources_with_twins=sources_with_twins,
    )
    if sources_with_twins:
        _require_twins(collection, training_set)
    skipped_positives = learnable.judgments.height - positives.frame.height
    return replace(training_set, skipped_positives=skipped_positives)


def _first_source(collection: Collection) -> tuple[str, ...] | None:
    """Return the source to learn from if none is chosen: the first one.

    If no document has a source, return None, which stands for all documents.
    """
    return collection.sources[:1] or None


def retriever_set(collection: Collection, options: RetrieverTraining) -> TrainingSet:
    """Return what a retriever can learn from a collection's judgments.

    Without chosen sources it learns from the first one. The collection keeps the result, for
    further trainings with the same sources, twins, texts and limits.
    """
    sources = options.sources or _first_source(collection)

    def build() -> TrainingSet:
        learnable = _learnable_judgments(collection, sources)
        rows = _rows_by_id(learnable.subset)
        frame = _apply_limits(collection, learnable.judgments, options)
        frame = frame.join(rows, on="doc_id", maintain_order="left").sort("row")
        return _training_set(
            collection,
            learnable,
            Positives(frame=frame, pools=[]),
            barred=barred_rows(collection, learnable.subset, learnable.relevant, options.text),
            options=options,
            sources_with_twins=sources or (),
        )

    # Everything that `build` reads.
    key = (
        __name__,
        sources,
        options.twins,
        options.text,
        options.limits,
        options.seed if options.limits else 0,  # the seed only draws documents under a limit
    )
    training_set = collection.memo(key, build)
    if options.has_constraint:
        _require_twins(collection, training_set)
    return training_set


def _require_twins(collection: Collection, training_set: TrainingSet) -> None:
    """Refuse a training with the constraint if no positive has a twin."""
    if not training_set.twin_count:
        path = str(collection.spec.get("path") or "DIR")
        split = str(collection.spec.get("split") or "train")
        arguments = shlex.join([path, "--split", split])
        raise UserError(
            f"{collection_name(collection)}: no relevant document to learn from has a twin, and "
            f"the constraint compares the two; write twins: ranktilt generate rewrite {arguments} "
            "--llm MODEL -o NEW"
        )


def _training_set(
    collection: Collection,
    learnable: _LearnableJudgments,
    positives: Positives,
    *,
    barred: pl.DataFrame,
    options: Training,
    sources_with_twins: Sequence[str],
) -> TrainingSet:
    """Group positives by query, and find the twins of documents.

    Parameters
    ----------
    collection : Collection
        The whole collection, which has the twins.
    learnable : _LearnableJudgments
        Judgments to learn from.
    positives : Positives
        Relevant documents to learn from, and the pools of their negatives.
    barred : DataFrame
        Documents that are never negatives, as ``query_id`` and ``row``.
    options : Training
        Options of the training.
    sources_with_twins : sequence of str
        Sources whose documents get twins; empty without a constraint.
    """
    subset = learnable.subset
    positive_rows = _by_query(positives.frame, "row")
    barred_by_query = _by_query(barred, "row")
    queries = subset.queries.filter(pl.col("id").is_in(list(positive_rows)))
    query_ids = queries["id"].to_list()
    negatives = list[tuple[Ints, ...]]()
    if positives.pools:
        pool_indices = _by_query(positives.frame, "pool")
        for query in query_ids:
            negatives.append(tuple(positives.pools[index] for index in pool_indices[query]))
    twin_source = (
        _twin_source(collection, options.twins, sources_with_twins) if sources_with_twins else None
    )
    twins, texts = _twin_texts(collection, subset, twin_source, options.text)
    learned_rows = positives.frame["row"].unique().to_numpy()
    has_twin = twins[learned_rows] != learned_rows
    queries_with_relevant = learnable.relevant["query_id"].n_unique()
    positives_of_queries = [positive_rows[query] for query in query_ids]
    barred_of_queries = [barred_by_query[query] for query in query_ids]
    return TrainingSet(
        subset=Collection(subset.docs, queries, subset.qrels, subset.spec),
        texts=texts,
        positives=tuple(positives_of_queries),
        negatives=tuple(negatives),
        barred=tuple(barred_of_queries),
        twins=twins,
        twin_source=twin_source,
        twin_count=int(has_twin.sum()),
        skipped_queries=queries_with_relevant - len(query_ids),
        skipped_positives=0,
    )


def _by_query(frame: pl.DataFrame, column: str) -> dict[str, Ints]:
    """Return the whole numbers in a column as an array for each query id."""
    grouped = frame.group_by("query_id", maintain_order=True).agg(column)
    return {query_id: np.array(values, dtype=np.int64) for query_id, values in grouped.iter_rows()}


def _rows_by_id(subset: Collection) -> pl.DataFrame:
    """Return a table with the ``doc_id`` and the ``row`` of all documents."""
    return subset.docs.select(doc_id="id").with_columns(row=pl.int_range(pl.len()))


def _positives_with_pools(
    collection: Collection,
    learnable: _LearnableJudgments,
    barred: pl.DataFrame,
    options: RerankerTraining,
) -> Positives:
    """Return the positives to learn from, each with its pool of negatives."""
    subset, judgments = learnable.subset, learnable.judgments
    if options.triples is not None:
        return _read_triples(Path(options.triples), subset, judgments, collection_name(collection))
    rows = _rows_by_id(subset)
    frame = judgments.select("query_id", "doc_id").join(rows, on="doc_id", maintain_order="left")
    kind, size = options.pool
    if kind == "random":
        # A query that is itself a document (with the same id) is never its own negative.
        queries = subset.queries.select(query_id="id")
        query_rows = queries.join(rows, left_on="query_id", right_on="doc_id")
        excluded = pl.concat([barred, query_rows]).unique()
        return _with_random_pools(
            frame, excluded, size=size, total=subset.docs.height, seed=options.seed
        )
    retrieved = _bm25_rows(subset, size, options.text)
    if options.retrieved_only:
        frame = retrieved.join(frame, on=["query_id", "row"], how="semi", maintain_order="left")
    negatives = retrieved.join(barred, on=["query_id", "row"], how="anti", maintain_order="left")
    pools = negatives.group_by("query_id", maintain_order=True).agg("row")
    pool_indices = pools.select("query_id").with_columns(pool=pl.int_range(pl.len()))
    frame = frame.join(pool_indices, on="query_id", maintain_order="left")
    return Positives(frame=frame, pools=[pool.to_numpy() for pool in pools["row"]])


def _read_triples(path: Path, subset: Collection, judgments: pl.DataFrame, name: str) -> Positives:
    """Read positives and negatives in MS MARCO's form: query, positive and negative, by tabs.

    Raises
    ------
    DataError
        At the first line that is no triple, names a query or document that the collection does not
        have, or a positive that is not judged relevant there.
    """
    rows = _rows_by_id(subset)
    negative_rows = rows.select(negative="doc_id", negative_row="row")
    triples = list[pl.DataFrame]()
    for lines in _triple_lines(path):
        _require_known_ids(path, lines, subset, name)
        _require_relevant(path, lines, judgments, name)
        lines = lines.join(rows, on="doc_id", how="left", maintain_order="left")
        lines = lines.join(negative_rows, on="negative", how="left", maintain_order="left")
        triples.append(lines.select("query_id", "doc_id", "row", "negative_row"))
    positive_columns = ("query_id", "doc_id", "row")
    pools = pl.concat(triples).group_by(*positive_columns, maintain_order=True).agg("negative_row")
    return Positives(
        frame=pools.drop("negative_row").with_columns(pool=pl.int_range(pl.len())),
        pools=[pool.to_numpy() for pool in pools["negative_row"]],
    )


def _require_known_ids(path: Path, lines: pl.DataFrame, subset: Collection, name: str) -> None:
    """Refuse triples of unknown queries or documents."""
    tables = (subset.queries, subset.docs, subset.docs)
    for field, table in zip(_TRIPLE_FIELDS, tables, strict=True):
        unknown = lines.join(
            table.select("id"), left_on=field, right_on="id", how="anti", maintain_order="left"
        )
        for line, value in unknown.select("line", field).head(1).iter_rows():
            noun = "query" if field == "query_id" else "document to learn from"
            message = (
                f"{name} has no {noun} {shorten(value)}; are these the triples of another "
                "collection?"
            )
            raise DataError(path, message, line=line)


def _require_relevant(path: Path, lines: pl.DataFrame, judgments: pl.DataFrame, name: str) -> None:
    """Refuse triples with a positive that is not judged relevant."""
    ids = ["query_id", "doc_id"]
    unjudged = lines.join(judgments.select(ids), on=ids, how="anti", maintain_order="left")
    for line, query, document in unjudged.select("line", *ids).head(1).iter_rows():
        raise DataError(
            path,
            f"document {shorten(document)} is not judged relevant to query {shorten(query)} "
            f"in {name}",
            line=line,
        )


def _triple_lines(path: Path) -> Iterator[pl.DataFrame]:
    """Yield tables of some lines each: the number ``line``, and the three fields of triples."""
    for first_line, lines in line_chunks(path):
        text = pl.Series("text", decode_lines(path, first_line, lines).split("\n"))
        frame = text.to_frame().with_row_index("line", offset=first_line)
        frame = frame.filter(pl.col("text") != "")
        fields = pl.col("text").str.split("\t")
        is_malformed = fields.list.len() != len(_TRIPLE_FIELDS)
        for line, raw in frame.filter(is_malformed).head(1).iter_rows():
            message = (
                "expected query, positive and negative (3 tab-separated fields), "
                f"got {shorten(raw)}"
            )
            raise DataError(path, message, line=line)
        if frame.height:
            columns = {name: fields.list.get(index) for index, name in enumerate(_TRIPLE_FIELDS)}
            yield frame.select("line", **columns)


def _with_random_pools(
    positives: pl.DataFrame, excluded: pl.DataFrame, *, size: int, total: int, seed: int
) -> Positives:
    """Draw a pool of `size` documents for each positive, from all `total` documents.

    `excluded` holds the documents that may not be in the pools of a query, as ``query_id`` and
    ``row``.
    """
    # The epochs' generators have the seed and the number of the epoch, which is never so large.
    rng = np.random.default_rng([seed, 1 << 31])
    excluded_rows = dict(excluded.group_by("query_id").agg(pl.col("row").sort()).iter_rows())
    pools = []
    for query in positives["query_id"]:
        eligible_count = total - len(excluded_rows[query])
        if eligible_count < size:
            raise UserError(
                f"training: negatives=random:{size} asks for more documents than there are: "
                f"{eligible_count:,} of {total:,} are not relevant to query {query!r}"
            )
        pools.append(sample_rows(rng, size, total, excluded_rows[query]))
    return Positives(frame=positives.with_columns(pool=pl.int_range(pl.len())), pools=pools)


def _learnable_judgments(
    collection: Collection, sources: Sequence[str] | None
) -> _LearnableJudgments:
    """Return the judgments of the chosen sources, all if None; refuse a collection without any."""
    subset = only_sources(collection, sources)
    relevant = collection.qrels.filter(pl.col("grade") > 0)
    judgments = relevant.join(subset.docs.select(doc_id="id"), on="doc_id", how="semi")
    judgments = judgments.join(subset.queries.select(query_id="id"), on="query_id", how="semi")
    if not judgments.height:
        raise UserError(
            f"{collection_name(collection)}: no document{_source_phrase(sources)} is judged "
            "relevant; there is nothing to learn"
        )
    return _LearnableJudgments(relevant=relevant, judgments=judgments, subset=subset)


def _apply_limits(
    collection: Collection, positives: pl.DataFrame, options: Training
) -> pl.DataFrame:
    """Draw positives of each source up to the limit that the options set for it.

    Sources without a limit keep all their positives.
    """
    sources = collection.docs.select("source", doc_id="id")
    source = positives.select("doc_id").join(sources, on="doc_id", maintain_order="left")["source"]
    # The epochs' generators have the seed and the number of the epoch, which is never so large.
    rng = np.random.default_rng([options.seed, 1 << 30])
    is_drawn = np.ones(positives.height, dtype=np.bool_)
    for name, limit in options.limits:
        rows = np.flatnonzero((source == name).to_numpy())
        if len(rows) < limit:
            raise UserError(
                f"{collection_name(collection)}: asked to learn from {limit:,} relevant documents "
                f"of source {name!r}, but there are {len(rows):,}"
            )
        is_drawn[rng.permutation(rows)[limit:]] = False
    return positives.filter(pl.Series(is_drawn))


def only_sources(collection: Collection, sources: Sequence[str] | None) -> Collection:
    """Return the collection with the documents of these sources alone; with all if None."""
    if sources is None:
        return collection
    for name in sources:
        if name not in collection.sources:
            raise collection.unknown_source(name)
    docs = collection.docs.filter(pl.col("source").is_in(list(sources)))
    qrels = collection.qrels.join(
        docs.select(doc_id="id"), on="doc_id", how="semi", maintain_order="left"
    )
    return Collection(docs, collection.queries, qrels, collection.spec)


def _bm25_rows(subset: Collection, depth: int, text: str) -> pl.DataFrame:
    """Return BM25's top documents of each query, best first: ``query_id``, ``doc_id``, ``row``."""
    run = BM25(k=depth, text=text).rank(subset)
    rows = pl.Series("row", collection_rows(run, subset)[run.docs])
    return run.frame().select("query_id", "doc_id").with_columns(rows)


def barred_rows(
    collection: Collection, subset: Collection, relevant: pl.DataFrame, text: str
) -> pl.DataFrame:
    """Return the documents that are never a query's negatives, as ``query_id`` and ``row``.

    They are the documents relevant to the query, their versions (same origin), and documents with
    the same text.

    Parameters
    ----------
    collection : Collection
        The whole collection.
    subset : Collection
        The documents that are learned from.
    relevant : DataFrame
        Judgments of relevant documents of the whole collection.
    text : str
        Part of a document that is read: ``title+text``, ``text`` or ``title``.
    """
    rows = pl.int_range(subset.docs.height, eager=True).alias("row")
    docs = subset.docs.select("origin", doc_id="id").with_columns(
        rows, text_hash=text_hashes(subset, text)
    )
    all_origins = collection.docs.select("origin", doc_id="id")
    origins = relevant.join(all_origins, on="doc_id").select("query_id", "origin").unique()
    versions = origins.join(docs.select("origin", "row"), on="origin")
    hashes = relevant.join(docs.select("doc_id", "text_hash"), on="doc_id")
    hashes = hashes.select("query_id", "text_hash").unique()
    copies = hashes.join(docs.select("text_hash", "row"), on="text_hash")
    # A relevant document is a version of itself.
    barred = [versions.select("query_id", "row"), copies.select("query_id", "row")]
    return pl.concat(barred).unique().sort("row")


def text_hashes(collection: Collection, text: str) -> pl.Series:
    """Return a number for each document, equal for documents with the same text.

    `text` names the part of a document that is compared.
    """
    return collection.texts(text).hash()


def collection_name(collection: Collection) -> str:
    """Return the collection's name in messages: its path and split."""
    path, split = collection.spec.get("path", "the collection"), collection.spec.get("split")
    return f"{path}, split {split}" if split else str(path)


def _source_phrase(sources: Sequence[str] | None) -> str:
    """Return the sources as the end of a noun phrase in a message; empty if all are meant."""
    return f" of source {' or '.join(map(repr, sources))}" if sources is not None else ""


def _twin_source(
    collection: Collection, twin_source: str | None, learned: Sequence[str]
) -> str | None:
    """Return the source of the twins: `twin_source`, if it is given.

    By default it is the first source that is not learned from and has a version of a document that
    is. `learned` are the sources that are learned from.
    """
    if twin_source is not None:
        if twin_source not in collection.sources:
            raise collection.unknown_source(twin_source)
        if twin_source in learned:
            raise UserError(
                f"training: {twin_source!r} is trained on, so it cannot hold the twins too"
            )
        return twin_source
    is_learned = pl.col("source").is_in(list(learned))
    origins = collection.docs.filter(is_learned)["origin"].unique()
    versions = collection.docs.filter(~is_learned & pl.col("origin").is_in(origins.implode()))
    sources_of_versions = set(versions["source"])
    return next((name for name in collection.sources if name in sources_of_versions), None)


def _twin_texts(
    collection: Collection, subset: Collection, source: str | None, text: str
) -> tuple[Ints, list[str]]:
    """Return the index of each document's twin, and the texts that these indices refer to.

    The texts are those of the documents of `subset`, and then those of the twins, from `source`. A
    document without a twin has its own index.
    """
    own_indices = np.arange(subset.docs.height, dtype=np.int64)
    texts = subset.texts(text).to_list()
    if source is None:
        return own_indices, texts
    versions = collection.docs.select("origin", "source", text=collection.texts(text))
    versions = versions.filter(pl.col("source") == source)
    versions = versions.unique("origin", keep="first", maintain_order=True)
    indices = versions.select("origin", index=pl.int_range(pl.len()) + len(texts))
    origins = subset.docs.select("origin")
    twins = origins.join(indices, on="origin", how="left", maintain_order="left")["index"]
    twins = twins.fill_null(pl.Series(own_indices))
    return twins.to_numpy().astype(np.int64), texts + versions["text"].to_list()
