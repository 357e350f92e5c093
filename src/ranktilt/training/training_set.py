"""Material of a training: queries, relevant documents, their twins, and their negatives."""

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
_FIELDS = ("query_id", "doc_id", "negative")
"""Fields of a line of triples: ids of a query, a relevant document, and a negative."""


@dataclass(frozen=True, eq=False, kw_only=True)
class _Learnable:
    """Judgments that can be learned from, and their documents."""

    relevant: pl.DataFrame
    """All judgments above 0, also about documents of other sources."""
    judgments: pl.DataFrame
    """Those of `relevant` that are about queries and documents of `part`."""
    part: Collection
    """Collection with only the documents of the chosen sources."""


@dataclass(frozen=True, kw_only=True)
class Positives:
    """Relevant documents to learn from, and the pools that their negatives are drawn from.

    Positives of one query may share a pool.
    """

    frame: pl.DataFrame
    """Columns ``query_id``, ``doc_id``, ``row`` and ``pool`` (an index of `pools`)."""
    pools: list[Ints]
    """Each pool as rows of documents; empty if negatives are mined."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainingSet:
    """Material to learn from; documents are rows of `part`."""

    part: Collection
    """Documents of the sources to learn from, and the queries with a positive, in their order."""
    texts: list[str]
    """Texts of the documents, and after them the texts of their twins."""
    positives: tuple[Ints, ...]
    """Relevant documents of each query."""
    negatives: tuple[tuple[Ints, ...], ...]
    """Pool of negatives of each positive; empty if negatives are mined."""
    barred: tuple[Ints, ...]
    """Documents that are never a query's negatives: those relevant to it, their versions, and
    their copies."""
    twins: Ints
    """Index of each document's twin in `texts`; its own index if it has none, which changes
    nothing."""
    twin_source: str | None
    """Source of the twins; None without a constraint."""
    paired: int
    """Number of relevant documents with a twin."""
    skipped: int
    """Number of queries with relevant documents but no positive."""
    skipped_positives: int
    """Number of relevant documents that BM25 does not find, or that no triple names."""

    @cached_property
    def queries(self) -> list[str]:
        """Texts of the queries."""
        return self.part.queries["text"].to_list()


def reranker_set(collection: Collection, options: RerankerTraining) -> TrainingSet:
    """Return what a re-ranker can learn from a collection's judgments; grades above 0 are relevant.

    A version (same origin) or copy (same text) of a document relevant to a query is never its
    negative, in any source, unless a file of triples says so. If sources are chosen, documents of
    other sources are left out. With a constraint, each positive comes with its twin, and without
    sources the first one is learned from.
    """
    sources = options.sources or (_first_source(collection) if options.alpha else None)
    if options.alpha and sources is None:
        raise UserError(
            f"{collection_name(collection)}: a constraint compares sources, and no document has one"
        )
    learnable = _learnable_judgments(collection, sources)
    barred = barred_rows(collection, learnable.part, learnable.relevant, options.text)
    positives = _with_negatives(collection, learnable, barred, options)
    if not positives.frame.height:
        depth = ""
        if options.retrieved_only and options.triples is None:
            depth = f" among BM25's best {options.pool[1]}"
        raise UserError(
            f"{collection_name(collection)}: no query has relevant documents{_of(sources)} and "
            f"others{depth}; there is nothing to learn"
        )
    limited = replace(positives, frame=_limited(collection, positives.frame, options))
    twinned = sources if options.alpha and sources else ()
    training_set = _training_set(
        collection, learnable, limited, barred=barred, options=options, twinned=twinned
    )
    if twinned:
        _require_twins(collection, training_set)
    skipped_positives = learnable.judgments.height - positives.frame.height
    return replace(training_set, skipped_positives=skipped_positives)


def _first_source(collection: Collection) -> tuple[str, ...] | None:
    """Return the source to learn from if none is chosen.

    None, which means all documents, if no document has a source.
    """
    return collection.sources[:1] or None


def retriever_set(collection: Collection, options: RetrieverTraining) -> TrainingSet:
    """Return what a retriever can learn from judgments, found once for all trainings on them."""
    sources = options.sources or _first_source(collection)

    def find() -> TrainingSet:
        learnable = _learnable_judgments(collection, sources)
        rows = _rows_by_id(learnable.part)
        frame = _limited(collection, learnable.judgments, options)
        frame = frame.join(rows, on="doc_id", maintain_order="left").sort("row")
        return _training_set(
            collection,
            learnable,
            Positives(frame=frame, pools=[]),
            barred=barred_rows(collection, learnable.part, learnable.relevant, options.text),
            options=options,
            twinned=sources or (),
        )

    key = (
        __name__,
        sources,
        options.twins,
        options.text,
        options.limits,
        options.seed if options.limits else 0,
    )
    training_set = collection.memo(key, find)
    if options.constrained:
        _require_twins(collection, training_set)
    return training_set


def _require_twins(collection: Collection, training_set: TrainingSet) -> None:
    """Refuse a constraint without a single twin."""
    if not training_set.paired:
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
    learnable: _Learnable,
    positives: Positives,
    *,
    barred: pl.DataFrame,
    options: Training,
    twinned: Sequence[str],
) -> TrainingSet:
    """Sort positives by query, and give documents their twins.

    Parameters
    ----------
    collection : Collection
        The whole collection, which has the twins.
    learnable : _Learnable
        Judgments to learn from.
    positives : Positives
        Relevant documents that are learned from.
    barred : DataFrame
        Documents that are never negatives; see `barred_rows`.
    options : Training
        Options of the training.
    twinned : sequence of str
        Sources whose documents get twins; empty without a constraint.
    """
    part = learnable.part
    positive_rows = _by_query(positives.frame, "row")
    barred_by_query = _by_query(barred, "row")
    queries = part.queries.filter(pl.col("id").is_in(list(positive_rows)))
    query_ids = queries["id"].to_list()
    negatives = list[tuple[Ints, ...]]()
    if positives.pools:
        pool_indices = _by_query(positives.frame, "pool")
        for query in query_ids:
            negatives.append(tuple(positives.pools[index] for index in pool_indices[query]))
    twin_source = _twin_source(collection, options.twins, twinned) if twinned else None
    twins, texts = _twin_texts(collection, part, twin_source, options.text)
    learned_rows = positives.frame["row"].unique().to_numpy()
    has_twin = twins[learned_rows] != learned_rows
    queries_with_relevant = learnable.relevant["query_id"].n_unique()
    positives_of_queries = [positive_rows[query] for query in query_ids]
    barred_of_queries = [barred_by_query[query] for query in query_ids]
    return TrainingSet(
        part=Collection(part.docs, queries, part.qrels, part.spec),
        texts=texts,
        positives=tuple(positives_of_queries),
        negatives=tuple(negatives),
        barred=tuple(barred_of_queries),
        twins=twins,
        twin_source=twin_source,
        paired=int(has_twin.sum()),
        skipped=queries_with_relevant - len(query_ids),
        skipped_positives=0,
    )


def _by_query(frame: pl.DataFrame, column: str) -> dict[str, Ints]:
    """Return the numbers in a column by query."""
    grouped = frame.group_by("query_id", maintain_order=True).agg(column)
    return {query: np.array(numbers, dtype=np.int64) for query, numbers in grouped.iter_rows()}


def _rows_by_id(part: Collection) -> pl.DataFrame:
    """Return ``doc_id`` and ``row`` of all documents."""
    return part.docs.select(doc_id="id").with_columns(row=pl.int_range(pl.len()))


def _with_negatives(
    collection: Collection,
    learnable: _Learnable,
    barred: pl.DataFrame,
    options: RerankerTraining,
) -> Positives:
    """Return the positives to learn from, each with its pool of negatives."""
    part, judgments = learnable.part, learnable.judgments
    if options.triples is not None:
        return _read_triples(Path(options.triples), part, judgments, collection_name(collection))
    rows = _rows_by_id(part)
    frame = judgments.select("query_id", "doc_id").join(rows, on="doc_id", maintain_order="left")
    kind, size = options.pool
    if kind == "random":
        # A query that is itself a document is never its own negative.
        queries = part.queries.select(query_id="id")
        query_rows = queries.join(rows, left_on="query_id", right_on="doc_id")
        excluded = pl.concat([barred, query_rows]).unique()
        return _with_random_negatives(
            frame, excluded, size=size, total=part.docs.height, seed=options.seed
        )
    retrieved = _retrieved(part, size, options.text)
    if options.retrieved_only:
        frame = retrieved.join(frame, on=["query_id", "row"], how="semi", maintain_order="left")
    negatives = retrieved.join(barred, on=["query_id", "row"], how="anti", maintain_order="left")
    pools = negatives.group_by("query_id", maintain_order=True).agg("row")
    pool_indices = pools.select("query_id").with_columns(pool=pl.int_range(pl.len()))
    frame = frame.join(pool_indices, on="query_id", maintain_order="left")
    return Positives(frame=frame, pools=[pool.to_numpy() for pool in pools["row"]])


def _read_triples(path: Path, part: Collection, judgments: pl.DataFrame, name: str) -> Positives:
    """Read positives and negatives in MS MARCO's form: query, positive and negative, by tabs.

    Raises
    ------
    DataError
        At the first line that is no triple, names a query or document that the collection does not
        have, or a positive that is not judged relevant there.
    """
    rows = _rows_by_id(part)
    negative_rows = rows.select(negative="doc_id", negative_row="row")
    triples = list[pl.DataFrame]()
    for lines in _triple_lines(path):
        _require_known_ids(path, lines, part, name)
        _require_relevant(path, lines, judgments, name)
        lines = lines.join(rows, on="doc_id", how="left", maintain_order="left")
        lines = lines.join(negative_rows, on="negative", how="left", maintain_order="left")
        triples.append(lines.select("query_id", "doc_id", "row", "negative_row"))
    positive = ("query_id", "doc_id", "row")
    pools = pl.concat(triples).group_by(*positive, maintain_order=True).agg("negative_row")
    return Positives(
        frame=pools.drop("negative_row").with_columns(pool=pl.int_range(pl.len())),
        pools=[pool.to_numpy() for pool in pools["negative_row"]],
    )


def _require_known_ids(path: Path, lines: pl.DataFrame, part: Collection, name: str) -> None:
    """Refuse triples of unknown queries or documents."""
    known_ids = (part.queries, part.docs, part.docs)
    for field, known in zip(_FIELDS, known_ids, strict=True):
        unknown = lines.join(
            known.select("id"), left_on=field, right_on="id", how="anti", maintain_order="left"
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
    pair = ["query_id", "doc_id"]
    unjudged = lines.join(judgments.select(pair), on=pair, how="anti", maintain_order="left")
    for line, query, document in unjudged.select("line", *pair).head(1).iter_rows():
        raise DataError(
            path,
            f"document {shorten(document)} is not judged relevant to query {shorten(query)} "
            f"in {name}",
            line=line,
        )


def _triple_lines(path: Path) -> Iterator[pl.DataFrame]:
    """Yield lines with their number, ``line``, and three fields."""
    for first_line, lines in line_chunks(path):
        text = pl.Series("text", decode_lines(path, first_line, lines).split("\n"))
        frame = text.to_frame().with_row_index("line", offset=first_line)
        frame = frame.filter(pl.col("text") != "")
        fields = pl.col("text").str.split("\t")
        for line, raw in frame.filter(fields.list.len() != len(_FIELDS)).head(1).iter_rows():
            message = (
                "expected query, positive and negative (3 tab-separated fields), "
                f"got {shorten(raw)}"
            )
            raise DataError(path, message, line=line)
        if frame.height:
            columns = {name: fields.list.get(index) for index, name in enumerate(_FIELDS)}
            yield frame.select("line", **columns)


def _with_random_negatives(
    positives: pl.DataFrame, barred: pl.DataFrame, *, size: int, total: int, seed: int
) -> Positives:
    """Draw `size` of all documents for each positive; none is relevant to its query."""
    rng = np.random.default_rng([seed, 1 << 31])
    excluded = dict(barred.group_by("query_id").agg(pl.col("row").sort()).iter_rows())
    pools = []
    for query in positives["query_id"]:
        left = total - len(excluded[query])
        if left < size:
            raise UserError(
                f"training: negatives=random:{size} asks for more documents than there are: "
                f"{left:,} of {total:,} are not relevant to query {query!r}"
            )
        pools.append(sample_rows(rng, size, total, excluded[query]))
    return Positives(frame=positives.with_columns(pool=pl.int_range(pl.len())), pools=pools)


def _learnable_judgments(collection: Collection, sources: Sequence[str] | None) -> _Learnable:
    """Return the judgments of the chosen sources; refuse a collection without any."""
    part = only_sources(collection, sources)
    relevant = collection.qrels.filter(pl.col("grade") > 0)
    judgments = relevant.join(part.docs.select(doc_id="id"), on="doc_id", how="semi")
    judgments = judgments.join(part.queries.select(query_id="id"), on="query_id", how="semi")
    if not judgments.height:
        raise UserError(
            f"{collection_name(collection)}: no document{_of(sources)} is judged relevant; "
            "there is nothing to learn"
        )
    return _Learnable(relevant=relevant, judgments=judgments, part=part)


def _limited(collection: Collection, positives: pl.DataFrame, options: Training) -> pl.DataFrame:
    """Keep as many positives of a source as `Training.limits` says, drawn by the seed."""
    sources = collection.docs.select("source", doc_id="id")
    source = positives.select("doc_id").join(sources, on="doc_id", maintain_order="left")["source"]
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


def _retrieved(part: Collection, depth: int, text: str) -> pl.DataFrame:
    """Return BM25's best of each query: ``query_id``, ``doc_id``, ``row``, best first."""
    run = BM25(k=depth, text=text).rank(part)
    rows = pl.Series("row", collection_rows(run, part)[run.docs])
    return run.frame().select("query_id", "doc_id").with_columns(rows)


def barred_rows(
    collection: Collection, part: Collection, relevant: pl.DataFrame, text: str
) -> pl.DataFrame:
    """Return the documents that are never a query's negatives: ``query_id`` and ``row``.

    They are those relevant to it, in any version or copy.
    """
    rows = pl.int_range(part.docs.height, eager=True).alias("row")
    docs = part.docs.select("origin", doc_id="id").with_columns(
        rows, text_hash=text_hashes(part, text)
    )
    all_origins = collection.docs.select("origin", doc_id="id")
    origins = relevant.join(all_origins, on="doc_id").select("query_id", "origin").unique()
    versions = origins.join(docs.select("origin", "row"), on="origin")
    hashes = relevant.join(docs.select("doc_id", "text_hash"), on="doc_id")
    hashes = hashes.select("query_id", "text_hash").unique()
    copies = hashes.join(docs.select("text_hash", "row"), on="text_hash")
    barred = [versions.select("query_id", "row"), copies.select("query_id", "row")]
    return pl.concat(barred).unique().sort("row")


def text_hashes(part: Collection, text: str) -> pl.Series:
    """Return a number for each document, equal for documents with the same text."""
    return part.texts(text).hash()


def collection_name(collection: Collection) -> str:
    """Return the collection's name in messages: its path and split."""
    path, split = collection.spec.get("path", "the collection"), collection.spec.get("split")
    return f"{path}, split {split}" if split else str(path)


def _of(sources: Sequence[str] | None) -> str:
    """Name the sources, as a message has them."""
    return f" of source {' or '.join(map(repr, sources))}" if sources is not None else ""


def _twin_source(
    collection: Collection, twin_source: str | None, learned: Sequence[str]
) -> str | None:
    """Return the source of the twins.

    By default, the first one that is not learned from and has a version of a document that is.
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
    collection: Collection, part: Collection, source: str | None, text: str
) -> tuple[Ints, list[str]]:
    """Return the index of each document's twin, or its own if it has none, and all texts."""
    own_indices = np.arange(part.docs.height, dtype=np.int64)
    texts = part.texts(text).to_list()
    if source is None:
        return own_indices, texts
    versions = collection.docs.select("origin", "source", text=collection.texts(text))
    versions = versions.filter(pl.col("source") == source)
    versions = versions.unique("origin", keep="first", maintain_order=True)
    indices = versions.select("origin", index=pl.int_range(pl.len()) + len(texts))
    origins = part.docs.select("origin")
    twins = origins.join(indices, on="origin", how="left", maintain_order="left")["index"]
    twins = twins.fill_null(pl.Series(own_indices))
    return twins.to_numpy().astype(np.int64), texts + versions["text"].to_list()
