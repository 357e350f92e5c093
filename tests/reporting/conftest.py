"""Pages are opened in a real browser: one program for all tests of a process, a profile of its own
for each file.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reporting.browser import Browser, Chromium
from tests.toy import write_cocktail


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_cocktail(tmp_path / "toy")
    return tmp_path


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    """The browser's program; skips the test where it or its driver is not installed."""
    with Chromium() as program:
        yield program


@pytest.fixture(scope="module")
def browser(chromium: Chromium) -> Iterator[Browser]:
    """One profile for each file: pages keep nothing, and a warm browser opens them four times as
    fast.
    """
    with Browser(chromium=chromium) as profile:
        yield profile
