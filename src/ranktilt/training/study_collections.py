"""Collections of a training study: training, test, and others that nothing is learned from.

A *source* is the author of documents; the *reference* is the source of people's documents. A *side*
is the documents of one source.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path, PurePath

import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.loading.collection_name import NO_QRELS
from ranktilt.data.loading.load import load
from ranktilt.data.runs.rank_llm import holds_texts, read_candidates
from ranktilt.data.runs.run import Run
from ranktilt.errors import UserError, refuse_twice
from ranktilt.explaining.equivalence import only_group
from ranktilt.rankers.candidates import Candidates
from ranktilt.training.study_evaluation import DOMAIN
from ranktilt.training.study_options import StudyOptions, ZeroShot
from ranktilt.training.training_set import text_hashes


@dataclass(frozen=True, kw_only=True)
class ZeroShotCollection:
    """A test collection that nothing is learned from."""

    name: str
    """Name in results."""
    collection: Collection
    """The collection; only the reference's documents if it has several sources."""
    candidates: Run | None
    """Run of the first stage, whose documents are re-ranked; None for BM25's."""


@dataclass(frozen=True, kw_only=True)
class StudyCollections:
    """All collections of a study, checked before anything is trained."""

    name: str
    """Name of the collection that is learned from."""
    train: Collection
    """The training split."""
    test: Collection
    """The test split."""
    learned: Collection
    """The training split; in a disjoint study without documents that are relevant in the test."""
    supervised: Collection
    """The reference's documents of the test split, with the queries to test."""
    seen: Collection
    """The reference's documents of the training split, with the queries to test."""
    mixed: Collection
    """Documents of all sources of the test split, with the queries to test."""
    zero_shot: tuple[ZeroShotCollection, ...]
    """Test collections that nothing is learned from."""


def load_collections(folder: str | Path, options: StudyOptions) -> StudyCollections:
    """Load and check the collections of a study; `folder` has training and test."""
    train = load(folder, split=options.train, ignore_unknown=True)
    test = load(folder, split=options.test, ignore_unknown=True)
    learned, tested = train, test
    if options.disjoint:
        learned, tested = remove_overlap(train, test), remove_overlap(test, train)
    _require_two_sides(learned, options.reference)

    def draw(collection: Collection) -> Collection:
        return draw_queries(collection, options.queries, options.seed)

    zero_shot = [load_zero_shot(collection, options) for collection in options.zero_shot]
    refuse_twice([collection.name for collection in zero_shot], "collection")
    return StudyCollections(
        name=PurePath(folder).name or "collection",
        train=train,
        test=test,
        learned=learned,
        supervised=draw(only_group(tested, options.reference)),
        seen=draw(only_group(train, options.reference)),
        mixed=draw(tested),
        zero_shot=tuple(zero_shot),
    )


def _require_two_sides(collection: Collection, reference: str) -> None:
    """Refuse a collection without the reference, or with no other source."""
    if reference not in collection.sources:
        fault = collection.unknown_source(reference)
        raise UserError(f"{fault}; name the source that people wrote: --reference SOURCE")
    if len(collection.sources) < 2:
        raise UserError(
            f"a training study needs documents of two sides, got only source {reference!r}; "
            "ranktilt data build retrieval-qa makes such a collection"
        )


def remove_overlap(collection: Collection, counterpart: Collection) -> Collection:
    """Remove documents that are relevant in the counterpart, and documents with the same texts.

    Documents that are relevant in the collection itself stay. The counterpart of a training split
    is the test split, and the other way round.
    """
    hashes = text_hashes(collection, "title+text")
    is_in_counterpart = collection.ids.is_in(_relevant_ids(counterpart).implode())
    is_in_counterpart_or_copy = hashes.is_in(hashes.filter(is_in_counterpart).implode())
    is_relevant_here = collection.ids.is_in(_relevant_ids(collection).implode())
    is_removed = is_in_counterpart_or_copy & ~is_relevant_here
    removed_ids = collection.ids.filter(is_removed)
    return Collection(
        collection.docs.filter(~is_removed),
        collection.queries,
        collection.qrels.filter(~pl.col("doc_id").is_in(removed_ids.implode())),
        {**collection.spec, "disjoint": True},
    )


def _relevant_ids(collection: Collection) -> pl.Series:
    """Return the ids of all relevant documents."""
    return collection.qrels.filter(pl.col("grade") > 0)["doc_id"]


def draw_queries(collection: Collection, limit: int | None, seed: int) -> Collection:
    """Return the collection with at most `limit` queries of each domain; all if None.

    Only queries with a relevant document are drawn. The domain of a query is that of its first
    relevant document. The draw depends on `seed` and on the ids of the domain's queries alone, and
    the queries of a smaller `limit` are among those of a larger one.
    """
    if limit is None:
        return collection
    docs = collection.docs
    domains = docs.select(doc_id="id", domain=DOMAIN if DOMAIN in docs.columns else pl.lit(""))
    relevant = collection.qrels.filter(pl.col("grade") > 0)
    relevant = relevant.join(domains, on="doc_id", how="left", maintain_order="left")
    queries = relevant.group_by("query_id").agg(pl.col("domain").drop_nulls().first().fill_null(""))
    # Sorting by a hash of seed and id puts queries into a random order that can be repeated.
    keys = [blake2b(f"{seed} {query}".encode()).digest() for query in queries["query_id"]]
    queries = queries.with_columns(key=pl.Series(keys, dtype=pl.Binary)).sort("key")
    drawn = queries.group_by("domain", maintain_order=True).head(limit).select("query_id")
    return Collection(
        docs,
        collection.queries.join(
            drawn, left_on="id", right_on="query_id", how="semi", maintain_order="left"
        ),
        collection.qrels.join(drawn, on="query_id", how="semi", maintain_order="left"),
        {**collection.spec, "drawn": {"queries": limit, "seed": seed}},
    )


def load_zero_shot(zero_shot: ZeroShot, options: StudyOptions) -> ZeroShotCollection:
    """Load a collection that nothing is learned from, and the run to re-rank if there is one."""
    path, run = Path(zero_shot.path), None
    name = zero_shot.name or (path.stem if path.is_file() else path.name)
    if path.is_file():
        if not holds_texts(path):
            raise UserError(
                f"{path}: expected a collection's folder, or candidates with their texts "
                "(rank_llm's JSON)"
            )
        collection, run = read_candidates(path, qrels=zero_shot.qrels)
    else:
        collection = load(zero_shot.path, qrels=zero_shot.qrels, ignore_unknown=True)
    if not (collection.qrels["grade"] > 0).any() or zero_shot.qrels == NO_QRELS:
        raise UserError(
            f"zero-shot collection {zero_shot.path}: no judgments (qrels); "
            f"name them: {zero_shot.path},qrels=FILE"
        )
    if len(collection.sources) > 1 and options.reference in collection.sources:
        collection = only_group(collection, options.reference)
    if zero_shot.candidates:
        run = Run.load(zero_shot.candidates)
    collection = draw_queries(collection, options.queries, options.seed)
    if run is not None:
        # This raises an error for documents without a text, before anything is trained.
        Candidates.from_run(collection, run, "the training study")
    return ZeroShotCollection(name=name, collection=collection, candidates=run)
