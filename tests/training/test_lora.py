"""An adapter learns answers that are as often of either group, and goes on after an
interruption.
"""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ranktilt import Collection, pairwise
from ranktilt.errors import UserError
from ranktilt.llm.base import Prompt, llm
from ranktilt.llm.transformers import HELD_OUT, TRAINING_QUERIES, Transformers
from ranktilt.rankers.llm.base import Task
from ranktilt.rankers.llm.pairwise import Pairwise
from ranktilt.training.lora import train_lora
from ranktilt.training.options import LoraTraining, TrainedModel
from ranktilt.training.pair_examples import pair_examples
from tests.refusals import refused
from tests.toy import collection_of
from tests.training.material import stopped_at

pytestmark = pytest.mark.neural
QUICK = LoraTraining(
    pairs_per_epoch=200,
    steps=40,
    rate=0.02,
    rank=4,
    batch=8,
    text="text",
    prompt="choice",
    passage_tokens=20,
)


def grouped(queries: int = 10) -> Collection:
    """Documents of women and men, some relevant to each query."""
    chance, genders = random.Random(0), ("female", "male", "male")
    docs = [{"id": f"d{n}", "text": f"a story of {n}", "gender": genders[n % 3]} for n in range(60)]
    names = {f"q{n}": f"who was number {n}" for n in range(queries)}
    return collection_of(
        docs, names, {name: {f"d{n}": 1 for n in chance.sample(range(60), 20)} for name in names}
    )


def train(
    stories: Path, folder: Path, collection: Collection | None = None, **more: Any
) -> TrainedModel:
    options = {"by": "gender", "protected": "female", "options": QUICK, **more}
    return train_lora(collection or grouped(), stories, folder, **options)


def test_right_answers_are_as_often_of_either_group_and_in_either_place() -> None:
    examples = pair_examples(
        grouped(),
        Pairwise(llm="transformers:none", text="text"),
        QUICK,
        by="gender",
        protected="female",
    )
    every = list(zip(examples.answers, examples.protected.tolist(), strict=True))
    for answer in ("[1]", "[2]"):
        for protected in (True, False):
            assert abs(every.count((answer, protected)) - len(every) / 4) <= 2
    assert len(every) >= 190
    assert len(examples.held_out) == 2
    gender = dict(grouped().docs.select("text", "gender").iter_rows())
    for prompt, (answer, protected) in zip(examples.prompts, every, strict=True):
        first = next(line for line in prompt.splitlines() if line.startswith(answer))
        assert (gender[first.partition(" ")[2]] == "female") == protected
        assert not any(f"who was number {name[1:]}\n" in prompt for name in examples.held_out)


@pytest.fixture(scope="module")
def trained(stories: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    result = train(stories, tmp_path_factory.mktemp("lora") / "adapter")
    assert result.figures["loss"][-1] < result.figures["loss"][0] / 3
    assert result.figures["pairs"] == 40 * QUICK.batch
    return result.folder


@pytest.mark.long
def test_the_adapter_changes_what_the_model_answers(stories: Path, trained: Path) -> None:
    prompt = Prompt(text=Pairwise(llm="transformers:none").prompts_of([TASK])[0])
    texts = []
    for model in (Transformers(stories), Transformers(stories, adapter=trained)):
        (reply,) = model.generate([prompt], temperature=0, max_tokens=8)
        assert reply.answer is not None
        texts.append(reply.answer.text)
    assert texts[0] != texts[1]
    assert set(texts[1]) & set("[12]")
    names = [(trained / file).read_text().splitlines() for file in (HELD_OUT, TRAINING_QUERIES)]
    assert (sorted(names[0] + names[1]), len(names[0])) == (sorted(grouped().queries["id"]), 2)


TASK = Task(query="who was number 3", passages=["a story of 4", "a story of 5"])


@pytest.mark.long
def test_another_adapter_is_another_model_and_none_is_refused(
    stories: Path, trained: Path, tmp_path: Path
) -> None:
    adapted = llm(f"transformers:{stories}", adapter=str(trained))
    assert adapted.identity.startswith("transformers:")
    assert adapted.identity != Transformers(stories).identity
    with refused(
        f"{stories}: no adapter: expected adapter_config.json and weights, as ranktilt train lora "
        "saves them"
    ):
        Transformers(stories, adapter=stories).check()
    with pytest.raises(UserError, match="did you mean 'female'"):
        train(stories, tmp_path / "a", protected="femal")
    with refused("1 query cannot be split into 0.8 and the rest"):
        train(stories, tmp_path / "a", grouped(1))
    assert not (tmp_path / "a").exists()
    with refused("training: expected a share of the queries above 0 and below 1, got 1"):
        LoraTraining(share=1)


def test_an_interrupted_training_goes_on(
    stories: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ranktilt.training.callbacks.CHECKPOINT_EVERY", 0.0)
    options = replace(QUICK, steps=6)
    uninterrupted = train(stories, tmp_path / "whole", options=options)
    with stopped_at(4, tmp_path / "cut"):
        train(stories, tmp_path / "cut", options=options)
    resumed = train(stories, tmp_path / "cut", options=options)
    assert (resumed.resumed, resumed.figures["pairs"]) == (3, 48)
    assert resumed.figures["loss"] == pytest.approx(uninterrupted.figures["loss"], rel=1e-3)
    assert train(stories, tmp_path / "cut", options=options).resumed == 6


def test_pairs_beyond_the_context_are_refused(
    stories: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In training as in asking afterwards, by the model's own tokens, with room for an answer."""
    chat, asker = (
        Transformers(stories),
        Pairwise(llm=f"transformers:{stories}", text="text", prompt="choice"),
    )
    needed = len(chat.tokens_of(Prompt(text=asker.prompts_of([TASK])[0]))) + asker.answer_tokens(
        [TASK]
    )

    def fits(context: int) -> bool:
        chat.context = context
        try:
            asker.require_room(chat, [TASK])
        except UserError:
            return False
        return True

    assert needed <= next(context for context in range(1000) if fits(context)) <= needed + 60
    collection = grouped()
    long = replace(collection, docs=collection.docs.with_columns(text=pl.lit("a long story " * 40)))
    monkeypatch.setattr(Transformers, "tokens_of", None)
    message = r"2 passages and the answer may take [\d,]+ tokens, more than the context of 512"
    with pytest.raises(UserError, match=message):
        train_lora(
            long, stories, tmp_path / "a", by="gender", options=replace(QUICK, passage_tokens=100)
        )
    with pytest.raises(UserError, match=message):
        pairwise(long, replace(asker, passage_tokens=100), by="gender", resamples=100)
