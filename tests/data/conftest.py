"""Readers are tested with files that are read a few bytes at a time, so that records lie across chunks, and at once."""

import pytest

from ranktilt.data import files


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what uses `chunks` with both sizes; real files are large, and properties choose their sizes themselves."""
    if "chunks" in metafunc.fixturenames:
        real = metafunc.definition.get_closest_marker("data") is not None
        both = not (real or hasattr(metafunc.function, "hypothesis"))
        metafunc.parametrize("chunks", [5, files.CHUNK] if both else [files.CHUNK], indirect=True)


@pytest.fixture
def chunks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CHUNK", request.param)
