"""Files are read a few bytes at a time in the tests of readers, so that every record lies across chunks."""

import pytest

from ranktilt.io import files


@pytest.fixture
def small_chunks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change the size of a chunk, but for real files, which are large."""
    if not request.node.get_closest_marker("data"):
        monkeypatch.setattr(files, "CHUNK", 5)
