"""Fixtures that the tests of rankers share."""

from pathlib import Path

import pytest

from tests.rankers.tiny import tiny_model


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model's folder; its vectors are compared by cosine, as nothing says otherwise."""
    return tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test a cache of its own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("RANKTILT_CACHE", str(folder))
    return folder
