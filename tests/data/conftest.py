"""Test readers with chunks of a few bytes, which cut records, and with the usual ones."""

import pytest

from ranktilt.data import files


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests that use `chunks` with both sizes; properties and tests of real files have their
    own.
    """
    if "chunks" in metafunc.fixturenames:
        real = metafunc.definition.get_closest_marker("data") is not None
        both = not (real or hasattr(metafunc.function, "hypothesis"))
        metafunc.parametrize("chunks", [5, files.CHUNK] if both else [files.CHUNK], indirect=True)


@pytest.fixture
def chunks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CHUNK", request.param)
