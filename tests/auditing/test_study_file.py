"""A study as a file: it comes back equal, and what is none is refused."""

import json
from collections.abc import Callable
from dataclasses import replace
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


def test_verdicts_and_lines_come_back(tmp_path: Path) -> None:
    found = made()
    back = Study.load(found.save(tmp_path / "study.json"))
    run = found.runs[0]
    assert [back.verdict(run, arm.source) for arm in back.sources] == [
        found.verdict(run, arm.source) for arm in back.sources
    ]
    assert back.points(run, "nDCG@1", "llm") == found.points(run, "nDCG@1", "llm")
    assert (back.level, back.series, hash(back)) == (found.level, found.series, hash(found))


def test_studies_differ_by_a_tilt() -> None:
    one = toy_study()
    assert replace(one, tilts=(replace(one.tilts[0], value=1.0), *one.tilts[1:])) != one
    assert one != "study"


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
        ({"reference": 3}, "reference: Expected `str`, got `int`"),
        ({"arms": [{"source": "x"}]}, "missing required field `series`"),
        ({"tilts": CONTENT["tilts"][1:]}, "no Relative Δ of bm25, llama-tmp0.2, nDCG@3"),
        ({"tilts": [{**CONTENT["tilts"][0], "p": "none"}]}, "p: Expected `float`, got `str`"),
        ({"trends": [{**CONTENT["trends"][0], "values": 3}]}, "values: Expected `array`, got `int`"),
        ({"spec": []}, "spec: Expected `object`, got `array`"),
        ({"spec": {"level": ""}}, "level: expected a number, got ''"),
        ({"notes": None}, "notes: Expected `array`, got `null`"),
    ],
)
def test_a_damaged_one_is_refused_by_name(damage: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = altered(tmp_path, **damage)
    with pytest.raises(DataError) as caught:
        Study.load(path)
    assert str(caught.value).startswith(f"{path}: is not a whole study: ")
    assert message in str(caught.value)


def test_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "study.json"
    path.write_bytes(toy_study().to_json()[:500])
    with pytest.raises(DataError, match="expected a study as JSON: "):
        Study.load(path)


def test_another_result_is_named(tmp_path: Path) -> None:
    path = altered(tmp_path, format="ranktilt-audit")
    with pytest.raises(DataError) as caught:
        Study.load(path)
    assert str(caught.value) == (
        f"{path}: expected a study (format 'ranktilt-study'), got format 'ranktilt-audit'; ranktilt study --json FILE "
        "makes one"
    )


def test_a_newer_one(tmp_path: Path) -> None:
    path = altered(tmp_path, version=2)
    with pytest.raises(
        DataError,
        match="is a study of format 2, this RankTilt reads up to 1;",
    ):
        Study.load(path)
