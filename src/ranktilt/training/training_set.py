"""What is learned from: queries, their relevant documents, the twins of these, and what each is learned against."""

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
from ranktilt.data.run import collection_rows
from ranktilt.errors import DataError, UserError, shorten
from ranktilt.rankers.lexical.bm25 import BM25
from ranktilt.statistics.sampling import sample_rows
from ranktilt.training.options import RerankerTraining, RetrieverTraining, Training

Ints = npt.NDArray[np.int64]
_FIELDS = ("query_id", "doc_id", "negative")
"""Of a line of triples: ids of the query, of a relevant document, and of another one."""


@dataclass(frozen=True)
class Positives:
    """Relevant documents to learn from, and rows of documents that each of them is learned against."""

    frame: pl.DataFrame
    """``query_id``, ``doc_id``, ``row`` and ``pool``, a place in `pools`."""
    pools: list[Ints]


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """What is learned from a collection; documents are rows of `part`."""

    part: Collection
    """The documents that are learned from, with the queries that have something to learn, in their order."""
    texts: list[str]
    """Of the documents, and behind them of their twins."""
    positives: tuple[Ints, ...]
    """The relevant documents of each query."""
    negatives: tuple[tuple[Ints, ...], ...]
    """What each of them is learned against; empty where it is mined."""
    barred: tuple[Ints, ...]
    """What is relevant to each query, in any version or copy."""
    twins: Ints
    """Where each document's twin stands in `texts`; its own place where it has none, which no constraint can move."""
    twin_source: str | None
    paired: int
    """Relevant documents that have a twin."""
    skipped: int
    """Queries with a relevant document of which none is learned from."""
    skipped_positives: int
    """Relevant documents that are left out: those that BM25 does not find, or that no triple names."""

    @cached_property
    def queries(self) -> list[str]:
        """Texts of the queries."""
        return self.part.queries["text"].to_list()


def reranker_set(collection: Collection, options: RerankerTraining) -> TrainingSet:
    """Find what a re-ranker can learn from a collection's judgments; a grade above 0 is relevant.

    No negative is a version (same origin) or copy (same text) of what is relevant to its query, in
    any source, unless a file of triples says so. Where sources are chosen, documents of the others
    do not exist otherwise. Where there is a constraint, each positive comes with its twin, and
    without sources the first one is learned from.
    """
    sources = options.sources or (_first_source(collection) if options.alpha else None)
    if options.alpha and sources is None:
        raise UserError(
            f"{collection_name(collection)}: a constraint compares sources, and no document has one"
        )
    relevant, wanted, part = _relevant_documents(collection, sources)
    barred = barred_rows(collection, part, relevant, options.text)
    every = _with_negatives(collection, part, wanted, barred, options)
    if not every.frame.height:
        where = (
            f" among BM25's best {options.pool[1]}"
            if options.retrieved_only and options.triples is None
            else ""
        )
        raise UserError(
            f"{collection_name(collection)}: no relevant document{_of(sources)} beside others{where}; there is nothing "
            "to learn"
        )
    found = Positives(_drawn(collection, every.frame, options), every.pools)
    twinned = sources if options.alpha and sources else ()
    learned = _put_together(collection, part, found, barred, options, twinned=twinned)
    if twinned:
        _require_twins(collection, learned)
    skipped = relevant["query_id"].n_unique() - len(learned.positives)
    return replace(learned, skipped=skipped, skipped_positives=wanted.height - every.frame.height)


def _first_source(collection: Collection) -> tuple[str, ...] | None:
    """Name the source that is learned from where none is chosen; None, for all documents, where none has a source."""
    return collection.sources[:1] or None


def retriever_set(collection: Collection, options: RetrieverTraining) -> TrainingSet:
    """Find what a retriever can learn from a collection's judgments, once for all trainings on it."""
    sources = options.sources or _first_source(collection)

    def find() -> TrainingSet:
        relevant, wanted, part = _relevant_documents(collection, sources)
        rows = part.docs.select(doc_id="id").with_columns(row=pl.int_range(pl.len()))
        good = (
            _drawn(collection, wanted, options)
            .join(rows, on="doc_id", maintain_order="left")
            .sort("row")
        )
        barred = barred_rows(collection, part, relevant, options.text)
        learned = _put_together(
            collection, part, Positives(good, []), barred, options, twinned=sources or ()
        )
        return replace(learned, skipped=relevant["query_id"].n_unique() - len(learned.positives))

    key = (
        __name__,
        sources,
        options.twins,
        options.text,
        options.limits,
        options.seed if options.limits else 0,
    )
    found = collection.memo(key, find)
    if options.constrained:
        _require_twins(collection, found)
    return found


def _require_twins(collection: Collection, learned: TrainingSet) -> None:
    if not learned.paired:
        split, path = collection.spec.get("split") or "train", collection.spec.get("path") or "DIR"
        named = shlex.join([str(path), "--split", str(split)])
        raise UserError(
            f"{collection_name(collection)}: no relevant document that is learned from has a twin, and the constraint "
            f"compares the two; write them: ranktilt generate rewrite {named} --llm MODEL -o NEW"
        )


def _put_together(
    collection: Collection,
    part: Collection,
    positives: Positives,
    barred: pl.DataFrame,
    options: Training,
    *,
    twinned: Sequence[str],
) -> TrainingSet:
    """Sort what was found by query; documents of the sources `twinned` get their twins."""
    rows, never = _by_query(positives.frame, "row"), _by_query(barred, "row")
    pools = _by_query(positives.frame, "pool") if positives.pools else {}
    queries = part.queries.filter(pl.col("id").is_in(list(rows)))
    ids = queries["id"].to_list()
    source = _twin_source(collection, options.twins, twinned) if twinned else None
    twins, texts = _twin_texts(collection, part, source, options.text)
    used = positives.frame["row"].unique().to_numpy()
    return TrainingSet(
        Collection(part.docs, queries, part.qrels, part.spec),
        texts,
        tuple(rows[q] for q in ids),
        tuple(
            tuple(positives.pools[number] for number in pools[q]) for q in ids if positives.pools
        ),
        tuple(never[q] for q in ids),
        twins,
        source,
        int((twins[used] != used).sum()),
        0,
        0,
    )


def _by_query(frame: pl.DataFrame, column: str) -> dict[str, Ints]:
    grouped = frame.group_by("query_id", maintain_order=True).agg(column)
    return {query: np.array(found, dtype=np.int64) for query, found in grouped.iter_rows()}


def _with_negatives(
    collection: Collection,
    part: Collection,
    wanted: pl.DataFrame,
    barred: pl.DataFrame,
    options: RerankerTraining,
) -> Positives:
    """Find what is learned from, and what each positive is learned against."""
    if options.triples is not None:
        return _read_triples(Path(options.triples), part, wanted, collection_name(collection))
    rows = part.docs.select(doc_id="id").with_columns(row=pl.int_range(pl.len()))
    positive = wanted.select("query_id", "doc_id").join(rows, on="doc_id", maintain_order="left")
    kind, size = options.pool
    if kind == "random":
        itself = part.queries.select(query_id="id").join(
            rows, left_on="query_id", right_on="doc_id"
        )
        return _random(
            positive, pl.concat([barred, itself]).unique(), (size, part.docs.height), options.seed
        )
    found = _candidates(part, size, options.text)
    if options.retrieved_only:
        positive = found.join(positive, on=["query_id", "row"], how="semi", maintain_order="left")
    others = found.join(barred, on=["query_id", "row"], how="anti", maintain_order="left")
    lists = others.group_by("query_id", maintain_order=True).agg("row")
    pools = lists.select("query_id").with_columns(pool=pl.int_range(pl.len()))
    positive = positive.join(pools, on="query_id", maintain_order="left")
    return Positives(positive, [rows.to_numpy() for rows in lists["row"]])


def _read_triples(path: Path, part: Collection, wanted: pl.DataFrame, name: str) -> Positives:
    """Read what is learned from out of MS MARCO's form: ids of query, positive and negative, tab-separated.

    `DataError` names the line of what is no triple, of a query or document that the collection does
    not have, and of a positive that is not judged relevant there.
    """
    docs = part.docs.select("id").with_columns(row=pl.int_range(pl.len()))
    relevant = wanted.select("query_id", "doc_id", known=True)
    positives, pieces = docs.rename({"id": "doc_id"}), list[pl.DataFrame]()
    for lines in _triple_lines(path):
        for kind, known in zip(_FIELDS, (part.queries, docs, docs), strict=True):
            strange = lines.join(
                known.select("id"), left_on=kind, right_on="id", how="anti", maintain_order="left"
            )
            for line, value in strange.select("line", kind).head(1).iter_rows():
                noun = "query" if kind == "query_id" else "document to learn from"
                message = f"{name} has no {noun} {shorten(value)}; are these the triples of another collection?"
                raise DataError(path, message, line=line)
        found = lines.join(relevant, on=["query_id", "doc_id"], how="left", maintain_order="left")
        for line, *pair in (
            found.filter(pl.col("known").is_null()).select("line", *_FIELDS[:2]).head(1).iter_rows()
        ):
            query, document = map(shorten, pair)
            raise DataError(
                path,
                f"document {document} is not judged relevant to query {query} in {name}",
                line=line,
            )
        found = found.join(positives, on="doc_id", how="left", maintain_order="left")
        found = found.join(
            docs.select(negative="id", other="row"),
            on="negative",
            how="left",
            maintain_order="left",
        )
        pieces.append(found.select("query_id", "doc_id", "row", "other"))
    lists = (
        pl.concat(pieces).group_by("query_id", "doc_id", "row", maintain_order=True).agg("other")
    )
    frame = lists.drop("other").with_columns(pool=pl.int_range(pl.len()))
    return Positives(frame, [rows.to_numpy() for rows in lists["other"]])


def _triple_lines(path: Path) -> Iterator[pl.DataFrame]:
    """Lines with their number, ``line``, and three fields."""
    for first_line, lines in line_chunks(path):
        text = pl.Series("text", decode_lines(path, first_line, lines).split("\n"))
        frame = (
            text.to_frame().with_row_index("line", offset=first_line).filter(pl.col("text") != "")
        )
        fields = pl.col("text").str.split("\t")
        for line, raw in frame.filter(fields.list.len() != len(_FIELDS)).head(1).iter_rows():
            message = f"expected query, positive and negative (3 tab-separated fields), got {shorten(raw)}"
            raise DataError(path, message, line=line)
        if frame.height:
            yield frame.select(
                "line", **{name: fields.list.get(place) for place, name in enumerate(_FIELDS)}
            )


def _random(
    positive: pl.DataFrame, barred: pl.DataFrame, sizes: tuple[int, int], seed: int
) -> Positives:
    """Draw so many of all documents for each positive, none of which is relevant to its query."""
    rng, (n, total) = np.random.default_rng([seed, 1 << 31]), sizes
    excluded = dict(barred.group_by("query_id").agg(pl.col("row").sort()).iter_rows())
    pools = []
    for query in positive["query_id"]:
        left = total - len(excluded[query])
        if left < n:
            raise UserError(
                f"training: negatives=random:{n} asks for more documents than there are: {left:,} of {total:,} are not "
                f"relevant to query {query!r}"
            )
        pools.append(sample_rows(rng, n, total, excluded[query]))
    return Positives(positive.with_columns(pool=pl.int_range(pl.len())), pools)


def _relevant_documents(
    collection: Collection, sources: Sequence[str] | None
) -> tuple[pl.DataFrame, pl.DataFrame, Collection]:
    """All judgments above 0, those that can be learned from, and the collection of the sources' documents alone."""
    part = of_sources(collection, sources)
    relevant = collection.qrels.filter(pl.col("grade") > 0)
    wanted = relevant.join(part.docs.select(doc_id="id"), on="doc_id", how="semi")
    wanted = wanted.join(part.queries.select(query_id="id"), on="query_id", how="semi")
    if not wanted.height:
        raise UserError(
            f"{collection_name(collection)}: no document{_of(sources)} is judged relevant; there is nothing to learn"
        )
    return relevant, wanted, part


def _drawn(collection: Collection, positives: pl.DataFrame, options: Training) -> pl.DataFrame:
    """Keep so many rows of a source as are asked for, drawn by the seed; rows have a ``doc_id``."""
    sources = collection.docs.select("source", doc_id="id")
    source = positives.select("doc_id").join(sources, on="doc_id", maintain_order="left")["source"]
    rng, kept = (
        np.random.default_rng([options.seed, 1 << 30]),
        np.ones(positives.height, dtype=np.bool_),
    )
    for name, most in options.limits:
        rows = np.flatnonzero((source == name).to_numpy())
        if len(rows) < most:
            raise UserError(
                f"{collection_name(collection)}: asked to learn from {most:,} relevant documents of source {name!r}, "
                f"and there are {len(rows):,}"
            )
        kept[rng.permutation(rows)[most:]] = False
    return positives.filter(pl.Series(kept))


def of_sources(collection: Collection, sources: Sequence[str] | None) -> Collection:
    """Return the collection without the documents of other sources; itself where all are wanted."""
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


def _candidates(part: Collection, depth: int, text: str) -> pl.DataFrame:
    """BM25's best of each query: ``query_id``, ``doc_id``, ``row``, best first."""
    run = BM25(k=depth, text=text).rank(part)
    rows = pl.Series("row", collection_rows(run, part)[run.docs])
    return run.frame().select("query_id", "doc_id").with_columns(rows)


def barred_rows(
    collection: Collection, part: Collection, relevant: pl.DataFrame, text: str
) -> pl.DataFrame:
    """What is never a query's negative, ``query_id`` and ``row``: what is relevant to it, in any version or copy."""
    rows = pl.int_range(part.docs.height, eager=True).alias("row")
    docs = part.docs.select("origin", doc_id="id").with_columns(
        rows, copy=copies_of_text(part, text)
    )
    origins = relevant.join(collection.docs.select("origin", doc_id="id"), on="doc_id").select(
        "query_id", "origin"
    )
    versions = (
        origins.unique().join(docs.select("origin", "row"), on="origin").select("query_id", "row")
    )
    found = relevant.join(docs.select("doc_id", "copy"), on="doc_id").select("query_id", "copy")
    copies = found.unique().join(docs.select("copy", "row"), on="copy").select("query_id", "row")
    return pl.concat([versions, copies]).unique().sort("row")


def copies_of_text(part: Collection, text: str) -> pl.Series:
    """Return a number that documents of one text share."""
    return part.texts(text).hash()


def collection_name(collection: Collection) -> str:
    """Return what messages call a collection: its path and split."""
    split = collection.spec.get("split")
    return f"{collection.spec.get('path', 'the collection')}{f', split {split}' if split else ''}"


def _of(sources: Sequence[str] | None) -> str:
    return f" of source {' or '.join(map(repr, sources))}" if sources is not None else ""


def _twin_source(collection: Collection, named: str | None, chosen: Sequence[str]) -> str | None:
    """Return the source of the twins: the one that is named, else the first other one with any version."""
    if named is not None:
        if named not in collection.sources:
            raise collection.unknown_source(named)
        if named in chosen:
            raise UserError(f"training: {named!r} is trained on, so it cannot hold the twins too")
        return named
    origins = collection.docs.filter(pl.col("source").is_in(list(chosen)))["origin"].unique()
    others = collection.docs.filter(
        ~pl.col("source").is_in(list(chosen)) & pl.col("origin").is_in(origins.implode())
    )
    return next((name for name in collection.sources if name in set(others["source"])), None)


def _twin_texts(
    collection: Collection, part: Collection, source: str | None, text: str
) -> tuple[Ints, list[str]]:
    """Return where each document's twin stands in texts, its own place where it has none, and the texts."""
    own = np.arange(part.docs.height, dtype=np.int64)
    texts = part.texts(text).to_list()
    if source is None:
        return own, texts
    of_source = pl.Series(collection.docs["source"] == source)
    versions = pl.DataFrame(
        {"origin": collection.docs["origin"], "text": collection.texts(text)}
    ).filter(of_source)
    versions = versions.unique("origin", keep="first", maintain_order=True)
    places = versions.select("origin", place=pl.int_range(pl.len()) + len(texts))
    found = part.docs.select("origin").join(places, on="origin", how="left", maintain_order="left")[
        "place"
    ]
    return found.fill_null(pl.Series(own)).to_numpy().astype(np.int64), texts + versions[
        "text"
    ].to_list()
