"""Training a cross-encoder: it learns by the loss that it says, and goes on after an
interruption.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ranktilt.data.files import sha256
from ranktilt.data.loading.assemble import unjudged_collection
from ranktilt.data.loading.load import load
from ranktilt.errors import UserError
from ranktilt.training.batches import BatchSampler, EpochRows, Rows
from ranktilt.training.cross_encoder import epoch_rows, train_cross_encoder
from ranktilt.training.model import cut_texts, disable_dropout, new_cross_encoder, require_encoder
from ranktilt.training.options import RerankerTraining, TrainedModel
from ranktilt.training.trainer import last_checkpoint
from ranktilt.training.training_set import TrainingSet, reranker_set
from tests.rankers.tiny import with_weights, write_json
from tests.rankers.tiny_rerankers import change
from tests.refusals import refused
from tests.toy import no_room, write
from tests.training.material import QUICK, WORDS, marked, marked_folder, stopped_at

pytestmark = pytest.mark.neural


def train(body: Path, folder: Path, options: RerankerTraining = QUICK, **more: Any) -> TrainedModel:
    return train_cross_encoder(
        more.pop("collection", None) or marked(), body, folder, options=replace(options, **more)
    )


def test_the_loss_falls_and_the_record_says_how_it_was_made(tiny: Path, tmp_path: Path) -> None:
    data = marked_folder(tmp_path / "data")
    learned = train(tiny, tmp_path / "model", steps=60, collection=load(data, split="train"))
    record = json.loads((learned.folder / "training.json").read_text())
    assert record == json.loads(json.dumps(learned.record))
    assert record["base_model"] == str(tiny)
    assert (
        record["spec"]
        | {
            "kind": "cross-encoder",
            "steps": 60,
            "negatives_per_positive": 3,
            "seed": 0,
            "precision": "float32",
            "device": None,
        }
        == record["spec"]
    )
    figures = {
        "steps": 60,
        "queries": len(WORDS),
        "positives": 2 * len(WORDS),
        "pairs": 60 * 8,
        "epochs": 3.0,
    }
    assert (
        record["figures"] | figures == record["figures"]
    )  # 40 positives make 20 batches of 2 groups of 4
    assert set(record["packages"]) == {
        "torch",
        "transformers",
        "sentence-transformers",
        "accelerate",
    }
    origin = record["collection"]
    assert (origin["path"], origin["split"], len(origin["files"])) == (str(data), "train", 3)
    assert origin["files"][str(data / "qrels" / "train.tsv")] == sha256(
        data / "qrels" / "train.tsv"
    )
    losses = learned.figures["loss"]
    assert len(losses) == 20
    assert losses[0] > 0.2
    assert max(losses[-5:]) < 0.02


@pytest.mark.parametrize("loss", ["softmax", "binary"])
@pytest.mark.parametrize("alpha", [0.0, 2.0])
def test_the_first_loss_by_hand(tiny: Path, tmp_path: Path, loss: str, alpha: float) -> None:
    """Of a choice in each group, or of each pair; and α times the logits by which twins exceed
    their originals.
    """
    library = pytest.importorskip("sentence_transformers")
    options = replace(QUICK, steps=1, rate=1e-12, loss=loss, alpha=alpha)
    trained = train(tiny, tmp_path / "model", options)
    model = library.CrossEncoder(str(trained.folder), device="cpu")
    rows = epoch_rows(reranker_set(marked(), options), options, model.tokenizer)
    batch = next(iter(BatchSampler(rows=rows, sampler=None, batch_size=options.rows_per_batch)))
    columns = rows.columns({"row": batch})

    def scores(name: str) -> Any:
        pairs = list(zip(columns["query"], columns[name], strict=True))
        return model.predict(pairs, show_progress_bar=False).astype(np.float64)

    human = scores("document")
    if loss == "binary":
        assert len(batch) == 8  # pairs of any query
        expected = np.log1p(np.exp(np.where(columns["label"], -human, human))).mean()
    else:
        every = np.stack([human, *(scores(f"negative{n}") for n in (1, 2, 3))])
        expected = (np.log(np.exp(every).sum(axis=0)) - every[0]).mean()
    if alpha:
        has = np.array([bool(text) for text in columns["twin"]])
        assert has.tolist() == (
            [label == 1 for label in columns["label"]] if loss == "binary" else [True, True]
        )
        expected += alpha * np.maximum(scores("twin") - human, 0)[has].sum()
    assert trained.figures["loss"] == [pytest.approx(expected, abs=2e-4)]


def test_minutes_end_a_training_nan_is_an_error_and_nothing_to_learn_writes_nothing(
    tiny: Path, tmp_path: Path
) -> None:
    timed = train(tiny, tmp_path / "timed", steps=None, minutes=0.02)
    assert timed.figures["steps"] > 0
    assert timed.figures["seconds"] >= 1.2
    with pytest.raises(
        UserError, match=r"the loss is NaN or infinite at step \d+; choose a lower rate than 1e\+30"
    ):
        train(tiny, tmp_path / "model", rate=1e30)
    assert list((tmp_path / "model").iterdir()) == []  # nothing is left that would bar another rate
    assert train(tiny, tmp_path / "model", rate=1e-3, steps=1).figures["steps"] == 1
    with pytest.raises(UserError, match="no document of source 'llm' is judged relevant"):
        train(tiny, tmp_path / "other", sources=("llm",))
    assert not (tmp_path / "other").exists()


@pytest.mark.long
def test_an_interrupted_training_goes_on(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ranktilt.training.callbacks.CHECKPOINT_EVERY", 0.0)
    folder, options = tmp_path / "model", replace(QUICK, dropout=True)
    with stopped_at(3, folder):
        train(tiny, folder, options)
    assert not (folder / "model.safetensors").exists()
    with pytest.raises(UserError, match="holds an unfinished training with seed 0, not 1"):
        train(tiny, folder, options, seed=1)
    with no_room(50_000), pytest.raises(UserError, match=f"^{folder}: the training cannot go on: "):
        train(tiny, folder, options)
    resumed = train(tiny, folder, options)
    uninterrupted = train(tiny, tmp_path / "whole", options)
    assert (resumed.resumed, resumed.figures["steps"], resumed.figures["pairs"]) == (2, 6, 48)
    assert resumed.figures["loss"] == pytest.approx(uninterrupted.figures["loss"], abs=1e-3)
    assert not (folder / ".checkpoints").exists()
    written = (folder / "model.safetensors").stat().st_mtime_ns
    again = train(tiny, folder, options)
    assert (again.resumed, again.record) == (6, json.loads(json.dumps(resumed.record)))
    assert (folder / "model.safetensors").stat().st_mtime_ns == written


Changed = Callable[..., Path]


@pytest.fixture
def changed(tiny: Path, tmp_path: Path) -> Changed:
    """Copy the tiny encoder with files taken away, or with other values in a JSON file."""

    def copy(*gone: str, file: str = "config.json", **values: object) -> Path:
        folder = shutil.copytree(tiny, tmp_path / "body")
        for name in gone:
            (folder / name).unlink()
        if values:
            change(folder / file, **values)
        return folder

    return copy


def new_model(folder: Path, seed: int = 0) -> Any:
    return new_cross_encoder(*require_encoder(str(folder), 10, 11), seed)


def test_an_encoder_gets_a_head_of_one_number_drawn_from_the_seed_and_no_dropout(
    changed: Changed,
) -> None:
    folder = changed(hidden_dropout_prob=0.3, attention_probs_dropout_prob=0.2)
    model = new_model(folder)
    assert (model.num_labels, model.max_seq_length) == (1, 24)
    assert {str(weight.dtype) for weight in model.parameters()} == {"torch.float32"}
    first, same, reseeded = (new_model(folder, seed).state_dict() for seed in (0, 0, 1))
    assert all((first[name] == same[name]).all() for name in first)
    drawn = {
        name.rpartition("model.")[2] for name in first if (first[name] != reseeded[name]).any()
    }
    assert drawn == {"classifier.weight"}
    pairs = model.train().preprocess([("a b", "c d")])
    assert (model(dict(pairs))["scores"] != model(dict(pairs))["scores"]).any()
    disable_dropout(model)
    assert (model(dict(pairs))["scores"] == model(dict(pairs))["scores"]).all()


def test_texts_are_cut_at_tokens_limits_count_special_ones_and_an_encoder_is_found(
    tiny: Path, tmp_path: Path
) -> None:
    tokenizer = new_model(tiny).tokenizer
    assert cut_texts(tokenizer, 3, ["ab cd ef", "ab", "", "a-b  c", "abcd"]) == [
        "ab c",
        "ab",
        "",
        "a-b",
        "abc",
    ]
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("abc d-1."), size)) for size in rng.integers(0, 40, 200)]
    shortened = cut_texts(tokenizer, 7, texts)
    assert max(len(ids) for ids in tokenizer(shortened, add_special_tokens=False)["input_ids"]) == 7
    assert all(text.startswith(part) for text, part in zip(texts, shortened, strict=True))
    assert cut_texts(None, 7, texts) == texts
    assert require_encoder(str(tiny), 30, 31) == (tiny, 64)
    with pytest.raises(
        UserError, match=f"{tiny}: takes 64 tokens, but .* and 3 special tokens need 65; "
    ):
        require_encoder(str(tiny), 30, 32)
    shutil.copytree(tiny, tmp_path / "old" / "0_Transformer")
    kind = "sentence_transformers.models.Transformer"
    write_json(
        tmp_path / "old" / "modules.json",
        [{"idx": 0, "name": "0", "path": "0_Transformer", "type": kind}],
    )
    inner = new_model(tmp_path / "old").state_dict()
    assert all(
        (inner[name] == weight).all() for name, weight in new_model(tiny).state_dict().items()
    )


@pytest.mark.parametrize(
    ("gone", "values", "message"),
    [
        (["config.json"], {}, "config.json"),
        (["tokenizer.json"], {}, "no tokenizer"),
        (["model.safetensors"], {}, "no weights"),
        (
            [],
            {"model_type": "mine", "auto_map": {"AutoModel": "mine.Model"}},
            "own code, which is never run",
        ),
        ([], {"num_hidden_layers": 3}, "its weights lack encoder.layer.2."),
        ([], {"file": "tokenizer_config.json", "pad_token": None}, "a padding token"),
    ],
)
def test_what_is_no_encoder_is_refused(
    changed: Changed, gone: list[str], values: dict[str, Any], message: str
) -> None:
    folder = changed(*gone, **values)
    with pytest.raises(UserError, match=rf"^{folder}: .*{message}"):
        new_model(folder)


SIZES = [(3, 5), (1, 9), (6, 2), (4, 7)]  # positives and negatives of each query


def epoch_of(sizes: list[tuple[int, int]] = SIZES, **options: Any) -> EpochRows:
    """Each query has documents of its own, of any length: its positives, then its negatives."""
    starts = np.cumsum([0, *map(sum, sizes)])
    middles = [start + good for start, (good, _) in zip(starts, sizes, strict=False)]
    lengths = np.random.default_rng(1).integers(5, 200, starts[-1])
    names = [f"q{number}" for number in range(len(sizes))]
    documents = pl.DataFrame({"id": ["d"], "text": ["text"], "source": ["human"]})
    queries = pl.DataFrame({"id": names, "text": names})
    learned = TrainingSet(
        subset=unjudged_collection(documents, queries, {}),
        texts=["d" * length for length in lengths],
        positives=tuple(
            np.arange(start, middle) for start, middle in zip(starts, middles, strict=False)
        ),
        negatives=tuple(
            (np.arange(middle, stop),) * good
            for middle, stop, (good, _) in zip(middles, starts[1:], sizes, strict=True)
        ),
        barred=(),
        twins=np.arange(starts[-1]),
        twin_source=None,
        twin_count=0,
        skipped_queries=0,
        skipped_positives=0,
    )
    return epoch_rows(
        learned, RerankerTraining(**{"negatives_per_positive": 3, "batch": 16, **options}), None
    )


def batches(rows: EpochRows, epoch: int = 0, size: int = 4) -> list[list[int]]:
    sampler = BatchSampler(rows=rows, sampler=None, batch_size=size)
    sampler.set_epoch(epoch)
    order = list(sampler)
    assert len(order) == len(sampler)
    return order


def drawn(rows: EpochRows, epoch: int = 0) -> list[tuple[int, ...]]:
    """All rows of an epoch as (query, positive, negatives…), in the order of its batches."""
    every, order = (
        rows.rows_of_epoch(epoch),
        [row for batch in batches(rows, epoch) for row in batch],
    )
    assert sorted(order) == list(range(rows.count))
    return [(int(every.queries[row]), *map(int, every.documents[row])) for row in order]


def test_an_epoch_has_each_positive_once_with_negatives_and_broad_queries_take_turns() -> None:
    rows, starts = drawn(epoch_of()), [0, 8, 18, 26]
    positives = [(q, starts[q] + n) for q, (good, _) in enumerate(SIZES) for n in range(good)]
    assert sorted(row[:2] for row in rows) == positives
    for query, _, *negatives in rows:
        good, bad = SIZES[query]
        assert set(negatives) <= set(range(starts[query] + good, starts[query] + good + bad))
        assert (
            len(set(negatives)) == min(bad, 3) or bad < 3
        )  # drawn with repeats where there are too few
    assert rows == drawn(epoch_of()) != drawn(epoch_of(), 1)
    assert rows != drawn(epoch_of(seed=1))
    rows = epoch_of(positives_per_query=2)
    assert np.bincount([row[0] for row in drawn(rows)]).tolist() == [2, 1, 2, 2]
    assert {row[1] for epoch in range(20) for row in drawn(rows, epoch) if row[0] == 2} == set(
        range(18, 24)
    )


def test_rows_of_like_length_share_a_batch_and_what_disturbs_each_other_is_kept_apart() -> None:
    rows = epoch_of([(8, 20)] * 40)
    longest = [
        rows.lengths[rows.rows_of_epoch(0).documents[batch]].max(axis=1) for batch in batches(rows)
    ]
    assert np.mean([np.ptp(lengths) for lengths in longest]) < 0.2 * np.ptp(np.concatenate(longest))
    assert (
        abs(np.corrcoef([lengths.max() for lengths in longest], np.arange(len(longest)))[0, 1])
        < 0.4
    )
    queries, documents = np.arange(8), np.arange(8).reshape(8, 1)
    barred = [
        frozenset({q, q ^ 1}) for q in range(8)
    ]  # each query's neighbour is relevant to it too
    rows = EpochRows(
        draw=lambda _: Rows(queries=queries, documents=documents),
        count=8,
        queries=["q"] * 8,
        documents=["d"] * 8,
        twins=None,
        seed=0,
        barred=barred,
    )
    for batch in batches(rows):
        assert len({row // 2 for row in batch}) == 4
    assert sorted(map(len, batches(rows, size=8))) == [8]


def test_columns_are_what_the_losses_take() -> None:
    draw = Rows(queries=np.array([0, 1]), documents=np.array([[0, 1], [1, 0]]))
    shared: dict[str, Any] = {
        "queries": ["a", "b"],
        "documents": ["one", "two", "one again"],
        "twins": np.array([2, 1, 2]),
        "seed": 0,
    }
    rows = EpochRows(draw=lambda _: draw, count=2, **shared)
    assert rows.dataset()[:2] == {
        "query": ["a", "b"],
        "document": ["one", "two"],
        "twin": ["one again", ""],
        "negative1": ["two", "one"],
    }
    pairs = EpochRows(draw=lambda _: draw.pairs(), count=4, **shared)
    assert pairs.columns({"row": [0, 1, 2, 3]}) == {
        "query": ["a", "a", "b", "b"],
        "document": ["one", "two", "two", "one"],
        "twin": ["one again", "", "", ""],
        "label": [1, 0, 1, 0],
    }


def test_a_model_with_fewer_vectors_than_tokens_is_refused(tiny: Path, tmp_path: Path) -> None:
    folder = tmp_path / "small"
    shutil.copytree(tiny, folder)
    change(folder / "config.json", vocab_size=10)
    with_weights(
        folder,
        lambda weights: {
            name: value[:10].clone() if "word_embeddings" in name else value
            for name, value in weights.items()
        },
    )
    message = (
        f"{folder}: its tokenizer has tokens up to number 76, its model only vectors for 10; use "
        "the tokenizer that …"
    )
    with refused(message):
        train(folder, tmp_path / "model")


@pytest.mark.parametrize(
    "state", ["[1]", "null", "{", '{"global_step": null}', '{"global_step": "x"}']
)
def test_a_damaged_checkpoint_is_none(tmp_path: Path, state: str) -> None:
    write(tmp_path / ".checkpoints" / "checkpoint-3" / "trainer_state.json", state)
    assert last_checkpoint(tmp_path) is None
    assert not (tmp_path / ".checkpoints" / "checkpoint-3").exists()


@pytest.mark.parametrize("record", ['{"spec": 3}', '{"figures": null}', '{"figures": [1]}'])
def test_a_folder_with_a_damaged_record_is_named(tiny: Path, tmp_path: Path, record: str) -> None:
    file = write(tmp_path / "model" / "training.json", record)
    with refused(f"{file}: is not a record of a training; remove the folder, or name another"):
        train(tiny, tmp_path / "model")
