"""Documents that a query has twice are found, whatever the number of queries and documents."""

import numpy as np
import pytest

from ranktilt.data.runs.run_entries import first_repeated


def first_repeated_by_hand(query: list[int], docs: list[int]) -> int | None:
    seen = set()
    for index, key in enumerate(zip(query, docs, strict=True)):
        if key in seen:
            return index
        seen.add(key)
    return None


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("largest", [40, 3_000_000, 2**31 - 2])
def test_first_repeated_document(seed: int, largest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Seven entries at a time, so that lists end inside, at and after the end of a part.
    monkeypatch.setattr("ranktilt.data.runs.run_entries._ENTRIES_PER_SORT", 7)
    monkeypatch.setattr("ranktilt.data.runs.run_entries._QUERIES_PER_SORT", 3)
    rng = np.random.default_rng(seed)
    query = rng.integers(0, 12, 60)
    if seed % 3:
        query = np.sort(query)
    docs = rng.integers(0, largest, 60).astype(np.int32)
    expected = first_repeated_by_hand(query.tolist(), docs.tolist())
    assert first_repeated(query, docs) == expected


def test_no_entries_have_no_repeated_document() -> None:
    assert first_repeated(np.empty(0, np.int64), np.empty(0, np.int32)) is None
