"""Where work is done, with how much memory, and what travels there."""

import os
import pickle
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

from ranktilt.errors import MissingExtra
from ranktilt.llm.openai import OpenAI
from ranktilt.llm.transformers import Transformers
from ranktilt.models.encoder import Encoder
from ranktilt.parallel import memory_limits as chunks
from ranktilt.parallel.executor import Executor, Portable, _rebuilt, executor
from ranktilt.parallel.memory_limits import MemoryLimits, available_memory, limit_memory, read_size
from ranktilt.parallel.run_on import run_on
from tests.rankers.tiny import tiny_model
from tests.refusals import refused
from tests.toy import write


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
    pulled: list[int] = []

    def pull(number: int) -> int:
        pulled.append(number)
        return number

    items = map(pull, range(5))
    results = executor().map(doubled, items, at_once=3)
    assert (next(results), pulled) == (0, [0])
    assert list(results) == [2, 4, 6, 8]
    assert (type(executor()), executor().workers) == (Executor, 1)


@pytest.mark.parametrize("where", ["spark", "ray: ", "local:2", ""])
def test_other_executors_are_refused(where: str) -> None:
    message = (
        f"cannot run on {where!r}: expected local, ray or ray:ADDRESS, such as ray:10.0.0.1:6379"
    )
    with refused(message), run_on(where):
        pass


def test_without_ray_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    message = '--executor ray needs ray. Install it with: pip install "ranktilt[ray]"'
    with refused(message, MissingExtra), run_on("ray"):
        pass


def test_work_is_done_within_the_block() -> None:
    pytest.importorskip("ray")
    from ranktilt.parallel.run_on import RayExecutor

    results = RayExecutor("the Ray cluster of this machine", workers=1, gpus=0).map(doubled, [1])
    with refused("the Ray cluster of this machine: used after its block ended"):
        next(results)


def test_a_model_travels_without_its_weights_and_is_made_once_where_it_arrives() -> None:
    model = Model(Path("m"))
    assert len(model.weights) == 1_000_000
    packed = pickle.dumps(model)
    assert len(packed) < 300
    assert pickle.loads(packed) == model
    assert pickle.loads(packed) is pickle.loads(packed)
    assert pickle.loads(pickle.dumps(Model(Path("m"), 4))).size == 4


def test_another_model_under_the_same_name_is_refused(tmp_path: Path) -> None:
    folder = tiny_model(tmp_path / "m")
    packed = pickle.dumps(
        Encoder(name="m", folder=folder, max_tokens=None, precision="float32", device="cpu")
    )
    assert pickle.loads(packed).folder == folder
    _rebuilt.cache_clear()  # as in another process
    with (folder / "config.json").open("a") as stream:
        stream.write(" ")
    message = (
        f"{folder}: the model on {platform.node()} differs from the one on your machine; "
        "copy it there"
    )
    with refused(message):
        pickle.loads(packed)


def test_language_models_travel_as_their_options_and_share_their_rate_limits(
    tmp_path: Path,
) -> None:
    model = OpenAI("m", base_url="http://127.0.0.1:9/v1", requests_per_minute=100, timeout=3)
    there = pickle.loads(pickle.dumps(model.share_of(4)))
    assert (there.identity, there.made_of()) == (
        model.identity,
        {**model.made_of(), "requests_per_minute": 25},
    )
    assert model.share_of(1) is model
    with refused("requests_per_minute=100 is too few to divide among 101 workers; omit --executor"):
        model.share_of(101)
    local = Transformers(tiny_model(tmp_path / "m"), batch=2, precision="float32")
    assert pickle.loads(pickle.dumps(local)).made_of() == local.made_of()
    assert local.share_of(3) is local


GB = 10**9
WHOLE = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
"""The memory of this machine."""


def test_usual_sizes_hold_outside_and_are_back_afterwards() -> None:
    def sizes() -> tuple[int, int]:
        return chunks.memory_limit(), chunks.index_files_from(8)

    usual = (available_memory() // 4, 8)
    assert sizes() == usual
    with limit_memory(MemoryLimits(memory=1, index_files_from=2)):
        with limit_memory(MemoryLimits(index_files_from=0)):
            assert sizes() == (usual[0], 0)
        assert sizes() == (1, 2)
    assert sizes() == usual


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (" 1 GB ", GB),
        ("1g", GB),
        ("512MB", 512 * 10**6),
        ("0.5GiB", 1 << 29),
        ("2TB", 2 * 10**12),
        ("100000KB", 10**8),
        ("268435456", 1 << 28),
        ("268435456B", 1 << 28),
    ],
)
def test_sizes_are_read_as_people_write_them(text: str, size: int) -> None:
    assert read_size(text) == size


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "1 PB", "1GB2", "1,5GB", "nan", "64MB"])
def test_what_is_no_size_is_refused(text: str) -> None:
    expected = "at least 64MiB" if text == "64MB" else "a size such as 1GB, 512MB or 0.5GiB"
    with refused(f"memory: expected {expected}, got {text!r}"):
        read_size(text)


@pytest.mark.parametrize(
    ("group", "limits", "expected"),
    [
        ("0::/a/b\n", {"a/b/memory.max": "1000000", "a/memory.max": "max"}, 1_000_000),
        ("0::/a/b\n", {"a/b/memory.max": "max", "a/memory.max": "2000000\n"}, 2_000_000),
        ("0::/\n", {"memory.max": "3000000\n"}, 3_000_000),
        ("0::/not/seen\n", {"memory.max": "4000000\n"}, 4_000_000),
        ("0::/a\n", {"a/memory.max": "max\n"}, WHOLE),
        ("0::/a\n", {"a/memory.max": "9223372036854771712\n"}, WHOLE),
        ("nonsense\n", {}, WHOLE),
        (None, {}, WHOLE),
    ],
)
def test_a_quarter_of_the_machines_memory_or_of_the_control_groups_limit_is_used(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    group: str | None,
    limits: dict[str, str],
    expected: int,
) -> None:
    if group is not None:
        write(tmp_path / "group", group)
    for name, text in limits.items():
        write(tmp_path / "cgroup" / name, text)
    monkeypatch.setattr(chunks, "_CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(chunks, "_OWN_CGROUPS", tmp_path / "group")
    assert (available_memory(), chunks.memory_limit()) == (expected, expected // 4)


@pytest.mark.parametrize(
    ("quota", "expected"), [("max 100000", 8), ("150000 100000\n", 2), ("50000 100000\n", 1)]
)
def test_processors_are_those_of_the_container(
    quota: str, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpu.max").write_text(quota)
    monkeypatch.setattr(chunks, "_CPU_QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)))
    assert chunks.processors() == expected
