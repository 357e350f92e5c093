"""Where work is done: in this process, or elsewhere, and what travels there."""

import pickle
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

from ranktilt.errors import MissingExtra
from ranktilt.executing.executor import Executor, Portable, _rebuilt, executor
from ranktilt.executing.run_on import run_on
from ranktilt.llm.openai import OpenAI
from ranktilt.llm.transformers import Transformers
from ranktilt.models.encoder import Encoder
from tests.rankers.tiny import tiny_model
from tests.refusals import refused


def doubled(numbers: Iterator[int]) -> Iterator[int]:
    for number in numbers:
        yield 2 * number


@dataclass(frozen=True)
class Model(Portable):
    folder: Path
    size: int = 3

    @cached_property
    def weights(self) -> list[int]:
        return [self.size] * 1_000_000


def test_work_is_done_here_by_default_and_items_are_pulled_as_they_are_needed() -> None:
    pulled = []
    items = (pulled.append(number) or number for number in range(5))  # type: ignore[func-returns-value]
    results = executor().map(doubled, items, at_once=3)
    assert (next(results), pulled) == (0, [0])
    assert list(results) == [2, 4, 6, 8]
    assert (type(executor()), executor().workers) == (Executor, 1)


@pytest.mark.parametrize("where", ["spark", "ray: ", "local:2", ""])
def test_other_places_are_refused(where: str) -> None:
    message = f"cannot run on {where!r}: expected local, ray or ray:ADDRESS, such as ray:10.0.0.1:6379"
    with refused(message), run_on(where):
        pass


def test_without_ray_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    message = '--executor ray needs ray. Install it with: pip install "ranktilt[ray]"'
    with refused(message, MissingExtra), run_on("ray"):
        pass


def test_work_is_done_within_the_block() -> None:
    pytest.importorskip("ray")
    from ranktilt.executing.run_on import RayExecutor

    results = RayExecutor("the Ray cluster of this machine", workers=1, gpus=0).map(doubled, [1])
    with refused("the Ray cluster of this machine: used after its block ended"):
        next(results)


def test_a_model_travels_without_its_weights_and_is_made_once_where_it_arrives() -> None:
    model = Model(Path("m"))
    assert len(model.weights) == 1_000_000
    packed = pickle.dumps(model)
    assert len(packed) < 300
    one, other = pickle.loads(packed), pickle.loads(packed)
    assert one == model
    assert one is other
    assert pickle.loads(pickle.dumps(Model(Path("m"), 4))).size == 4


def test_another_model_under_the_same_name_is_refused(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path / "m")
    packed = pickle.dumps(Encoder(name="m", folder=folder, max_tokens=None, precision="float32", device="cpu"))
    assert pickle.loads(packed).folder == folder
    _rebuilt.cache_clear()  # as in another process
    with (folder / "config.json").open("a") as stream:
        stream.write(" ")
    message = f"{folder}: the model on {platform.node()} differs from the one on your machine; copy it there"
    with refused(message):
        pickle.loads(packed)


def test_language_models_travel_as_their_options_and_share_their_rate_limits(tmp_path: Path) -> None:
    model = OpenAI("m", base_url="http://127.0.0.1:9/v1", requests_per_minute=100, timeout=3)
    there = pickle.loads(pickle.dumps(model.one_of(4)))
    assert (there.identity, there.made_of()) == (model.identity, {**model.made_of(), "requests_per_minute": 25})
    assert model.one_of(1) is model
    with refused("requests_per_minute=100 is too little to be divided among 101 workers; omit --executor"):
        model.one_of(101)
    local = Transformers(tiny_model(tmp_path / "m"), batch=2, precision="float32")
    assert pickle.loads(pickle.dumps(local)).made_of() == local.made_of()
    assert local.one_of(3) is local
