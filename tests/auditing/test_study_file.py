"""A study as a file: it comes back equal."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ranktilt.auditing.study import Study, study
from tests.auditing.studied import decided, studied
from tests.reporting.studies import timeless_study, toy_study


def made() -> Study:
    return study(studied(), [decided()], ["nDCG@1", "AP@3"], resamples=300)


@pytest.mark.parametrize("name", ["study.json", "study.json.gz"])
@pytest.mark.parametrize("make", [toy_study, timeless_study, made])
def test_it_comes_back_equal(make: Callable[[], Study], name: str, tmp_path: Path) -> None:
    found = make()
    path = found.save(tmp_path / name)
    back = Study.load(path)
    assert (path.read_bytes()[:2] == b"\x1f\x8b") is name.endswith(".gz")
    assert back == found
    assert back.to_json() == found.to_json()
    assert repr((back.sources, back.tilts, back.trends)) == repr((found.sources, found.tilts, found.trends))
    assert back.table.equals(found.table, null_equal=True)
    assert back.sentences == found.sentences
