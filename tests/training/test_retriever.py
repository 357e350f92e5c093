"""Training a retriever: by any loss, across kills; and the constraint moves it to human text."""

import itertools
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ranktilt.auditing.audit import audit
from ranktilt.auditing.effects import Effect
from ranktilt.data.collection import Collection
from ranktilt.errors import UserError
from ranktilt.rankers.dense.retriever import Dense
from ranktilt.rankers.lexical.bm25 import BM25
from ranktilt.training.batches import EpochRows
from ranktilt.training.matched_negatives import TextProperties
from ranktilt.training.mining import EncodedTexts, Miner
from ranktilt.training.options import RetrieverTraining, TrainedModel
from ranktilt.training.retriever import LOSSES, parse_loss, score_scale, train_retriever
from ranktilt.training.training_set import TrainingSet, retriever_set
from tests.refusals import refused
from tests.toy import collection_of
from tests.training.material import WORDS, human_part, marked, marked_mix, stopped_at

pytestmark = pytest.mark.neural

QUICK = RetrieverTraining(
    steps=5,
    batch=8,
    max_query_tokens=8,
    max_document_tokens=16,
    rate=2e-3,
    precision="float32",
    depth=20,
)
"""A second of work with the tiny model; an epoch has 5 batches."""
BM = replace(QUICK, negatives="bm25", negatives_per_positive=2)


def train(
    body: Path,
    folder: Path,
    options: RetrieverTraining = QUICK,
    *,
    collection: Collection | None = None,
    dev: Collection | None = None,
    **changes: Any,
) -> TrainedModel:
    options = replace(options, **changes)
    return train_retriever(collection or marked(), body, folder, options=options, dev=dev)


def mean(model: Path, measure: str) -> float:
    """Of a dense model's ranking of the human documents."""
    human = human_part(marked())
    run = Dense(str(model), precision="float32").rank(human)
    return float(np.nanmean(audit(human, run, measure, by=None).values))


def test_it_learns_what_is_relevant(tiny: Path, tmp_path: Path) -> None:
    trained = train(tiny, tmp_path / "model", BM, steps=150)
    assert trained.figures["loss"][0] > 3 * trained.figures["loss"][-1]
    assert mean(tiny, "nDCG@3") < 0.7
    assert mean(trained.folder, "nDCG@3") > 0.95


def test_the_folder_is_a_model_of_sentence_transformers(tiny: Path, tmp_path: Path) -> None:
    library = pytest.importorskip("sentence_transformers")
    trained = train(tiny, tmp_path / "model", alpha=0.5)
    model = library.SentenceTransformer(str(trained.folder), device="cpu")
    assert (model.similarity_fn_name, model.max_seq_length) == ("cosine", 16)
    assert model.encode(["wab zz"]).shape == (1, 32)
    record = json.loads((trained.folder / "training.json").read_text())
    assert record == json.loads(json.dumps(trained.record))
    assert (
        record["spec"]
        | {
            "kind": "retriever",
            "alpha": 0.5,
            "variant": "paper",
            "loss": "MultipleNegativesRankingLoss",
            "negatives": "in-batch",
            "twin_source": "llm",
            "steps": 5,
        }
        == record["spec"]
    )
    assert record["figures"]["twins"] == record["figures"]["positives"] == 2 * len(WORDS)
    assert not (trained.folder / ".checkpoints").exists()


@pytest.mark.parametrize("variant", ["paper", "code"])
def test_the_first_loss_is_theirs(
    tiny: Path, tmp_path: Path, variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    from ranktilt.training import DebiasedLoss

    batches, columns_of = list[dict[str, list[Any]]](), EpochRows.columns
    monkeypatch.setattr(
        EpochRows,
        "columns",
        lambda rows, batch: batches.append(columns_of(rows, batch)) or batches[-1],
    )
    options = replace(
        BM,
        steps=1,
        rate=1e-9,
        alpha=0.25,
        variant=variant,
        loss="MultipleNegativesRankingLoss(scale=7)",
    )
    trained = train(tiny, tmp_path / "model", options)
    columns = list(batches[0].values())  # query, document, twin and two negatives
    twins = {
        doc["origin"]: doc["text"] for doc in marked().docs.to_dicts() if doc["source"] == "llm"
    }
    origin = {doc["text"]: doc["origin"] for doc in marked().docs.to_dicts()}
    assert columns[2] == [twins[origin[text]] for text in columns[1]]
    model = SentenceTransformer(str(tiny), device="cpu").eval()
    theirs = DebiasedLoss(
        model, MultipleNegativesRankingLoss(model, scale=7), alpha=0.25, variant=variant
    )
    expected = theirs([model.preprocess(texts) for texts in columns], None)
    assert trained.figures["loss"] == [pytest.approx(float(expected.detach()), abs=1e-4)]


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_is_learned_from_with_the_constraint(
    tiny: Path, tmp_path: Path, loss: str
) -> None:
    negatives = 1 if loss == "TripletLoss" else 2
    trained = train(
        tiny, tmp_path / "model", BM, loss=loss, alpha=0.1, negatives_per_positive=negatives
    )
    losses = trained.figures["loss"]
    assert np.isfinite(losses).all()
    assert losses[0] != losses[-1]


def test_a_loss_has_options_and_scores_a_scale(tiny: Path) -> None:
    name, options = (
        "CachedMultipleNegativesRankingLoss",
        {"scale": 20, "show_progress_bar": False, "kind": "x"},
    )
    assert parse_loss(f"{name}(scale=20, show_progress_bar=False,kind=x)") == (name, options)
    assert parse_loss("TripletLoss(triplet_margin=2.5)")[1] == {"triplet_margin": 2.5}
    library = pytest.importorskip("sentence_transformers")
    model, human = library.SentenceTransformer(str(tiny), device="cpu"), human_part(marked())
    texts = dict(zip(human.ids, human.texts(), strict=True))
    pairs = [(word, texts[f"{word}{n}-human"]) for word in WORDS for n in (0, 1)]
    queries, documents = (
        model.encode(list(side), normalize_embeddings=True) for side in zip(*pairs, strict=True)
    )
    assert score_scale(marked(), tiny, QUICK) == pytest.approx(
        np.abs((queries * documents).sum(axis=1)).mean(), abs=1e-5
    )


def test_the_same_seed_gives_the_same_weights_and_alpha_others(tiny: Path, tmp_path: Path) -> None:
    changes: list[dict[str, Any]] = [{}, {}, {"seed": 1}, {"alpha": 1.0}]
    folders = [
        train(tiny, tmp_path / str(n), **options).folder for n, options in enumerate(changes)
    ]
    first, same, seeded, constrained = (
        (folder / "model.safetensors").read_bytes() for folder in folders
    )
    assert first == same
    assert seeded != first != constrained


@pytest.mark.parametrize("negatives", ["bm25", "ann"])
def test_an_interrupted_training_goes_on(
    tiny: Path, tmp_path: Path, negatives: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ranktilt.training.callbacks.CHECKPOINT_EVERY", 0.0)
    options, folder = (
        replace(BM, negatives=negatives, alpha=0.5, steps=None, epochs=2),
        tmp_path / "model",
    )
    dev = marked_mix()
    with stopped_at(8, folder):
        train(tiny, folder, options, dev=dev)
    with pytest.raises(
        UserError, match=r"model: holds an unfinished training with alpha 0\.5, not 1\.0"
    ):
        train(tiny, folder, options, alpha=1.0, dev=dev)
    fewer = replace(marked(), qrels=marked().qrels.slice(3))
    with pytest.raises(UserError, match="holds an unfinished training with data '"):
        train(tiny, folder, options, dev=dev, collection=fewer)
    resumed = train(tiny, folder, options, dev=dev)
    assert (resumed.resumed, resumed.figures["steps"]) == (7, 10)
    assert len(resumed.figures["evaluations"]) == 2
    assert train(tiny, folder, options, dev=dev).resumed == 10, "nothing is left to do"
    if (
        negatives == "bm25"
    ):  # the other mines the begun epoch again, with the model as it is by then
        uninterrupted = train(tiny, tmp_path / "whole", options, dev=dev)
        expected = uninterrupted.figures["loss"]
        assert resumed.figures["loss"] == pytest.approx(expected, rel=1e-3)


def test_each_epoch_is_audited_and_the_best_one_kept(tiny: Path, tmp_path: Path) -> None:
    options = replace(
        QUICK, steps=None, epochs=40, rate=0.05
    )  # a rate that spoils the model, sooner or later
    trained = train(tiny, tmp_path / "model", options, patience=2, dev=marked_mix())
    evaluations = trained.figures["evaluations"]
    scores = [evaluation["dev_nDCG@10_human_only"] for evaluation in evaluations]
    best = int(np.argmax(scores))
    assert trained.figures["kept_evaluation"] == best + 1
    assert len(evaluations) == best + 3 < 40
    assert trained.figures["steps"] == 5 * len(evaluations)
    assert mean(trained.folder, "nDCG@10") == pytest.approx(scores[best], abs=1e-4)
    ends = ("", "_low", "_high")
    assert {f"dev_relative_delta_nDCG@10_llm{end}" for end in ends} <= evaluations[0].keys()


def test_a_batch_that_does_not_fit_is_made_smaller(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    rows, most, forward = list[int](), 2, MultipleNegativesRankingLoss.forward

    def limited(self: Any, features: Any, labels: Any = None) -> Any:
        features = list(features)
        rows.append(len(features[0]["input_ids"]))
        if rows[-1] > most:
            raise RuntimeError(
                "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate "
                "9 GB"
            )
        return forward(self, features, labels)

    monkeypatch.setattr(MultipleNegativesRankingLoss, "forward", limited)
    trained = train(tiny, tmp_path / "model", device="cpu", batch=4)
    assert rows[0] == 4
    assert set(rows[-5:]) == {trained.figures["batch"]} <= {1, 2}
    most = 0
    with pytest.raises(
        UserError,
        match=r"not even a batch of one row fits into memory; .* \(--set max_document_tokens=N\)",
    ):
        train(tiny, tmp_path / "other", device="cpu", batch=2)


TWO = ["w" + "".join(letters) for letters in itertools.permutations("abcdef", 2)]


def planted() -> Collection:
    """Both sides of each relevant document are judged; the last letter gives away who wrote it."""
    signs = {"human": "zz yy", "llm": "zz zz"}
    docs = [
        {
            "id": f"{word}{n}-{source}",
            "text": f"{word} {signs[source] if n < 2 else 'yy yy'} {'ghijkl'[n]} {source[0]}",
        }
        | {"source": source, "origin": f"{word}{n}-human"}
        for word, n, source in itertools.product(TWO, range(6), signs)
    ]
    grades = {f"q-{w}": {f"{w}{n}-{s}": 1 for n in range(2) for s in signs} for w in TWO}
    return collection_of(docs, {f"q-{word}": word for word in TWO}, grades)


@pytest.mark.long
def test_the_constraint_turns_a_planted_tilt_towards_human_text(tiny: Path, tmp_path: Path) -> None:
    """A model that learned from LLM texts alone favours them; a small weight levels it, a large one
    turns it over.
    """
    mixed = planted()
    base = train(
        tiny, tmp_path / "base", BM, batch=16, steps=120, sources=("llm",), collection=mixed
    ).folder

    def tilt(alpha: float) -> Effect:
        folder = tmp_path / f"alpha-{alpha:g}"
        train(base, folder, BM, batch=16, steps=60, rate=5e-4, alpha=alpha, collection=mixed)
        run = Dense(str(folder), precision="float32").rank(mixed)
        return audit(mixed, run, "nDCG@3", confounds=False).tilts[0]

    none, little, medium, much = (tilt(alpha) for alpha in (0.0, 0.1, 0.3, 1.0))
    assert none.high < 0
    assert none.value < little.value < medium.value < much.value
    assert little.low < 0 < little.high
    assert much.low > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"negatives": "bm26"},
            "unknown negatives of training 'bm26'; did you mean 'bm25'? (valid: in-batch, ",
        ),
        (
            {"loss": "TripletLoss:x"},
            "cannot read loss 'TripletLoss:x': expected Name(option=value,…)",
        ),
        (
            {"loss": "TripletLoss(margn=1)", "negatives": "bm25"},
            "train retriever: TripletLoss(margn=1): ",
        ),
        (
            {"loss": "TripletLoss", "negatives": "bm25", "negatives_per_positive": 2},
            "train retriever: TripletLoss takes",
        ),
        ({"loss": "CoSENTLoss"}, "unknown loss 'CoSENTLoss'"),
        ({"patience": 2}, "train retriever: patience needs dev queries to judge each epoch by"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    tiny: Path, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match="^" + re.escape(message)):
        train(tiny, tmp_path / "model", **options)
    assert list(tmp_path.iterdir()) == []


def test_models_that_cannot_be_trained_are_refused(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    pickled = shutil.copytree(
        tiny, tmp_path / "pickled", ignore=shutil.ignore_patterns("*.safetensors")
    )
    (pickled / "pytorch_model.bin").write_bytes(b"\x80\x04K\x01.")
    models = {
        "empty": tmp_path / "empty",
        "a server's model": Path("openai:ada"),
        "pickled": pickled,
    }
    for message, body in models.items():
        with pytest.raises(UserError, match=message):
            train(body, tmp_path / "model")
    assert not (tmp_path / "model").exists()


MINING = RetrieverTraining(negatives="bm25", negatives_per_positive=2, batch=8, depth=6)


def mined_from(collection: Collection | None = None) -> TrainingSet:
    return retriever_set(collection or marked(), RetrieverTraining())


def test_bm25s_best_without_what_is_relevant() -> None:
    learned = mined_from()
    run, names = BM25(k=6).rank(learned.subset).frame(), learned.subset.ids.to_list()
    mined = Miner(training_set=learned, options=MINING).mine()
    for query, rows, barred in zip(
        learned.subset.queries["id"], mined, learned.barred, strict=True
    ):
        ranked = [names.index(doc) for doc in run.filter(query_id=query)["doc_id"]]
        assert rows.tolist() == [row for row in ranked if row not in barred]
        assert len(rows) == 4


def random_vectors(learned: TrainingSet, seed: int) -> EncodedTexts:
    rng = np.random.default_rng(seed)
    shapes = (len(learned.queries), 8), (learned.subset.docs.height, 8)
    queries, documents = (rng.normal(size=shape).astype(np.float32) for shape in shapes)
    return EncodedTexts(queries=queries, documents=documents, cosine=False)


def test_ann_is_the_models_own_best_of_each_epoch() -> None:
    learned, seeds = mined_from(), iter((1, 2))
    miner = Miner(
        training_set=learned,
        options=RetrieverTraining(negatives="ann", depth=5),
        encode=lambda: random_vectors(learned, next(seeds)),
    )
    for epoch in (1, 2):
        mined = miner.mine()
        encoded = random_vectors(learned, epoch)
        for number, query in enumerate(encoded.queries):
            best = np.argsort(-(encoded.documents @ query), kind="stable")[:5]
            assert mined[number].tolist() == [d for d in best if d not in learned.barred[number]]


def test_each_positive_comes_once_with_negatives_of_its_query() -> None:
    learned = mined_from()
    rows, same, next_epoch = (
        Miner(training_set=learned, options=MINING).rows(epoch) for epoch in (0, 0, 1)
    )
    pairs = zip(rows.queries.tolist(), rows.documents[:, 0].tolist(), strict=True)
    assert sorted(pairs) == [
        (q, int(d)) for q, relevant in enumerate(learned.positives) for d in relevant
    ]
    for query, documents in zip(rows.queries, rows.documents[:, 1:], strict=True):
        assert not np.isin(documents, learned.barred[query]).any()
    assert (rows.documents == same.documents).all()
    assert (rows.documents != next_epoch.documents).any()
    in_batch = Miner(training_set=learned, options=RetrieverTraining()).rows(3)
    assert (in_batch.documents.shape, in_batch.labels) == ((40, 1), None)


def test_where_nothing_was_mined_any_other_document_is_a_negative() -> None:
    docs = [
        {"id": name, "text": text} for name, text in (("a", "apple"), ("b", "pear"), ("c", "plum"))
    ]
    learned = mined_from(
        collection_of(docs, {"q": "stone"}, {"q": {"a": 1}})
    )  # BM25 finds nothing for it
    options = RetrieverTraining(negatives="bm25", negatives_per_positive=8, batch=1)
    assert set(Miner(training_set=learned, options=options).rows(0).documents[0, 1:].tolist()) == {
        1,
        2,
    }
    every = mined_from(collection_of(docs[:1], {"q": "stone"}, {"q": {"a": 1}}))
    with pytest.raises(
        UserError, match="a query to which every document is relevant has no negatives"
    ):
        Miner(training_set=every, options=options).rows(0)


def test_the_nearest_are_matched_where_few_are_near() -> None:
    properties = TextProperties(
        names=("x", "y"),
        values=np.array([[0, 0], [0.1, 0.1], [0.3, 0], [2, 2], [-0.15, 0.05]]),
    )
    candidates = np.array([3, 2, 1, 4])
    assert properties.match(0, candidates, 2).tolist() == [1, 4]  # 0.2 or less away in both
    assert properties.match(0, candidates, 3).tolist() == [1, 4, 2]  # squares .02, .025, .09, 8
    assert properties.imbalance(np.array([[0, 1, 3], [4, 2, 2]])) == pytest.approx(
        {"x": -0.75, "y": -0.5}
    )


def test_controlled_negatives_are_like_their_positive(tiny: Path, tmp_path: Path) -> None:
    """Relevant texts are of common words; of BM25's best, half are as common, half of words that
    occur once.
    """
    filler = "all of the same plain words"
    docs, grades = list[dict[str, str]](), dict[str, dict[str, int]]()
    for query in WORDS[:4]:
        grades[f"q-{query}"] = {f"{query}0": 1}
        docs += [{"id": f"{query}{n}", "text": f"{query} {filler} {n % 2}"} for n in range(6)]
        rare = (" ".join(f"{query}x{n}x{i}" for i in range(6)) for n in range(6))
        docs += [
            {"id": f"{query}rare{n}", "text": f"{query} {text}"} for n, text in enumerate(rare)
        ]
    collection = collection_of(docs, {f"q-{query}": query for query in WORDS[:4]}, grades)
    trained = train(
        tiny, tmp_path / "m", BM, negatives="controlled", steps=1, collection=collection
    )
    matched, unmatched = (trained.figures["imbalance"][name] for name in ("matched", "unmatched"))
    assert abs(matched["specificity"]) < 0.2 < 0.5 < -unmatched["specificity"]
    assert abs(matched["perplexity"]) < 0.2 < 0.5 < -unmatched["perplexity"]
    learned = retriever_set(collection, RetrieverTraining())
    drawn = (
        Miner(training_set=learned, options=replace(BM, negatives="controlled")).rows(0).documents
    )
    assert not any("rare" in name for name in learned.subset.ids.gather(drawn.ravel()))


def test_one_pair_has_no_negatives_in_its_batch(tiny: Path, tmp_path: Path) -> None:
    collection = marked()
    single_pair = Collection(
        collection.docs, collection.queries, collection.qrels.filter(pl.col("grade") > 0).head(1)
    )
    with refused(
        "train retriever: negatives=in-batch belong to other relevant documents, and there is "
        "only one; …"
    ):
        train_retriever(
            single_pair, tiny, tmp_path / "model", options=replace(QUICK, negatives="in-batch")
        )
