"""The training study from end to end: train each encoder on either side, re-rank what BM25 finds, and compare."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from hashlib import blake2b
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ranktilt.auditing.options import check_choices, check_resamples
from ranktilt.data.collection import Collection
from ranktilt.data.collection_name import NO_QRELS
from ranktilt.data.load import load
from ranktilt.data.rank_llm import holds_texts, read_candidates
from ranktilt.data.run import Run
from ranktilt.errors import UserError, refuse_twice
from ranktilt.explaining.equivalence import reference_alone
from ranktilt.models.checkpoint import read_json
from ranktilt.progress import report
from ranktilt.rankers.candidates import Candidates
from ranktilt.rankers.lexical.bm25 import BM25
from ranktilt.rankers.rerank.cross_encoder import CrossEncoder
from ranktilt.statistics.bootstrap import RESAMPLES
from ranktilt.training.cross_encoder import train_cross_encoder
from ranktilt.training.model import find_base_model, require_encoder
from ranktilt.training.options import RerankerTraining
from ranktilt.training.study_comparison import DOMAIN, Ranked, compare_trainings
from ranktilt.training.study_result import BASELINE, Kind, TrainedRanker, TrainingStudy
from ranktilt.training.training_set import copies_of_text, reranker_set

FULL = 1000
"""Depth of the paper, to which the first stage is measured."""
_SPLITS = ("train", "dev", "test")
Amounts = tuple[tuple[str, int], ...]
"""How many documents of each source are learned from."""


class ZeroShot(NamedTuple):
    """A collection that nothing is learned from."""

    path: str
    """A folder, ``hub:OWNER/NAME``, ``irds:ID``, or a file of candidates with their texts, as rank_llm writes them."""
    qrels: str | None = None
    candidates: str | None = None
    """A run of the first stage; BM25's by default, or those of the file of candidates."""
    name: str = ""


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """How a training study is made."""

    training: RerankerTraining = field(default_factory=RerankerTraining)
    """How each encoder learns; sources, seed and amounts come from the study."""
    seeds: int = 1
    """Trainings per ranker, each with its own seed."""
    depth: int = FULL
    """How many of BM25's documents are re-ranked; recall and average precision are measured there."""
    queries: int | None = None
    """Test at most so many queries of each domain of each collection, drawn by `seed`; all by default."""
    disjoint: bool = False
    """Keep training and test apart: what is relevant to a query of the training, and each copy of its text, is no part
    of the test collection, nor the other way round; what is relevant to queries of both stays in both."""
    curve: tuple[Amounts, ...] = ()
    """Rankers that learn from a number of documents of each source: ``((('human', 100), ('llm', 50)), …)``."""
    zero_shot: tuple[ZeroShot, ...] = ()
    """Collections that nothing is learned from."""
    train: str = "train"
    test: str = "test"
    reference: str = "human"
    """The human side, whose answers count in the test."""
    seed: int = 0
    """Of the drawn queries, and of the first training."""

    def __post_init__(self) -> None:
        for name in ("seeds", "depth", "queries"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"training study: expected {name} of at least 1, got {value}")


def training_study(
    folder: str | Path,
    models: Sequence[str | Path],
    work_dir: str | Path,
    *,
    options: StudyOptions | None = None,
    **how: Any,
) -> TrainingStudy:
    """Train each encoder on the documents of either side, and compare what the rankers do.

    Everything is resumed: a training goes on from its last checkpoint, one that is done is not
    repeated, and pairs that were scored once are scored no more.

    Parameters
    ----------
    folder : str or Path
        A collection with two sources and judgments to learn from and to test on, as
        ``ranktilt data build retrieval-qa`` makes one.
    models : sequence of str or Path
        The encoders to start from.
    work_dir : str or Path
        Where models and runs go.
    options : StudyOptions, optional
        What is trained, and on what it is tested.
    **how
        Options of `compare_trainings`: ties, resamples, seed.

    Returns
    -------
    TrainingStudy
        Supervised and zero-shot effectiveness, seen queries, the first stage, and Relative Δ of
        every ranker.

    Raises
    ------
    UserError
        Before any training where a collection has no judgments or only one side, or a model is no
        encoder.
    """
    options, work = options or StudyOptions(), Path(work_dir)
    train, test = (
        load(folder, split=split, ignore_unknown=True) for split in (options.train, options.test)
    )
    bodies = _bodies(models)
    learned, tested = (
        (apart(train, test), apart(test, train)) if options.disjoint else (train, test)
    )
    rankers_to_train = _rankers_to_train(learned, bodies, options)
    name = PurePath(folder).name or "collection"
    supervised, seen = (
        _drawn(reference_alone(one, options.reference), options) for one in (tested, train)
    )
    zero_shot = [_zero_shot(one, options) for one in options.zero_shot]
    given = {"ties": "expected", "resamples": RESAMPLES, "seed": 0, **how}
    check_choices(ties=given["ties"])
    check_resamples(given["resamples"])
    refuse_twice([trained_ranker.run for trained_ranker in rankers_to_train], "training")
    refuse_twice([one[0] for one in zero_shot], "collection")
    for model in bodies.values():  # the weights are read, for a folder may hold those of another
        require_encoder(
            model, options.training.max_query_tokens, options.training.max_document_tokens
        )
    trained = []
    for number, trained_ranker in enumerate(rankers_to_train):
        report("training rankers", number, len(rankers_to_train))
        trained.append(
            _trained(trained_ranker, bodies[trained_ranker.body], learned, work, options.training)
        )
    report("training rankers", len(rankers_to_train), len(rankers_to_train))
    compared = [one for one in trained if not one.limits]
    blind = [one for one in compared if options.reference not in one.documents]
    queries = f"{name}-{options.train} queries, {options.reference} documents"
    rank = partial(_ranked, work=work, options=options)
    ranked = [
        rank(f"{name}-{options.test}", "supervised", supervised, compared),
        *(rank(other, "zero-shot", found, compared, run) for other, found, run in zero_shot),
        rank(queries, "seen", seen, blind),
        *_first_stages(folder, name, train.sources),
    ]
    if options.curve:
        augmented = [one for one in trained if one.limits]
        ranked.append(rank(f"{name}-{options.test}, augmented", "curve", supervised, augmented))
    mixed = rank("mixed", "supervised", _drawn(tested, options), compared)
    found = compare_trainings(
        trained, ranked, mixed=mixed, answers=test, reference=options.reference, **given
    )
    spec = {**found.spec, "collection": {**found.spec["collection"], "path": str(folder)}}
    spec |= {
        name: getattr(options, name)
        for name in ("seeds", "depth", "queries", "disjoint", "train", "test")
    }
    spec["zero_shot"] = [
        {name: value for name, value in one._asdict().items() if value} for one in options.zero_shot
    ]
    return replace(found, spec={**spec, "training": asdict(options.training), "work": str(work)})


def _bodies(models: Sequence[str | Path]) -> dict[str, str]:
    """The encoders by the name that tables give them."""
    if not models:
        raise UserError("a training study needs an encoder to start from (--base-model MODEL)")
    names = [PurePath(model).name or str(model) for model in models]
    refuse_twice(names, "model")
    return dict(zip(names, map(str, models), strict=True))


def tuned_for(model: str) -> str:
    """Say what an encoder was trained for before, as far as its folder tells; empty for nothing."""
    folder = find_base_model(model)
    kinds = read_json(folder / "config.json", dict).get("architectures") or []
    if any(str(kind).endswith("ForSequenceClassification") for kind in kinds):
        return "classification"
    modules = [
        str(one.get("type"))
        for one in read_json(folder / "modules.json", list)
        if isinstance(one, dict)
    ]
    return "retrieval" if any(kind.endswith("Pooling") for kind in modules) else ""


def _rankers_to_train(
    train: Collection, bodies: Mapping[str, str], options: StudyOptions
) -> list[TrainedRanker]:
    """Every training: each side, then the curve; each body and seed."""
    if options.reference not in train.sources:
        fault = train.unknown_source(options.reference)
        raise UserError(f"{fault}; name the source that people wrote: --reference SOURCE")
    if len(train.sources) < 2:
        raise UserError(
            f"a training study needs documents of two sides, got only source {options.reference!r}; "
            "ranktilt data build retrieval-qa makes such a collection"
        )
    sides = [options.reference, *(name for name in train.sources if name != options.reference)]
    curve = [_amounts(amounts) for amounts in options.curve]
    learned = [
        *(((name,), ()) for name in sides),
        *((tuple(dict(found)), found) for found in curve),
    ]
    for sources, limits in learned:
        # Refuses what has nothing to learn from, of which BM25 finds no relevant document, or fewer
        # than are asked for.
        reranker_set(train, replace(options.training, sources=sources, limits=limits, alpha=0.0))
    return [
        TrainedRanker(body, sources, seed, "", limits, tuned)
        for body, tuned in [(body, tuned_for(model)) for body, model in bodies.items()]
        for seed in range(options.seed, options.seed + options.seeds)
        for sources, limits in learned
    ]


def _amounts(amounts: Amounts) -> Amounts:
    """Documents by source; none of a source leaves it out."""
    found = tuple((name, number) for name, number in amounts if number)
    if not found:
        raise UserError(
            "the curve: a ranker needs a document to learn from; got none of any source"
        )
    return found


def _trained(
    trained_ranker: TrainedRanker,
    model: str,
    train: Collection,
    work: Path,
    training: RerankerTraining,
) -> TrainedRanker:
    place = work / "models" / _slug(trained_ranker.run)
    how = replace(
        training,
        sources=trained_ranker.documents,
        seed=trained_ranker.seed,
        limits=trained_ranker.limits,
    )
    train_cross_encoder(train, model, place, options=how)
    return replace(trained_ranker, ranker=repr(_cross_encoder(place, training)))


def _cross_encoder(folder: Path, training: RerankerTraining) -> CrossEncoder:
    return CrossEncoder(
        str(folder),
        text=training.text,
        device=training.device,
        max_query_tokens=training.max_query_tokens,
        max_document_tokens=training.max_document_tokens,
    )


def _slug(name: str) -> str:
    return re.sub(r"[^\w.]+", "-", name).strip("-")


def apart(collection: Collection, other: Collection) -> Collection:
    """Return the collection without what is relevant in the other one, nor any copy of its text.

    What is relevant in the collection itself stays.
    """
    own, learned = (
        one.qrels.filter(pl.col("grade") > 0)["doc_id"].implode() for one in (collection, other)
    )
    texts = copies_of_text(collection, "title+text")
    copies = texts.is_in(texts.filter(collection.ids.is_in(learned)).implode())
    gone = copies & ~collection.ids.is_in(own)
    qrels = collection.qrels.filter(~pl.col("doc_id").is_in(collection.ids.filter(gone).implode()))
    return Collection(
        collection.docs.filter(~gone),
        collection.queries,
        qrels,
        {**collection.spec, "disjoint": True},
    )


def drawn_queries(collection: Collection, most: int | None, seed: int) -> Collection:
    """Return the collection with at most so many queries of each domain that have a relevant document.

    A smaller number draws some of a larger one's, and whether one is drawn depends on its id and on
    those of its domain alone. The domain is that of a query's first relevant document.
    """
    if most is None:
        return collection
    docs = collection.docs
    domains = docs.select(doc_id="id", domain=DOMAIN if DOMAIN in docs.columns else pl.lit(""))
    relevant = collection.qrels.filter(pl.col("grade") > 0).join(
        domains, on="doc_id", how="left", maintain_order="left"
    )
    queries = relevant.group_by("query_id").agg(pl.col("domain").drop_nulls().first().fill_null(""))
    keys = [blake2b(f"{seed} {query}".encode()).digest() for query in queries["query_id"]]
    queries = queries.with_columns(key=pl.Series(keys, dtype=pl.Binary)).sort("key")
    kept = queries.group_by("domain", maintain_order=True).head(most).select("query_id")
    left = collection.queries.join(
        kept, left_on="id", right_on="query_id", how="semi", maintain_order="left"
    )
    qrels = collection.qrels.join(kept, on="query_id", how="semi", maintain_order="left")
    return Collection(
        docs, left, qrels, {**collection.spec, "drawn": {"queries": most, "seed": seed}}
    )


def _drawn(collection: Collection, options: StudyOptions) -> Collection:
    return drawn_queries(collection, options.queries, options.seed)


def _zero_shot(named: ZeroShot, options: StudyOptions) -> tuple[str, Collection, Run | None]:
    """Load a collection that nothing is learned from, its human side where it has several."""
    path, run = Path(named.path), None
    name = named.name or (path.stem if path.is_file() else path.name)
    if path.is_file():
        if not holds_texts(path):
            raise UserError(
                f"{path}: expected a collection's folder, or candidates with their texts (rank_llm's JSON)"
            )
        collection, run = read_candidates(path, qrels=named.qrels)
    else:
        collection = load(named.path, qrels=named.qrels, ignore_unknown=True)
    if not (collection.qrels["grade"] > 0).any() or named.qrels == NO_QRELS:
        raise UserError(
            f"zero-shot collection {named.path}: no judgments (qrels); name them: {named.path},qrels=FILE"
        )
    if len(collection.sources) > 1 and options.reference in collection.sources:
        collection = reference_alone(collection, options.reference)
    run = Run.load(named.candidates) if named.candidates else run
    collection = _drawn(collection, options)
    if run is not None:
        Candidates.from_run(
            collection, run, "the training study"
        )  # refuses documents without a text
    return name, collection, run


def _ranked(
    name: str,
    kind: Kind,
    collection: Collection,
    rankers: Sequence[TrainedRanker],
    candidates: Run | None = None,
    *,
    work: Path,
    options: StudyOptions,
) -> Ranked:
    """Rank a collection with the first stage and with each ranker, and save the runs."""
    depth, training = options.depth, options.training
    if candidates is None:
        first = BM25(k=depth, text=training.text).rank(collection)
    else:
        first = _cut(candidates, collection, depth)
        depth = min(depth, int(np.diff(first.offsets).max(initial=1)))
    runs = {BASELINE: first}
    for one in rankers:
        runs[one.run] = _cross_encoder(work / "models" / _slug(one.run), training).rank(
            collection, first
        )
    for run, found in runs.items():
        found.save(work / "runs" / f"{_slug(name)}--{_slug(run)}.trec")
    return Ranked(name, kind, collection, runs, depth)


def _cut(run: Run, collection: Collection, depth: int) -> Run:
    """The best of each judged query, in the order of the run."""
    judged = collection.queries_with_judgments["id"].to_list()
    rows = run.frame().filter((pl.col("rank") <= depth) & pl.col("query_id").is_in(judged))
    return Run.from_frame(
        rows, queries=[query for query in judged if query in set(run.queries)], spec=run.spec
    )


def _first_stages(folder: str | Path, name: str, sources: Sequence[str]) -> Iterator[Ranked]:
    """BM25 on each side of each split that there is, all of its queries."""
    there = {path.name.partition(".")[0] for path in (Path(folder) / "qrels").glob("*.tsv*")}
    for split in (one for one in _SPLITS if one in there):
        whole = load(folder, split=split, ignore_unknown=True)
        for source in sources:
            alone = reference_alone(whole, source)
            if (alone.qrels["grade"] > 0).any():
                run = BM25(k=FULL).rank(alone)
                said = f"{name}-{split} ({source} responses)"
                yield Ranked(said, "first stage", alone, {BASELINE: run}, FULL, split, source)
