"""Batches: of pad shapes, planned by length, computed once, stored as they come; company changes no bit."""

import subprocess
import sys
import threading
import time
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
from ranktilt.executing.memory_limits import MemoryLimits, limited
from ranktilt.io.cache import VectorCache, Vectors, content_keys, count_vectors
from ranktilt.models.batching import (
    BatchJob,
    BatchShapes,
    Ints,
    Part,
    compute_missing,
    compute_parts,
    pad,
    plan_batches,
)
from ranktilt.models.device import inference
from ranktilt.progress import listening
from tests.toy import no_room, write

LENGTHS = st.lists(st.integers(0, 50), max_size=60)


def ints(*values: int) -> Ints:
    return np.array(values, dtype=np.int64)


# The plan_batches


@pytest.mark.parametrize(
    ("length", "width"),
    [(0, 16), (1, 16), (16, 16), (17, 32), (255, 256), (257, 288), (511, 512), (513, 576), (599, 600), (700, 700)],
)
def test_an_item_is_padded_a_little_and_no_further_than_the_model_reads(length: int, width: int) -> None:
    assert BatchShapes(1000, longest=600).width(ints(length)).tolist() == [width]


@pytest.mark.parametrize(("width", "rows"), [(16, 256), (100, 100), (600, 16), (9_999, 1), (20_000, 1)])
def test_a_width_has_so_many_rows(width: int, rows: int) -> None:
    assert BatchShapes(10_000).rows(width) == rows


def test_the_longest_come_first_and_each_batch_has_one_width() -> None:
    batches = plan_batches(ints(3, 100, 1, 90, 20, 100, 2), BatchShapes(250), most=4)
    assert [b.tolist() for b in batches] == [[1, 5], [3], [4], [0, 6, 2]]


@given(LENGTHS, st.integers(1, 100), st.integers(1, 10))
def test_every_plan_holds_each_item_once_within_its_limits(lengths: list[int], budget: int, most: int) -> None:
    shapes = BatchShapes(budget)
    batches = plan_batches(ints(*lengths), shapes, most=most)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        (width,) = set(shapes.width(ints(*(lengths[i] for i in batch))).tolist())
        assert len(batch) <= min(most, shapes.rows(width))
    assert [lengths[i] for batch in batches for i in batch] == sorted(lengths, reverse=True)


# The shapes


@pytest.mark.parametrize("left", [False, True])
def test_features_are_brought_to_the_shape_of_their_own_length(left: bool) -> None:
    sizes = [3, 20, 16, 1]
    ids, mask = np.full((4, 20), 9), np.zeros((4, 20), dtype=np.int64)
    for row, size in enumerate(sizes):
        ids[row, slice(20 - size, 20) if left else slice(0, size)] = row + 1
        mask[row, slice(20 - size, 20) if left else slice(0, size)] = 1
    features = {"input_ids": ids, "attention_mask": mask, "number": np.arange(4), "prompt_length": 2}
    parts = pad(features, BatchShapes(32), {"input_ids": 9}, left=left)
    assert [(some.tolist(), made["input_ids"].shape) for some, made in parts] == [
        ([0, 2], (2, 16)), ([3], (2, 16)), ([1], (1, 32))
    ]  # fmt: skip
    for some, made in parts:
        assert made["prompt_length"] == 2
        assert made["number"][: len(some)].tolist() == some.tolist()
        for row, number in enumerate(made["number"]):
            size, width = sizes[number], made["input_ids"].shape[1]
            own, rest = [number + 1] * size, [9] * (width - size)
            assert made["input_ids"][row].tolist() == (rest + own if left else own + rest)
            assert made["attention_mask"][row].sum() == size
    back = compute_parts(lambda made: made["number"][:, None].astype(np.float32), parts)
    assert back[:, 0].tolist() == [0, 1, 2, 3]


# Filling a cache


@dataclass
class Work:
    """Items named by their texts; a vector depends on the item and, as with a model, on the shape of its batch."""

    texts: list[str]
    batches: list[list[str]] = field(default_factory=list)
    prepared: list[list[str]] = field(default_factory=list)
    entered: int = 0
    stop_after: int = 1 << 30
    budget: int = 12

    def job(self) -> BatchJob:
        keys, lengths = content_keys(self.texts), ints(*(16 * len(text) for text in self.texts))
        return BatchJob(keys, lengths, self.prepare, self.forward, self.computing, BatchShapes(16 * self.budget))

    def prepare(self, positions: Ints) -> list[Part]:
        texts = [self.texts[i] for i in positions]
        self.prepared.append(texts)
        mask = np.arange(16 * max(map(len, texts))) < 16 * np.array([[len(text)] for text in texts])
        features = {"attention_mask": mask.astype(np.int64), "texts": np.array(texts)}
        return pad(features, BatchShapes(16 * self.budget), {}, left=False)

    def forward(self, parts: list[Part]) -> Vectors:
        if len(self.batches) >= self.stop_after:
            raise KeyboardInterrupt
        self.batches.append([str(t) for some, made in parts for t in made["texts"][: len(some)]])
        return compute_parts(self.part, parts)

    @staticmethod
    def part(features: dict[str, Any]) -> Vectors:
        rows, width = features["attention_mask"].shape
        return np.array([[len(t), ord(t[0]), (rows + width) / 7] for t in features["texts"]], dtype=np.float32)

    @contextmanager
    def computing(self) -> Iterator[None]:
        self.entered += 1
        yield


TEXTS = ["bbbbb", "a", "cccc", "ddddddd", "ee", "fff", "gg", "h"]


def all_of(work: Work, folder: Path) -> Vectors:
    return compute_missing(work.job(), VectorCache(folder), "x").read(0, len(work.texts))


def test_each_item_gets_its_vector(tmp_path: Path) -> None:
    found = all_of(Work(TEXTS), tmp_path)
    assert found[:, 0].tolist() == [5, 1, 4, 7, 2, 3, 2, 1]
    assert [chr(int(v)) for v in found[:, 1]] == list("bacdefgh")


def test_the_context_is_entered_once_around_all(tmp_path: Path) -> None:
    work = Work(TEXTS)
    all_of(work, tmp_path)
    assert work.entered == 1
    assert len(work.batches) > 2


def test_only_what_is_missing_is_computed(tmp_path: Path) -> None:
    all_of(Work(TEXTS[:4]), tmp_path)
    work = Work(TEXTS)
    all_of(work, tmp_path)
    assert sorted(text for batch in work.batches for text in batch) == sorted(TEXTS[4:])


@pytest.mark.parametrize("done", [0, 1, 2, 3])
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


def test_neither_company_nor_what_was_kept_changes_a_bit(tmp_path: Path) -> None:
    whole = all_of(Work(TEXTS), tmp_path / "whole")
    for number, text in enumerate(TEXTS):
        assert all_of(Work([text]), tmp_path / f"alone {number}").tobytes() == whole[number].tobytes()
        all_of(Work(TEXTS[number:]), tmp_path / f"kept {number}")
        assert all_of(Work(TEXTS), tmp_path / f"kept {number}").tobytes() == whole.tobytes()


@pytest.mark.parametrize(
    ("shard", "files"),
    [
        (1, [1, 1, 1, 1, 1, 1, 1, 1]),
        (2, [2, 2, 2, 2]),  # batches of lengths 7 | 5 || 4 | 3 || 2 2 || 1 1
        (3, [3, 3, 2]),  # 7 | 5 | 4 || 3 | 2 2 || 1 1
        (100, [8]),
    ],
)
def test_whole_batches_of_so_many_items_are_stored_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shard: int, files: list[int]
) -> None:
    put, sizes = VectorCache.put, list[int]()
    monkeypatch.setattr(VectorCache, "put", lambda cache, *of: (sizes.append(len(of[0])), put(cache, *of)))
    with limited(MemoryLimits(texts_per_write=shard)):
        all_of(Work(TEXTS, budget=7), tmp_path)
    assert sizes == files


def test_progress_counts_the_tokens_of_what_is_missing(tmp_path: Path) -> None:
    all_of(Work(["ddddddd", "a"]), tmp_path)
    steps: list[tuple[str, int, int]] = []
    with listening(lambda *step: steps.append(step)):
        compute_missing(Work(TEXTS).job(), VectorCache(tmp_path), "filling")
    missing = 16 * (sum(map(len, TEXTS)) - 8)
    assert steps[0] == ("filling", 0, missing)
    assert steps[-1] == ("filling", missing, missing)
    assert [done for _, done, _ in steps] == sorted(done for _, done, _ in steps)


def test_a_batch_is_prepared_beside_the_one_before(tmp_path: Path) -> None:
    """The second batch is prepared in another thread while the first one waits for just that."""
    here, second = threading.get_ident(), threading.Event()
    threads: list[int] = []

    def prepare(positions: Ints) -> Ints:
        threads.append(threading.get_ident())
        if len(threads) == 2:
            second.set()
        return positions

    def forward(positions: Ints) -> Vectors:
        assert second.wait(30)
        return np.zeros((len(positions), 1), dtype=np.float32)

    compute_missing(
        BatchJob(content_keys("ab"), ints(5, 5), prepare, forward, shapes=BatchShapes(5)), VectorCache(tmp_path), "x"
    )
    assert len(threads) == 2
    assert here not in threads


def test_an_error_while_preparing_comes_through(tmp_path: Path) -> None:
    def prepare(positions: Ints) -> Any:
        raise UserError("no such token")

    job = BatchJob(content_keys("a"), ints(1), prepare, lambda features: np.zeros((1, 1), dtype=np.float32))
    with pytest.raises(UserError, match="no such token"):
        compute_missing(job, VectorCache(tmp_path), "x")


def test_a_cache_that_cannot_be_is_said_before_any_work(tmp_path: Path) -> None:
    folder = write(tmp_path / "file", "x") / "below"
    work = Work(TEXTS)
    with pytest.raises(UserError) as caught:
        all_of(work, folder)
    message = "cannot be written: Not a directory; choose another place (RANKTILT_CACHE names the cache's folder)"
    assert str(caught.value) == f"{folder}: {message}"
    assert (work.batches, work.prepared, work.entered) == ([], [], 0)


def test_a_full_disk_is_one_clear_line_and_what_was_stored_stays(tmp_path: Path) -> None:
    many = [f"{i:03}" for i in range(400)]
    with limited(MemoryLimits(texts_per_write=1)):
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

    with pytest.raises(UserError, match=r"what was stored is gone; was the cache pruned meanwhile\? Run it again$"):
        compute_missing(Work(TEXTS).job(), Pruned(tmp_path), "x")


# Killed


SLOW = """
import sys, time
from pathlib import Path
import numpy as np
from ranktilt.io.cache import VectorCache, content_keys
from ranktilt.executing.memory_limits import MemoryLimits, limited
from ranktilt.models.batching import BatchJob, BatchShapes, compute_missing

folder, log, pause = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
texts = ["x" * (1 + i % 37) + str(i) for i in range(300)]

def forward(positions):
    time.sleep(pause)
    with log.open("a") as stream:
        stream.write("".join(f"{i}\\n" for i in positions))
    return np.stack([np.random.default_rng(i).normal(size=8) for i in positions]).astype(np.float32)

lengths = np.array([len(t) for t in texts])
with limited(MemoryLimits(texts_per_write=16)):
    job = BatchJob(content_keys(texts), lengths, lambda p: p, forward, shapes=BatchShapes(100))
    stored = compute_missing(job, VectorCache(folder), "x")
print(stored.read(0, 300).tobytes().hex())
"""


def slow(folder: Path, pause: float) -> list[str]:
    return [sys.executable, "-c", SLOW, str(folder / "cache"), str(folder / "log"), str(pause)]


def test_after_a_kill_nothing_finished_is_computed_again_and_the_bits_are_the_same(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    (tmp_path / "killed").mkdir()
    expected = subprocess.run(slow(tmp_path / "whole", 0), capture_output=True, text=True, check=True).stdout
    cache, log = tmp_path / "killed" / "cache", tmp_path / "killed" / "log"
    with subprocess.Popen(slow(tmp_path / "killed", 0.02)) as process:
        while count_vectors(cache) < 64:
            assert process.poll() is None
            time.sleep(0.01)
        process.kill()
    stored = sum(p.stat().st_size for p in cache.glob("*.vectors"))
    before = log.read_text().split()
    assert stored
    assert 64 <= len(before) < 300
    log.unlink()
    resumed = subprocess.run(slow(tmp_path / "killed", 0), capture_output=True, text=True, check=True).stdout
    after = log.read_text().split()
    assert resumed == expected
    assert len(before) + len(after) - 300 <= 16 + 8  # the shard that was not yet full, and the batch that filled it
    assert len(set(after)) == len(after)


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
