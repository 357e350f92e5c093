"""A study as a file: it comes back equal, and what is none is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ranktilt.auditing.study import Study, study
from ranktilt.errors import DataError
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


def altered(folder: Path, **fields: Any) -> Path:
    path = folder / "altered.json"
    path.write_text(json.dumps({**json.loads(toy_study().to_json()), **fields}), encoding="utf-8")
    return path


CONTENT: dict[str, Any] = json.loads(toy_study().to_json())


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"runs": []}, "expected a ranker, a measure and a source at least"),
        ({"runs": "bm25"}, "runs: Expected `array`, got `str`"),
        ({"arms": [{"source": "x"}]}, "missing required field `series`"),
        ({"tilts": CONTENT["tilts"][1:]}, "no Relative Δ of bm25, llama-tmp0.2, nDCG@3"),
        ({"spec": {"level": ""}}, "level: expected a number, got ''"),
    ],
)
def test_a_damaged_one_is_refused_by_name(damage: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = altered(tmp_path, **damage)
    with pytest.raises(DataError) as caught:
        Study.load(path)
    assert str(caught.value).startswith(f"{path}: is not a whole study: ")
    assert message in str(caught.value)
