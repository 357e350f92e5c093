"""Batches: planned by length, computed once, stored as they come."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktilt.errors import UserError
from ranktilt.io.cache import VectorCache, Vectors, content_keys
from ranktilt.models import batching
from ranktilt.models.batching import BatchJob, Ints, compute_missing, plan_batches
from ranktilt.models.device import inference
from ranktilt.progress import listening
from tests.toy import no_room, write

LENGTHS = st.lists(st.integers(0, 50), max_size=60)


def ints(*values: int) -> Ints:
    return np.array(values, dtype=np.int64)


def test_the_longest_come_first_in_batches_of_so_many_tokens() -> None:
    batches = plan_batches(ints(3, 100, 1, 90, 20, 100, 2), 250, most=3)
    assert [batch.tolist() for batch in batches] == [[1, 5], [3, 4], [0, 6, 2]]


@given(LENGTHS, st.integers(1, 100), st.integers(1, 10))
def test_every_plan_holds_each_item_once_within_its_limits(lengths: list[int], tokens: int, most: int) -> None:
    batches = plan_batches(ints(*lengths), tokens, most=most)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        longest = max(lengths[i] for i in batch)
        assert len(batch) == 1 or (len(batch) <= most and len(batch) * longest <= tokens)
    assert [lengths[i] for batch in batches for i in batch] == sorted(lengths, reverse=True)


# Filling a cache


@dataclass
class Work:
    """Items named by their texts; their vectors are their length and first letter."""

    texts: list[str]
    batches: list[list[str]] = field(default_factory=list)
    entered: int = 0
    stop_after: int = 1 << 30
    tokens: int = 12

    def job(self) -> BatchJob:
        lengths = ints(*map(len, self.texts))
        return BatchJob(content_keys(self.texts), lengths, self.compute, self.take, self.computing, self.tokens)

    def take(self, positions: Ints) -> list[str]:
        return [self.texts[i] for i in positions]

    def compute(self, texts: list[str]) -> Vectors:
        if len(self.batches) >= self.stop_after:
            raise KeyboardInterrupt
        self.batches.append(texts)
        return np.array([[len(text), ord(text[0])] for text in texts], dtype=np.float32)

    @contextmanager
    def computing(self) -> Iterator[None]:
        self.entered += 1
        yield


TEXTS = ["bbbbb", "a", "cccc", "ddddddd", "ee", "fff", "gg", "h"]


def all_of(work: Work, folder: Path) -> Vectors:
    return compute_missing(work.job(), VectorCache(folder), "x").read(0, len(work.texts))


def test_each_item_gets_its_vector(tmp_path: Path) -> None:
    work = Work(TEXTS)
    found = all_of(work, tmp_path)
    assert (work.entered, len(work.batches) > 2) == (1, True)  # one context around all
    assert found[:, 0].tolist() == [5, 1, 4, 7, 2, 3, 2, 1]
    assert [chr(int(v)) for v in found[:, 1]] == list("bacdefgh")


def test_only_what_is_missing_is_computed(tmp_path: Path) -> None:
    all_of(Work(TEXTS[:4]), tmp_path)
    work = Work(TEXTS)
    all_of(work, tmp_path)
    assert sorted(text for batch in work.batches for text in batch) == sorted(TEXTS[4:])


@pytest.mark.parametrize("done", [0, 2])
def test_work_that_is_taken_up_again_gives_the_same_bits(tmp_path: Path, done: int) -> None:
    whole = all_of(Work(TEXTS), tmp_path / "whole")
    first, second = Work(TEXTS, stop_after=done), Work(TEXTS)
    with pytest.raises(KeyboardInterrupt):
        all_of(first, tmp_path / "resumed")
    resumed = all_of(second, tmp_path / "resumed")
    finished = [text for batch in first.batches for text in batch]
    redone = [text for batch in second.batches for text in batch]
    assert sorted(finished + redone) == sorted(TEXTS)
    assert resumed.tobytes() == whole.tobytes()


@pytest.mark.parametrize(
    ("shard", "files"),
    [
        (2, [3, 2, 2, 1]),  # batches of lengths 7 | 5 || 4 | 3 2 || 2 1 || 1
        (3, [5, 3]),  # 7 | 5 | 4 || 3 2 | 2 1 1
        (100, [8]),
    ],
)
def test_whole_batches_of_so_many_items_are_stored_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shard: int, files: list[int]
) -> None:
    put, sizes = VectorCache.put, list[int]()
    monkeypatch.setattr(VectorCache, "put", lambda cache, *of: (sizes.append(len(of[0])), put(cache, *of)))
    monkeypatch.setattr(batching, "WRITE_EVERY", shard)
    all_of(Work(TEXTS, tokens=7), tmp_path)
    assert sorted(sizes, reverse=True) == files


def test_progress_counts_the_tokens_of_what_is_missing(tmp_path: Path) -> None:
    all_of(Work(["ddddddd", "a"]), tmp_path)
    steps: list[tuple[str, int, int]] = []
    with listening(lambda *step: steps.append(step)):
        compute_missing(Work(TEXTS).job(), VectorCache(tmp_path), "filling")
    missing = sum(map(len, TEXTS)) - 8
    assert steps[0] == ("filling", 0, missing)
    assert steps[-1] == ("filling", missing, missing)
    assert [done for _, done, _ in steps] == sorted(done for _, done, _ in steps)


def test_a_cache_that_cannot_be_is_said_before_any_work(tmp_path: Path) -> None:
    folder = write(tmp_path / "file", "x") / "below"
    work = Work(TEXTS)
    with pytest.raises(UserError) as caught:
        all_of(work, folder)
    message = "cannot be written: Not a directory; choose another place (RANKTILT_CACHE names the cache's folder)"
    assert str(caught.value) == f"{folder}: {message}"
    assert work.batches == []


def test_a_full_disk_is_one_clear_line_and_what_was_stored_stays(tmp_path: Path) -> None:
    many = [f"{i:03}" for i in range(400)]
    all_of(Work(many[:3]), tmp_path)
    with no_room(2000), pytest.raises(UserError) as caught:
        all_of(Work(many), tmp_path)
    assert str(caught.value).startswith(f"{tmp_path}: cannot be written: ")
    work = Work(many)
    all_of(work, tmp_path)
    assert sum(map(len, work.batches)) == 397


def test_what_is_pruned_meanwhile_is_one_clear_line(tmp_path: Path) -> None:
    class Pruned(VectorCache):
        def put(self, keys: Any, vectors: Vectors) -> None:
            """Store nothing, as if it was removed at once."""

    with pytest.raises(UserError, match=r"stored values are gone; if the cache was pruned meanwhile, run it again$"):
        compute_missing(Work(TEXTS).job(), Pruned(tmp_path), "x")


# The context of the forward pass


@pytest.mark.neural
@pytest.mark.parametrize(("precision", "kind"), [("float32", "torch.float32"), ("bfloat16", "torch.bfloat16")])
def test_products_are_computed_in_the_precision_and_without_gradients(precision: str, kind: str) -> None:
    torch = pytest.importorskip("torch")
    one = torch.ones(2, 2, requires_grad=True)
    with inference("cpu", precision):
        made = one @ one
        assert str(made.dtype) == kind
        assert torch.is_inference_mode_enabled()
    assert str((one @ one).dtype) == "torch.float32"
    assert not made.requires_grad
