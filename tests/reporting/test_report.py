"""The one call that makes a report: from results, from their files, and from what is at hand."""

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

import ranktilt as rt
from ranktilt import Audit, Collection, Run
from ranktilt.errors import DataError, UserError
from ranktilt.reporting.reload import LoadedAudit, reload
from ranktilt.reporting.report import PAPER_RESULTS, opened, read_result, report, report_page
from tests.reporting.audits import clear
from tests.reporting.markup import Markup
from tests.reporting.results import result
from tests.reporting.studies import toy_study
from tests.toy import run_of, toy, write, write_cocktail

QUICK: dict[str, Any] = {"resamples": 100}
FOUND = {
    "q1": {"d1-human": 3.0, "d1-llm": 2.0},
    "q2": {"d2-llm": 2.0, "d2-human": 1.0},
    "q3": {"d3-human": 2.0, "d3-llm": 1.0},
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_cocktail(tmp_path / "toy")
    return tmp_path


def audited(path: str = "toy", rankers: tuple[str, ...] = ("bm25",)) -> tuple[Audit, Collection, list[Run]]:
    collection = rt.load(path)
    runs = [rt.ranker(text).rank(collection) for text in rankers]
    return rt.audit(collection, runs, **QUICK), collection, runs


def explorers(file: Path) -> list[Any]:
    blocks = re.findall(r'<script type="[^"]*" id="[^"]*-lists"[^>]*>([^<]*)</script>', file.read_text("utf-8"))
    return [json.loads(gzip.decompress(base64.b64decode(block))) for block in blocks]


def parts(file: Path) -> list[str]:
    return re.findall(r"<h2[^>]*>([^<]*)</h2>", file.read_text("utf-8"))[:-1]


def test_a_result_becomes_a_page_with_its_queries(here: Path) -> None:
    audit, _, _ = audited()
    made = rt.report(audit, "report.html")
    assert made == Path("report.html")
    assert explorers(made)[0]["runs"] == ["bm25"]
    assert {query["id"] for query in explorers(made)[0]["queries"]} == {"q1", "q2", "q3"}


def test_a_file_becomes_the_same_page(here: Path) -> None:
    audit, _, _ = audited()
    audit.save("audit.json")
    one = rt.report(audit, "one.html").read_bytes()
    assert rt.report("audit.json", "two.html").read_bytes() == one


def test_results_and_files_can_be_mixed_and_keep_their_order(here: Path) -> None:
    audit, _, _ = audited()
    audit.save("audit.json")
    made = rt.report([toy_study(), "audit.json", clear()], "report.html")
    assert parts(made) == ["Temperature study of toy", "Audit of toy", "Audit of rankers"]


def test_a_file_named_twice_counts_once(here: Path) -> None:
    audit, _, _ = audited()
    audit.save("audit.json")
    found = opened(["audit.json", here / "audit.json", audit, audit])
    assert [type(one) for one in found] == [LoadedAudit, LoadedAudit]


def test_a_collection_that_changed_is_left_out_and_said(here: Path) -> None:
    audit, _, _ = audited()
    (here / "toy" / "queries.jsonl").write_text("")
    made = rt.report(audit, "report.html")
    assert explorers(made) == []
    said = "The collection could not be opened again: queries.jsonl has changed since the audit."
    assert said in Markup(made.read_text("utf-8")).text


def test_a_collection_and_runs_at_hand_are_used(here: Path) -> None:
    collection = toy()
    run = run_of(collection, FOUND, ranker="mine")
    audit = rt.audit(collection, run, **QUICK)
    assert explorers(rt.report(audit, "without.html")) == []
    for runs in (run, [run], (one for one in [run])):
        made = rt.report(audit, "with.html", collection=collection, runs=runs)
        assert explorers(made)[0]["runs"] == ["mine"]


@pytest.mark.parametrize("count", [0, 2])
def test_a_collection_goes_with_one_audit(here: Path, count: int) -> None:
    audit, collection, _ = audited()
    other, _, _ = audited(rankers=("tfidf",))
    with pytest.raises(UserError) as error:
        rt.report([toy_study(), *[audit, other][:count]], "report.html", collection=collection)
    assert str(error.value) == f"a collection or runs go with one audit, got {count} of them"


def test_an_audit_is_not_overwritten_by_its_page(here: Path) -> None:
    audit, _, _ = audited()
    audit.save("audit.json")
    with pytest.raises(UserError) as error:
        report("audit.json", here / "audit.json")
    assert str(error.value) == f"{here / 'audit.json'}: this file is read too; choose another place for the page"
    assert Audit.load("audit.json") == audit


@pytest.mark.parametrize("strange", [3, {"a": 1}])
def test_what_is_no_result_is_refused(tmp_path: Path, strange: Any) -> None:
    with pytest.raises(UserError) as error:
        rt.report([strange], tmp_path / "report.html")
    assert str(error.value) == f"expected a result of RankTilt, or its file, got {strange!r}"


@pytest.mark.parametrize(
    "name", ["audit", "calibration", "check", "comparison", "gate", "replayed log", "spiral", "study", "validation"]
)
def test_each_kind_of_result_is_reported_from_its_file(tmp_path: Path, name: str) -> None:
    made = result(name)
    file = made.save(tmp_path / "found.json")
    (tmp_path / "found.json.gz").write_bytes(gzip.compress(file.read_bytes()))
    assert read_result(file) == read_result(tmp_path / "found.json.gz") == made
    shown = reload(made) if name == "audit" else made
    assert rt.report(file, tmp_path / "page.html").read_text("utf-8") == report_page([shown])


_VERBS = (
    "audit, check --full, data describe, study, explain, pairwise, level, study --vary training, tools spiral, "
    "audit --stop-at-tilt, compare, gate, tools calibrate, check, tools plan and tools replay-log"
)
MADE = f"ranktilt {_VERBS} write one with --json FILE"
WANTED = "a result of RankTilt"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("empty.json", "", "the file is empty"),
        ("page.html", "<!DOCTYPE html>", f"expected {WANTED} as JSON: "),
        ("plain.json", '{"a": 1}', f"expected {WANTED}, got JSON without a format; {MADE}"),
        ("other.json", '{"format": "geojson"}', f"expected {WANTED}, got format 'geojson'; {MADE}"),
        (
            "old.json",
            '{"format": "ranktilt-audit", "version": 99}',
            "is an audit of version 99, this RankTilt reads version 1",
        ),
        ("half.json", '{"format": "ranktilt-audit", "version": 1}', "was changed after ranktilt wrote it"),
    ],
)
def test_files_that_hold_no_result(tmp_path: Path, name: str, content: str, said: str) -> None:
    path = write(tmp_path / name, content)
    with pytest.raises(DataError) as error:
        read_result(path)
    assert str(error.value).startswith(f"{path}: {said.format(path=path)}")


@pytest.mark.parametrize(("name", "said"), [("gone.json", "No such file or directory"), ("", "Is a directory")])
def test_a_missing_file_and_a_folder_are_named(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(DataError) as error:
        read_result(tmp_path / name)
    assert str(error.value) == f"{tmp_path / name}: cannot be read: {said}"


def test_papers_take_some_kinds_of_results_only(tmp_path: Path) -> None:
    path = result("gate").save(tmp_path / "found.json")
    with pytest.raises(DataError) as error:
        read_result(path, PAPER_RESULTS)
    kinds = (
        "an audit, a validation, a study, an explanation, a pairwise audit, a comparison, a bench or a training study"
    )
    said = f"expected {kinds}, got a gate's report"
    verbs = "ranktilt audit, check --full, study, explain, pairwise, compare, level and study --vary training"
    assert str(error.value) == f"{path}: {said}; {verbs} write one with --json FILE"
