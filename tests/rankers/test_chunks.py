"""Chunk sizes can be set for a while, and change no score that matters."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktilt.cache import cache_folder
from ranktilt.rankers import chunks
from ranktilt.rankers.chunks import Chunks, chunked
from ranktilt.rankers.dense import Dense
from ranktilt.rankers.encoder import Encoder
from tests.toy import toy


def test_usual_sizes_hold_outside_and_are_back_afterwards(tmp_path: Path) -> None:
    usual = (7, 8, 9, cache_folder())

    def sizes() -> tuple[int, int, int, Path]:
        return chunks.cells(7), chunks.shard(8), chunks.piece(9), chunks.vector_folder()

    assert sizes() == usual
    with chunked(Chunks(1, 2, 3, tmp_path)):
        assert sizes() == (1, 2, 3, tmp_path)
        with chunked(Chunks(piece=5)):
            assert sizes() == (7, 8, 5, cache_folder())
        assert sizes() == (1, 2, 3, tmp_path)
    assert sizes() == usual


def test_they_are_back_after_an_error() -> None:
    with pytest.raises(ValueError, match="stop"), chunked(Chunks(1, 1, 1)):
        raise ValueError("stop")
    assert chunks.piece(64) == 64


@pytest.mark.neural
@pytest.mark.parametrize(("piece", "most"), [(1, 1), (2, 2), (None, 6)])
def test_the_encoder_gets_no_more_texts_at_once(
    tiny: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch, piece: int | None, most: int
) -> None:
    sizes: list[int] = []
    forward = Encoder._forward

    def counting(self: Encoder, texts: list[str], kind: Any) -> Any:
        sizes.append(len(texts))
        return forward(self, texts, kind)

    monkeypatch.setattr(Encoder, "_forward", counting)
    with chunked(Chunks(piece=piece)):
        Dense(str(tiny)).rank(toy())
    assert max(sizes) == most


@pytest.mark.neural
def test_a_cache_of_its_own_leaves_the_usual_one_alone(tiny: Path, own_cache: Path, tmp_path: Path) -> None:
    away = tmp_path / "away"
    with chunked(Chunks(shard=2, cache=away)):
        Dense(str(tiny)).rank(toy())
    assert len(list(away.rglob("*.npy"))) == 3 + 2  # six documents and three queries, two a shard
    assert not list((own_cache / "embeddings").rglob("*.npy"))


@pytest.mark.neural
@pytest.mark.parametrize("sizes", [Chunks(1, 1, 1), Chunks(5, 4, 3), Chunks(1 << 20, 100, 50)])
def test_scores_stay_what_they_are(tiny: Path, own_cache: Path, tmp_path: Path, sizes: Chunks) -> None:
    one = Dense(str(tiny), precision="float32")
    usual = one.rank(toy())
    with chunked(Chunks(sizes.cells, sizes.shard, sizes.piece, tmp_path / "away")):
        found = one.rank(toy())
    assert np.array_equal(found.docs, usual.docs)
    assert found.scores == pytest.approx(usual.scores, abs=1e-6)
