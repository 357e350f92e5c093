"""Some hundred damaged files over every reader; `scripts/fuzz.py` makes them, and thousands more when asked."""

import time
from pathlib import Path

import pytest

from ranktilt.errors import UserError
from scripts import fuzz

pytestmark = pytest.mark.long


def test_every_damaged_file_is_a_result_or_one_line() -> None:
    found = fuzz.faults(fuzz.NAMES, 1, range(15 * len(fuzz.NAMES)))
    assert not found, "python scripts/fuzz.py " + next(iter(found))


def test_a_reader_that_breaks_or_hangs_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(_: Path) -> None:
        raise UserError("no")

    def breaks(folder: Path) -> None:
        raise KeyError((folder / "a").read_text())

    monkeypatch.setattr(fuzz, "LIMIT", 1)
    assert fuzz.fault(refuses, {"a": b"x"}, tmp_path) == ""
    assert fuzz.fault(breaks, {"a": b"broken"}, tmp_path).endswith("KeyError: 'broken'\n")
    assert fuzz.fault(lambda _: time.sleep(20), {}, tmp_path).endswith("TimeoutError: over 1 s\n")
