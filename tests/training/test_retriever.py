"""Training a retriever: by any loss, across kills; and the constraint moves it to human text."""

import itertools
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktilt.auditing.audit import audit
from ranktilt.auditing.effects import Effect
from ranktilt.collection import Collection
from ranktilt.errors import UserError
from ranktilt.rankers.dense.retriever import Dense
from ranktilt.training.batches import EpochRows
from ranktilt.training.options import RetrieverTraining, Trained
from ranktilt.training.retriever import LOSSES, parse_loss, score_scale, train_retriever
from tests.toy import collection_of
from tests.training.material import WORDS, human_part, marked, marked_mix, stopped_at

pytestmark = pytest.mark.neural

QUICK = RetrieverTraining(
    steps=5, batch=8, max_query_tokens=8, max_document_tokens=16, rate=2e-3, precision="float32", depth=20
)
"""A second of work with the tiny model; an epoch has 5 batches."""
BM = replace(QUICK, mine="bm25", negatives_per_positive=2)


def train(body: Path, folder: Path, options: RetrieverTraining = QUICK, **more: Any) -> Trained:
    given = {name: more.pop(name) for name in ("dev",) if name in more}
    collection = more.pop("collection", None) or marked()
    return train_retriever(collection, body, folder, options=replace(options, **more), **given)


def test_it_learns_what_is_relevant(tiny: Path, tmp_path: Path) -> None:
    trained = train(tiny, tmp_path / "model", BM, steps=150)
    assert trained.figures["loss"][0] > 3 * trained.figures["loss"][-1]
    human = human_part(marked())
    before, after = (
        float(np.nanmean(audit(human, Dense(str(model), k=10).rank(human), "nDCG@3", by=None).values))
        for model in (tiny, tmp_path / "model")
    )
    assert before < 0.7
    assert after > 0.95


def test_the_folder_is_a_model_of_sentence_transformers(tiny: Path, tmp_path: Path) -> None:
    library = pytest.importorskip("sentence_transformers")
    trained = train(tiny, tmp_path / "model", alpha=0.5)
    model = library.SentenceTransformer(str(trained.folder), device="cpu")
    assert (model.similarity_fn_name, model.max_seq_length) == ("cosine", 16)
    assert model.encode(["wab zz"]).shape == (1, 32)
    record = json.loads((trained.folder / "training.json").read_text())
    assert record == json.loads(json.dumps(trained.record))
    names = ("kind", "alpha", "variant", "loss", "mine", "twin_source", "steps")
    assert {name: record["spec"][name] for name in names} == {
        "kind": "retriever", "alpha": 0.5, "variant": "paper", "loss": "MultipleNegativesRankingLoss",
        "mine": "in-batch", "twin_source": "llm", "steps": 5,
    }  # fmt: skip
    assert record["figures"]["twins"] == record["figures"]["positives"] == 2 * len(WORDS)
    assert not (trained.folder / ".checkpoints").exists()


@pytest.mark.parametrize("variant", ["paper", "code"])
def test_the_first_loss_is_that_of_sentence_transformers(tiny: Path, tmp_path: Path, variant: str) -> None:
    pytest.importorskip("torch")
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    from ranktilt.training import DebiasedLoss

    asked = replace(BM, steps=1, rate=1e-9, alpha=0.25, variant=variant, loss="MultipleNegativesRankingLoss(scale=7)")
    columns: list[list[str]] = []
    keep = EpochRows.columns

    def seen(self: EpochRows, batch: dict[str, list[int]]) -> dict[str, list[Any]]:
        found = keep(self, batch)
        columns.extend(found.values())
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EpochRows, "columns", seen)
        trained = train(tiny, tmp_path / "model", asked)
    columns = columns[:5]  # query, document, twin and two negatives of the first batch
    twins = {doc["origin"]: doc["text"] for doc in marked().docs.to_dicts() if doc["source"] == "llm"}
    origin = {doc["text"]: doc["origin"] for doc in marked().docs.to_dicts()}
    assert columns[2] == [twins[origin[text]] for text in columns[1]]
    model = SentenceTransformer(str(tiny), device="cpu").eval()
    theirs = DebiasedLoss(model, MultipleNegativesRankingLoss(model, scale=7), alpha=0.25, variant=variant)
    expected = theirs([model.preprocess(texts) for texts in columns], None)
    assert trained.figures["loss"] == [pytest.approx(float(expected.detach()), abs=1e-4)]


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_is_learned_from_with_the_constraint(tiny: Path, tmp_path: Path, loss: str) -> None:
    asked = replace(BM, loss=loss, alpha=0.1, negatives_per_positive=1 if loss == "TripletLoss" else 2)
    trained = train(tiny, tmp_path / "model", asked)
    losses = trained.figures["loss"]
    assert np.isfinite(losses).all()
    assert losses[0] != losses[-1]


def test_options_of_a_loss() -> None:
    assert parse_loss("CachedMultipleNegativesRankingLoss(scale=20, mini_batch_size=4, show_progress_bar=False)") == (
        "CachedMultipleNegativesRankingLoss", {"scale": 20, "mini_batch_size": 4, "show_progress_bar": False},
    )  # fmt: skip
    assert parse_loss("TripletLoss(triplet_margin=2.5,kind=x)")[1] == {"triplet_margin": 2.5, "kind": "x"}


def test_the_same_seed_gives_the_same_weights_and_alpha_others(tiny: Path, tmp_path: Path) -> None:
    changes: list[dict[str, Any]] = [{}, {}, {"seed": 1}, {"alpha": 1.0}]
    folders = [train(tiny, tmp_path / str(n), **options).folder for n, options in enumerate(changes)]
    first, same, seeded, constrained = ((folder / "model.safetensors").read_bytes() for folder in folders)
    assert first == same
    assert seeded != first != constrained


@pytest.mark.parametrize("mine", ["bm25", "ann"])
def test_an_interrupted_training_goes_on(
    tiny: Path, tmp_path: Path, mine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ranktilt.training.callbacks.CHECKPOINT_EVERY", 0.0)
    asked = replace(BM, mine=mine, alpha=0.5, steps=None, epochs=2)
    dev = marked_mix()
    with stopped_at(8, tmp_path / "model"):
        train(tiny, tmp_path / "model", asked, dev=dev)
    with pytest.raises(UserError, match=r"model: holds an unfinished training with alpha 0\.5, not 1\.0"):
        train(tiny, tmp_path / "model", replace(asked, alpha=1.0), dev=dev)
    fewer = replace(marked(), qrels=marked().qrels.slice(3))
    with pytest.raises(UserError, match="holds an unfinished training with data '"):
        train(tiny, tmp_path / "model", asked, dev=dev, collection=fewer)
    resumed = train(tiny, tmp_path / "model", asked, dev=dev)
    assert (resumed.resumed, resumed.figures["steps"]) == (7, 10)
    assert len(resumed.figures["evaluations"]) == 2
    assert train(tiny, tmp_path / "model", asked, dev=dev).resumed == 10, "nothing is left to do"
    if mine == "bm25":  # the other mines the begun epoch again, with the model as it is by then
        whole = train(tiny, tmp_path / "whole", asked, dev=dev)
        assert resumed.figures["loss"] == pytest.approx(whole.figures["loss"], rel=1e-3)


def test_each_epoch_is_audited_and_the_best_one_kept(tiny: Path, tmp_path: Path) -> None:
    asked = replace(QUICK, steps=None, epochs=40, rate=0.05)  # a rate that spoils the model, sooner or later
    patient = train(tiny, tmp_path / "patient", asked, patience=2, dev=marked_mix())
    found = patient.figures["evaluations"]
    scores = [one["dev_nDCG@10_human_only"] for one in found]
    best = int(np.argmax(scores))
    assert patient.figures["kept_evaluation"] == best + 1
    assert len(found) == best + 3 < 40
    assert patient.figures["steps"] == 5 * len(found)
    human = human_part(marked_mix())
    run = Dense(str(patient.folder), precision="float32").rank(human)
    kept = float(np.nanmean(audit(human, run, "nDCG@10", by=None).values))
    assert kept == pytest.approx(scores[best], abs=1e-4)
    assert {f"dev_relative_delta_nDCG@10_llm{end}" for end in ("", "_low", "_high")} <= found[0].keys()


def test_a_batch_that_does_not_fit_is_made_smaller(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    tried, most, keep = list[int](), 2, MultipleNegativesRankingLoss.forward

    def forward(self: Any, features: Any, labels: Any = None) -> Any:
        features = list(features)
        tried.append(len(features[0]["input_ids"]))
        if tried[-1] > most:
            raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 GB")
        return keep(self, features, labels)

    monkeypatch.setattr(MultipleNegativesRankingLoss, "forward", forward)
    trained = train(tiny, tmp_path / "model", device="cpu", batch=4)
    assert tried[0] == 4
    assert set(tried[-5:]) == {trained.figures["batch"]}
    assert trained.figures["batch"] <= 2
    most = 0
    with pytest.raises(UserError, match=r"not even a batch of one row fits into memory; .* \(--max-document-tokens\)"):
        train(tiny, tmp_path / "other", device="cpu", batch=2)


def test_the_scale_of_scores(tiny: Path) -> None:
    library = pytest.importorskip("sentence_transformers")
    model = library.SentenceTransformer(str(tiny), device="cpu")
    pairs = [(word, doc["text"]) for word in WORDS for doc in marked().docs.to_dicts() if re.match(
        rf"{word}[01]-human", doc["id"]
    )]  # fmt: skip
    vectors = [model.encode(list(side), normalize_embeddings=True) for side in zip(*pairs, strict=True)]
    expected = np.abs((vectors[0] * vectors[1]).sum(axis=1)).mean()
    assert score_scale(marked(), tiny, QUICK) == pytest.approx(expected, abs=1e-5)


TWO = ["w" + "".join(letters) for letters in itertools.permutations("abcdef", 2)]


def planted() -> Collection:
    """Both sides of each relevant document are judged; the last letter gives away who wrote it."""
    signs = {"human": "zz yy", "llm": "zz zz"}
    docs = [
        {"id": f"{word}{n}-{source}", "text": f"{word} {signs[source] if n < 2 else 'yy yy'} {'ghijkl'[n]} {source[0]}"}
        | {"source": source, "origin": f"{word}{n}-human"}
        for word, n, source in itertools.product(TWO, range(6), ("human", "llm"))
    ]
    grades = {f"q-{w}": {f"{w}{n}-{s}": 1 for n in range(2) for s in ("human", "llm")} for w in TWO}
    return collection_of(docs, {f"q-{word}": word for word in TWO}, grades)


@pytest.mark.long
def test_the_constraint_turns_a_planted_tilt_towards_human_text(tiny: Path, tmp_path: Path) -> None:
    """A model that learned from LLM texts alone favours them; a small weight levels it, a large one turns it over."""
    mixed = planted()
    asked = replace(BM, batch=16, steps=120)
    train_retriever(mixed, tiny, tmp_path / "base", options=replace(asked, sources=("llm",)))

    def tilt(alpha: float) -> Effect:
        folder = tmp_path / f"alpha-{alpha:g}"
        train_retriever(mixed, tmp_path / "base", folder, options=replace(asked, alpha=alpha, steps=60, rate=5e-4))
        run = Dense(str(folder), precision="float32").rank(mixed)
        return audit(mixed, run, "nDCG@3", confounds=False).tilts[0]

    none, little, some, much = (tilt(alpha) for alpha in (0.0, 0.1, 0.3, 1.0))
    assert none.high < 0
    assert none.value < little.value < some.value < much.value
    assert little.low < 0 < little.high
    assert much.low > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mine": "bm26"}, "unknown mine of training 'bm26'; did you mean 'bm25'? (valid: in-batch, bm25, ann)"),
        ({"loss": "TripletLoss:x"}, "cannot read loss 'TripletLoss:x': expected Name(option=value,…)"),
        ({"loss": "TripletLoss(margn=1)", "mine": "bm25"}, "train retriever: TripletLoss(margn=1): "),
        ({"loss": "TripletLoss", "mine": "bm25", "negatives_per_positive": 2}, "train retriever: TripletLoss takes"),
        ({"loss": "CoSENTLoss"}, "unknown loss 'CoSENTLoss'"),
        ({"patience": 2}, "train retriever: patience needs dev queries to judge each epoch by"),
    ],
)
def test_options_that_do_not_fit_are_refused(tiny: Path, tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match="^" + re.escape(message)):
        train(tiny, tmp_path / "model", **options)
    assert list(tmp_path.iterdir()) == []


def test_models_that_cannot_be_trained_are_refused(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    pickled = shutil.copytree(tiny, tmp_path / "pickled", ignore=shutil.ignore_patterns("*.safetensors"))
    (pickled / "pytorch_model.bin").write_bytes(b"\\x80\\x04K\\x01.")
    bodies = {"empty": tmp_path / "empty", "a server's model": Path("openai:ada"), "pickled": pickled}
    for message, body in bodies.items():
        with pytest.raises(UserError, match=message):
            train(body, tmp_path / "model")
    assert not (tmp_path / "model").exists()
