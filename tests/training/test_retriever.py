"""Training a retriever: by any loss, across kills; and the constraint moves it to human text."""

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktilt.auditing.audit import audit
from ranktilt.auditing.effects import Effect
from ranktilt.collection import Collection
from ranktilt.errors import UserError
from ranktilt.progress import listening
from ranktilt.rankers.dense.retriever import Dense
from ranktilt.training.batches import EpochRows
from ranktilt.training.options import RetrieverTraining, Trained
from ranktilt.training.retriever import TAUGHT, parse_loss, score_scale, train_retriever
from ranktilt.training.trainer import CHECKPOINTS
from ranktilt.training.training_set import of_sources
from tests.house.tree import ROOT
from tests.refusals import refused
from tests.toy import collection_of
from tests.training.material import WORDS, marked
from tests.training.test_mining import Contrary

pytestmark = pytest.mark.neural

QUICK = RetrieverTraining(
    steps=5, batch=8, max_query_tokens=8, max_document_tokens=16, rate=2e-3, precision="float32", depth=20
)
"""A second of work with the tiny model; an epoch has 5 batches."""
BM = replace(QUICK, mine="bm25", negatives_per_positive=2)


def train(body: Path, folder: Path, options: RetrieverTraining = QUICK, **more: Any) -> Trained:
    given = {name: more.pop(name) for name in ("teacher", "dev") if name in more}
    collection = more.pop("collection", None) or marked()
    return train_retriever(collection, body, folder, options=replace(options, **more), **given)


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def test_it_learns_what_is_relevant(tiny: Path, tmp_path: Path) -> None:
    trained = train(tiny, tmp_path / "model", BM, steps=150)
    assert trained.figures["loss"][0] > 3 * trained.figures["loss"][-1]
    human = marked()
    human = Collection(human.docs.filter(human.docs["source"] == "human"), human.queries, human.qrels)
    before, after = (
        float(np.nanmean(audit(human, Dense(str(one), k=10).rank(human), "nDCG@3", by=None).values))
        for one in (tiny, tmp_path / "model")
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
    said = {name: record["spec"][name] for name in names}
    assert said == {
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


@pytest.mark.parametrize("loss", TAUGHT)
def test_every_loss_is_learned_from_with_the_constraint(tiny: Path, tmp_path: Path, loss: str) -> None:
    taught = TAUGHT[loss]
    asked = replace(
        BM,
        loss=loss,
        alpha=0.1,
        negatives_per_positive=1 if loss == "TripletLoss" else 2,
        mine="cross" if taught else "bm25",
    )
    trained = train(tiny, tmp_path / "model", asked, teacher=Contrary() if taught else None)
    assert np.isfinite(trained.figures["loss"]).all()
    assert weights(trained.folder) != weights(tiny)


def test_options_of_a_loss() -> None:
    assert parse_loss("CachedMultipleNegativesRankingLoss(scale=20, mini_batch_size=4, show_progress_bar=False)") == (
        "CachedMultipleNegativesRankingLoss", {"scale": 20, "mini_batch_size": 4, "show_progress_bar": False},
    )  # fmt: skip
    assert parse_loss("MarginMSELoss(scale=2.5,kind=x)")[1] == {"scale": 2.5, "kind": "x"}


def test_the_same_seed_gives_the_same_weights_and_alpha_others(tiny: Path, tmp_path: Path) -> None:
    first = weights(train(tiny, tmp_path / "one").folder)
    assert weights(train(tiny, tmp_path / "two").folder) == first
    assert weights(train(tiny, tmp_path / "three", seed=1).folder) != first
    assert weights(train(tiny, tmp_path / "four", alpha=1.0).folder) != first


def stop_at(step: int, body: Path, folder: Path, options: RetrieverTraining, **more: Any) -> None:
    def listener(label: str, done: int, total: int) -> None:
        if label.endswith(folder.name) and done == step:
            raise KeyboardInterrupt

    with listening(listener), pytest.raises(KeyboardInterrupt):
        train(body, folder, options, **more)


@pytest.mark.parametrize("mine", ["bm25", "ann"])
def test_an_interrupted_training_goes_on(
    tiny: Path, tmp_path: Path, mine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ranktilt.training.callbacks.CHECKPOINT_EVERY", 0.0)
    asked = replace(BM, mine=mine, alpha=0.5, steps=None, epochs=2)
    dev = marked_mix()
    stop_at(8, tiny, tmp_path / "model", asked, dev=dev)
    said = mistake(lambda: train(tiny, tmp_path / "model", replace(asked, alpha=1.0), dev=dev))
    assert said.startswith(f"{tmp_path / 'model'}: holds an unfinished training with alpha 0.5, asked is 1.0")
    full = marked()
    fewer = Collection(full.docs, full.queries, full.qrels.slice(3))
    said = mistake(lambda: train(tiny, tmp_path / "model", asked, dev=dev, collection=fewer))
    assert "holds an unfinished training with data '" in said
    resumed = train(tiny, tmp_path / "model", asked, dev=dev)
    assert (resumed.resumed, resumed.figures["steps"]) == (7, 10)
    assert len(resumed.figures["evaluations"]) == 2
    if mine == "bm25":  # the other mines the begun epoch again, with the model as it is by then
        whole = train(tiny, tmp_path / "whole", asked, dev=dev)
        assert resumed.figures["loss"] == pytest.approx(whole.figures["loss"], rel=1e-3)


SCRIPT = """
import sys
from dataclasses import replace
from ranktilt.training import callbacks
from ranktilt.training.retriever import train_retriever
from tests.training.material import marked
from tests.training.test_retriever import BM
callbacks.CHECKPOINT_EVERY = 0.0
options = replace(BM, alpha=0.5, steps=40)
train_retriever(marked(), sys.argv[1], sys.argv[2], options=options)
"""


@pytest.mark.long
def test_three_kills_lose_nothing(tiny: Path, tmp_path: Path) -> None:
    """A kill -9 at any moment, also while a checkpoint is written, leaves one from which the next run goes on."""
    kills, checkpoints = 0, tmp_path / "model" / CHECKPOINTS
    command = [sys.executable, "-c", SCRIPT, str(tiny), str(tmp_path / "model")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    for pause in (0.0, 0.013, 0.037):
        before = {path.name for path in checkpoints.glob("*")}
        process = subprocess.Popen(command, env=environment)
        while process.poll() is None and {path.name for path in checkpoints.glob("*")} <= before:
            time.sleep(0.002)
        time.sleep(pause)
        process.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
    assert kills == 3
    subprocess.run(command, env=environment, check=True)
    record = json.loads((tmp_path / "model" / "training.json").read_text())
    assert record["figures"]["steps"] == 40
    whole = train(tiny, tmp_path / "whole", BM, alpha=0.5, steps=40)
    assert record["figures"]["loss"] == pytest.approx(whole.figures["loss"], rel=1e-2)
    names = [{str(p.relative_to(tmp_path / side)) for p in (tmp_path / side).rglob("*")} for side in ("model", "whole")]
    assert names[0] == names[1]


def marked_mix() -> Collection:
    """The same with both sides judged, as an audit needs it."""
    both = marked()
    docs = both.docs.to_dicts()
    qrels = {f"q-{word}": {d["id"]: 1 for d in docs if re.match(rf"{word}[01]-", d["id"])} for word in WORDS}
    return collection_of(docs, dict(both.queries.select("id", "text").iter_rows()), qrels)


def test_each_epoch_is_audited_and_the_best_one_kept(tiny: Path, tmp_path: Path) -> None:
    asked = replace(QUICK, steps=None, epochs=40, rate=0.05)  # a rate that spoils the model, sooner or later
    patient = train(tiny, tmp_path / "patient", asked, patience=2, dev=marked_mix())
    found = patient.figures["evaluations"]
    scores = [one["dev_nDCG@10_human_only"] for one in found]
    best = int(np.argmax(scores))
    assert patient.figures["kept_evaluation"] == best + 1
    assert len(found) == best + 3 < 40
    assert patient.figures["steps"] == 5 * len(found)
    human = of_sources(marked_mix(), ["human"])
    run = Dense(str(patient.folder), precision="float32").rank(human)
    kept = float(np.nanmean(audit(human, run, "nDCG@10", by=None).values))
    assert kept == pytest.approx(scores[best], abs=1e-4)
    assert {f"dev_relative_delta_nDCG@10_llm{end}" for end in ("", "_low", "_high")} <= found[0].keys()


def test_a_batch_that_does_not_fit_is_made_smaller(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    tried, most, keep = list[int](), 5, MultipleNegativesRankingLoss.forward

    def forward(self: Any, features: Any, labels: Any = None) -> Any:
        features = list(features)
        tried.append(len(features[0]["input_ids"]))
        if tried[-1] > most:
            raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 GB")
        return keep(self, features, labels)

    monkeypatch.setattr(MultipleNegativesRankingLoss, "forward", forward)
    trained = train(tiny, tmp_path / "model", device="cpu")
    assert tried[0] == 8
    assert set(tried[-5:]) == {trained.figures["batch"]}
    assert trained.figures["batch"] <= 5
    most = 0
    with refused(
        "train retriever: not even a batch of one row fits into memory; cut documents earlier (--max-document-tokens)"
    ):
        train(tiny, tmp_path / "other", device="cpu")


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


def mistake(action: Callable[[], object]) -> str:
    with pytest.raises(UserError) as caught:
        action()
    return str(caught.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mine": "bm26"}, "unknown mine of training 'bm26'; did you mean 'bm25'? (valid: in-batch, bm25, ann, cross)"),
        ({"loss": "TripletLoss:x"}, "cannot read loss 'TripletLoss:x': expected Name(option=value,…)"),
        ({"loss": "TripletLoss(margn=1)", "mine": "bm25"}, "train retriever: TripletLoss(margn=1): "),
        (
            {"loss": "TripletLoss", "mine": "bm25", "negatives_per_positive": 2},
            "train retriever: TripletLoss takes one mined negative a row",
        ),
        ({"loss": "CoSENTLoss"}, "unknown loss 'CoSENTLoss'"),
        ({"loss": "MarginMSELoss", "mine": "bm25"}, "train retriever: MarginMSELoss learns from a teacher's scores;"),
        ({"mine": "cross"}, "train retriever: mine=cross needs a teacher (a cross-encoder, as a ranker), and no other"),
        ({"patience": 2}, "train retriever: patience needs dev queries to judge each epoch by"),
    ],
)
def test_mistakes_are_refused_before_any_work(tiny: Path, tmp_path: Path, options: dict[str, Any], said: str) -> None:
    assert mistake(lambda: train(tiny, tmp_path / "model", **options)).startswith(said)
    assert list(tmp_path.iterdir()) == []


def test_models_that_cannot_be_trained(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "empty" in mistake(lambda: train(tmp_path / "empty", tmp_path / "model"))
    assert "a server's model" in mistake(lambda: train(Path("openai:ada"), tmp_path / "model"))
    pickled = tmp_path / "pickled"
    pickled.mkdir()
    for file in tiny.glob("*.json"):
        (pickled / file.name).write_bytes(file.read_bytes())
    (pickled / "pytorch_model.bin").write_bytes(b"\\x80\\x04K\\x01.")
    assert "pickled" in mistake(lambda: train(pickled, tmp_path / "model"))
    assert not (tmp_path / "model").exists()
