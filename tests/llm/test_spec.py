"""The text of a language model: its options, by type, and what is refused."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from ranktilt.errors import UserError
from ranktilt.llm.batches import BatchOpenAI
from ranktilt.llm.openai import OpenAI
from ranktilt.llm.spec import option_names, read_model

FULL = (
    "openai:m:8b(temperature=0,top_p=0.9,max_tokens=20,seed=3,concurrency=16,"
    'requests_per_minute=300,timeout=2.5,base_url="http://localhost:1/v1")'
)


@dataclass(frozen=True, kw_only=True)
class Refusal:
    text: str
    message: str


REFUSALS = [
    Refusal(text="openai", message="openai: no model is named"),
    Refusal(text="opnai:m", message="unknown language model 'opnai'; did you mean 'openai:…'?"),
    Refusal(
        text="openai:m(temprature=0)",
        message="unknown option of openai 'temprature'; did you mean 'temperature'?",
    ),
    Refusal(
        text="openai:m(concurrency=many)",
        message="option 'concurrency' of openai: expected a whole number, got 'many'",
    ),
    Refusal(text="openai:m(temperature=-1)", message="temperature must be 0 or more"),
    Refusal(
        text="openai:m(max_tokens=100000000000000000)",
        message="max_tokens must be at most 9,007,199,254,740,992",
    ),
    Refusal(
        text="openai:m(max_tokens=100000000000000000000)",
        message="expected a whole number of at most 18 digits, got '100000000000000000000'",
    ),
    Refusal(text="openai:m(temperature)", message="expected option=value"),
    Refusal(text="openai:m>>openai:n", message="expected one language model"),
    Refusal(text="openai:m\udcff", message="bytes that are not UTF-8"),
    Refusal(text="openai:m@3", message="expected one language model"),
    Refusal(
        text="transformers:FOLDER(poll_interval=3)",
        message="unknown option of transformers 'poll_interval'",
    ),
]


def test_options_go_to_the_client_and_to_sampling_by_their_types() -> None:
    spec = read_model(FULL)
    assert spec.name == "openai:m:8b"
    assert spec.sampling == {"temperature": 0.0, "top_p": 0.9, "max_tokens": 20, "seed": 3}
    model = spec.connect()
    assert isinstance(model, OpenAI)
    assert (model.model, model.concurrency, model.timeout) == ("m:8b", 16, 2.5)
    assert (model.requests_per_minute, model.base_url) == (300, "http://localhost:1/v1")


def test_a_local_model_takes_the_device_that_its_text_does_not_name(tmp_path: Path) -> None:
    text = f"transformers:{tmp_path}(batch=2)"
    assert read_model(text).connect(device="cpu").device == "cpu"
    meta_model = read_model(f"transformers:{tmp_path}(device=meta)").connect(device="cpu")
    assert meta_model.device == "meta"


def test_batches_are_asked_for_apart() -> None:
    spec = read_model('openai:m(poll_interval=5,give_up_batch="batch_1|batch_2")')
    with pytest.raises(UserError, match="poll_interval of openai:m needs --batch"):
        spec.connect()
    model = spec.connect(batch=True)
    assert isinstance(model, BatchOpenAI)
    assert (model.interval, model.give_up) == (5.0, ("batch_1", "batch_2"))


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.text)
def test_what_cannot_be_read_is_refused(refusal: Refusal) -> None:
    with pytest.raises(UserError) as error:
        read_model(refusal.text)
    assert refusal.message in str(error.value)


def test_the_options_of_a_kind_are_those_that_its_text_takes() -> None:
    assert {"base_url", "temperature", "give_up_batch"} <= set(option_names("openai"))
    assert {"adapter", "batch", "temperature"} <= set(option_names("transformers"))
    assert "poll_interval" not in option_names("transformers")
