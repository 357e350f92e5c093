"""Chunk sizes and the memory can be set for a while, and change no score that matters."""

import os
from pathlib import Path

import pytest

from ranktilt.executing import memory_limits as chunks
from ranktilt.executing.memory_limits import MemoryLimits, available_memory, limited, read_size
from tests.refusals import refused

GB = 10**9


def test_usual_sizes_hold_outside_and_are_back_afterwards() -> None:
    usual = (available_memory() // 4, 8)

    def sizes() -> tuple[int, int]:
        return chunks.memory_limit(), chunks.index_files_from(8)

    assert sizes() == usual
    with limited(MemoryLimits(1, 2)):
        assert sizes() == (1, 2)
        with limited(MemoryLimits(index_files_from=0)):
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


@pytest.mark.parametrize("text", ["", "GB", "-1GB", "1 PB", "1GB2", "1,5GB", "nan", "1e9"])
def test_what_is_no_size_is_refused_with_examples(text: str) -> None:
    with refused(f"memory: expected a size such as 1GB, 512MB or 0.5GiB, got {text!r}"):
        read_size(text)
    with refused("memory: expected at least 64MiB, got '64MB'"):
        read_size("64MB")


def test_by_default_the_memory_is_a_quarter_of_the_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "_OWN_CGROUPS", Path("absent"))
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert chunks.memory_limit() == whole // 4


@pytest.mark.parametrize(
    ("own", "limits", "expected"),
    [
        ("0::/a/b\n", {"a/b/memory.max": "1000000", "a/memory.max": "max"}, 1_000_000),
        ("0::/a/b\n", {"a/b/memory.max": "max", "a/memory.max": "2000000\n"}, 2_000_000),
        ("0::/\n", {"memory.max": "3000000\n"}, 3_000_000),
        ("0::/not/seen\n", {"memory.max": "4000000\n"}, 4_000_000),
        ("0::/a\n", {"a/memory.max": "max\n"}, None),
        ("0::/a\n", {"a/memory.max": "9223372036854771712\n"}, None),
        ("nonsense\n", {}, None),
    ],
)
def test_a_limit_of_the_control_group_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str, limits: dict[str, str], expected: int | None
) -> None:
    (tmp_path / "own").write_text(own)
    for name, text in limits.items():
        file = tmp_path / "cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.setattr(chunks, "_CGROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(chunks, "_OWN_CGROUPS", tmp_path / "own")
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert available_memory() == (expected or whole)


@pytest.mark.parametrize(("quota", "expected"), [("max 100000", 8), ("150000 100000\n", 2), ("50000 100000\n", 1)])
def test_processors_are_those_of_the_container(
    quota: str, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpu.max").write_text(quota)
    monkeypatch.setattr(chunks, "_CPU_QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)))
    assert chunks.processors() == expected
