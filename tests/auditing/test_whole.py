"""An audit's file that no audit could have written is refused as it is read, in one line."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ranktilt import Audit, audit
from ranktilt.auditing.options import files_of_runs
from ranktilt.errors import DataError, UserError
from ranktilt.reporting.reload import LoadedAudit
from ranktilt.reporting.report import report_page
from tests.toy import run_of, toy

FOUND = {"q1": {"d1-human": 2.0, "d1-llm": 1.0}, "q2": {"d2-llm": 2.0}, "q3": {"d3-human": 1.0}}
GONE = object()


def made() -> Audit:
    collection = toy()
    runs = [run_of(collection, FOUND, ranker=name) for name in ("one", "two")]
    return audit(collection, runs, ["nDCG@1", "RR"], card=True, resamples=100)


CONTENT = json.loads(made().to_json())


def changed(where: Sequence[str | int], value: object) -> dict[str, Any]:
    content: Any = json.loads(json.dumps(CONTENT))
    part = content
    for name in where[:-1]:
        part = part[name]
    if value is GONE:
        del part[where[-1]]
    else:
        part[where[-1]] = value
    return dict(content)


def read(folder: Path, content: dict[str, Any]) -> Audit:
    file = folder / "audit.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    return Audit.load(file)


def test_what_an_audit_wrote_is_read(tmp_path: Path) -> None:
    assert read(tmp_path, CONTENT) == made()


@pytest.mark.parametrize(
    ("where", "value", "said"),
    [
        (["runs"], GONE, "KeyError: 'runs'"),
        (["spec", "ties"], GONE, "Object missing required field `ties`"),
        (["spec", "ties"], "mine", "unknown ties 'mine' (valid: expected, trec_eval)"),
        (["spec", "level"], "x", "expected a margin of at least 0, such as 5 (points)"),
        (["spec", "inputs"], [{"path": "a"}], "inputs[0]: Object missing required field `sha256`"),
        (["runs", 0], "two", "runs: expected each name once"),
        (["groups", 0], "every", "groups: expected 'all' first"),
        (["values", 0, 0, 0, 0], 1 + 2e-9, "values: expected numbers from 0 to 1"),
        (["tilts", 0, "a"], "x", "a: 'x' is not among the audit's groups"),
        (["tilts", 0], GONE, "tilts: expected one for each run, measure and pair of groups"),
        (["pair_counts", "wins"], {"a": 1}, "pair_counts: expected columns of one length"),
        (["pair_counts", "query", 0], "q9", "pair_counts: expected each of the audit's queries once"),
        (["card", 0, "run"], "x", "run: 'x' is not among the audit's runs"),
        (
            ["card", 0, "extra"],
            {"ties": 1, "pairs": 2, "wins": 1},
            "extra: expected pairs, wins, losses, ties beside ties",
        ),
        (["confounds", 0, "name"], "x", "confound: 'x' is not among the audit's confounds"),
    ],
)
def test_a_part_that_cannot_be_is_named(tmp_path: Path, where: list[str | int], value: object, said: str) -> None:
    with pytest.raises(DataError) as caught:
        read(tmp_path, changed(where, value))
    assert str(caught.value).startswith(f"{tmp_path / 'audit.json'}: is not a whole audit: ")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (["values", 0, 0, 0, 0], 1 + 1e-9), (["values", 0, 0, 0, 0], -1e-9), (["spec", "level"], 0.0),
        (["spec", "resamples"], 100), (["spec", "seed"], 0), (["repeated"], {"one": {"q2": "q1", "q3": "q1"}}),
    ],
)  # fmt: skip
def test_what_can_just_be_is_read(tmp_path: Path, where: list[str | int], value: object) -> None:
    assert read(tmp_path, changed(where, value)).runs == ("one", "two")


def test_twins_are_counted_for_every_run(tmp_path: Path) -> None:
    counts = CONTENT["pair_counts"]
    kept = [place for place, run in enumerate(counts["run"]) if run == "one"]
    some = {name: [column[place] for place in kept] for name, column in counts.items()}
    with pytest.raises(DataError, match="pair_counts: expected each run and pair once"):
        read(tmp_path, changed(["pair_counts"], some))


def places(part: Any, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every part of the content; of a list the first."""
    inside = part.items() if isinstance(part, dict) else enumerate(part[:1]) if isinstance(part, list) else ()
    return [at, *(found for name, one in inside for found in places(one, (*at, name)))]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(where=st.sampled_from(places(CONTENT)[1:]), value=st.sampled_from([None, 5, "x", [], {}, [None], True, GONE]))
def test_whatever_is_changed_the_page_is_made_or_one_line_says_why(
    tmp_path: Path, where: tuple[str | int, ...], value: object
) -> None:
    try:
        page = report_page([LoadedAudit(read(tmp_path, changed(where, value)))])
    except UserError as error:
        page = str(error)
    assert page.startswith("<!DOCTYPE html>") or "\n" not in page


def test_files_of_candidates_are_files_of_runs() -> None:
    specs = [{"file": "a"}, {"candidates": {"ranker": "x", "candidates": {"file": "b"}}}, {"file": "a"}, {}, None]
    assert files_of_runs(specs) == ["a", "b"]
