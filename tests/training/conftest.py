"""Fixtures that the tests of training share."""

from pathlib import Path

import pytest

from tests.rankers.tiny import tiny_model


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny encoder's folder."""
    return tiny_model(tmp_path_factory.mktemp("tiny"))
