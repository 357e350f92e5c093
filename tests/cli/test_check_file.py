"""ranktilt check FILE: what a file is, what can be asked of it, what is missing, and the command to
type.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

import ranktilt as rt
from ranktilt.data.formats.recognition import EVALUATIONS, kinds_of
from tests.cli.conftest import Cli
from tests.toy import run_of, toy, write


@dataclass(frozen=True, kw_only=True)
class Case:
    name: str
    content: str
    kind: str
    contents: dict[str, str]
    command: str
    """Its first command, with FILE for the file."""


CASES = [
    Case(
        name="run",
        content="q1 Q0 a 1 2.5 engine\nq1 Q0 b 2 1.5 engine\nq2 Q0 a 1 3 engine\n",
        kind="a run",
        contents={
            "queries": "2",
            "documents": "2",
            "results": "3",
            "results per query": "1.5 (median)",
            "scores": "yes",
        },
        command="ranktilt audit --run FILE --groups LABELS --qrels QRELS",
    ),
    Case(
        name="judgments",
        content="query,docid,rating\nq1,a,2\nq1,b,0\nq2,a,0\n",
        kind="judgments",
        contents={"queries": "2", "documents": "2", "judgments": "3", "grades": "0: 2, 2: 1"},
        command="ranktilt audit --run RUN --groups LABELS --qrels FILE",
    ),
    Case(
        name="labels",
        content="url,is_ai\na,1\nb,0\nc,0\n",
        kind="labels",
        contents={"documents": "3", "groups (is_ai)": "is_ai 0: 2, is_ai 1: 1"},
        command="ranktilt audit --run RUN --groups FILE --by is_ai",
    ),
    Case(
        name="queries",
        content="qid\tquery\nq1\tcold tea\n",
        kind="queries",
        contents={"queries": "1"},
        command="ranktilt audit --run RESPONSES --queries FILE --groups LABELS",
    ),
    Case(
        name="documents",
        content='{"_id": "a", "text": "x", "is_ai": 1}\n{"_id": "b", "text": "y", "is_ai": 0}\n'
        '{"_id": "c", "text": "z", "is_ai": 0}\n',
        kind="documents",
        contents={"documents": "3", "columns that could be the source": "is_ai"},
        command="ranktilt audit FOLDER -r bm25 --by is_ai",
    ),
    Case(
        name="values per query",
        content="runid,topic,ndcg@20\na,1,0.5\na,2,0.25\nb,1,0.5\n",
        kind="values per query",
        contents={},
        command="ranktilt judge --scores HUMAN --scores FILE",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_file_is_described(case: Case, cli: Cli, tmp_path: Path) -> None:
    path = write(tmp_path / "file", case.content)
    code, out, _ = cli("check", path, "--format", "json")
    report = json.loads(out)
    assert (code, report["kind"], report["contents"]) == (0, case.kind, case.contents)
    command = case.command.replace("FILE", str(path)).replace("FOLDER", str(tmp_path))
    assert report["commands"][0] == command
    code, out, _ = cli("check", path)
    assert code == 0
    assert f"{path}: {case.kind}" in out
    assert f"Type: {command}" in " ".join(out.split())


def test_named_columns_say_what_a_file_is(cli: Cli, tmp_path: Path) -> None:
    path = write(tmp_path / "file.csv", "ask,page,stars\nq1,a,2\n")
    code, out, _ = cli("check", f"{path}:query=ask,id=page,grade=stars", "--format", "json")
    report = json.loads(out)
    assert (code, report["kind"], report["contents"]["grades"]) == (0, "judgments", "2: 1")
    assert f"--qrels {path}:query=ask,id=page,grade=stars" in report["commands"][0]


def test_responses_without_queries_say_what_they_need(cli: Cli, tmp_path: Path) -> None:
    content = '{"took": 1, "hits": {"hits": [{"_id": "a", "_score": 1.0}]}}'
    path = write(tmp_path / "response.json", content)
    code, out, _ = cli("check", path, "--format", "json")
    report = json.loads(out)
    assert (code, report["kind"], report["is_readable"]) == (1, "a run", False)
    assert "--queries FILE" in report["notes"][0]["error"]
    write(tmp_path / "folder" / "q1.json", content)
    code, out, _ = cli("check", tmp_path / "folder", "--format", "json")
    assert (code, json.loads(out)["contents"]["queries"]) == (0, "1")


def test_an_audit_is_described(cli: Cli, tmp_path: Path) -> None:
    run = run_of(toy(), {"q1": {"d1-human": 2.0, "d1-llm": 1.0}})
    path = rt.audit(toy(), run).save(tmp_path / "audit.json")
    code, out, _ = cli("check", path, "--format", "json")
    report = json.loads(out)
    assert (code, report["kind"]) == (0, "an audit")
    assert f"ranktilt explain {path}" in report["commands"]
    assert f"ranktilt gate {path} --max-tilt 5" in report["commands"]


def test_answers_with_citations_are_described(cli: Cli, tmp_path: Path) -> None:
    lines = [
        '{"query": "q1", "cited": ["a.com/1", "b.com/2"]}',
        '{"query": "q2", "cited": ["a.com/1"], "not_cited": ["c.com/3"]}',
    ]
    path = write(tmp_path / "answers.jsonl", "\n".join(lines) + "\n")
    code, out, _ = cli("check", path)
    assert code == 0
    assert f"{path}: answers with citations" in out
    assert " answers     2" in out
    assert " citations   3" in out
    assert f"Type: ranktilt cite {path} --groups PAGES.csv:id=url,source=COLUMN" in out


def test_unknown_file_is_one_line(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "table.xlsx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
        archive.writestr("xl/workbook.xml", "<workbook/>")
    code, out, err = cli("check", path)
    assert (code, out) == (2, "")
    assert f"{path}: is an office document; save it as CSV" in err
    write(tmp_path / "page", "<html><body>404</body></html>")
    code, _, err = cli("check", tmp_path / "page")
    assert code == 2
    assert "got a web page; download the file itself, not the page that shows it" in err


def test_distances_are_a_run_and_no_judgments(cli: Cli, tmp_path: Path) -> None:
    rows = [f"q{n % 4},d{n},{0.1 + n / 100}" for n in range(40)]
    path = write(tmp_path / "distance.csv", "\n".join(["query_id,doc_id,score", *rows]) + "\n")
    _, out, _ = cli("check", path, "--format", "json")
    report = json.loads(out)
    assert (report["kind"], report["is_readable"]) == ("a run", False)
    assert "--score-order ascending" in out


def test_few_grades_called_score_are_judgments_too(cli: Cli, tmp_path: Path) -> None:
    rows = [f"q{n % 4},d{n},{n % 3}" for n in range(40)]
    path = write(tmp_path / "graded.csv", "\n".join(["query_id,doc_id,score", *rows]) + "\n")
    _, out, _ = cli("check", path, "--format", "json")
    assert "judgments" in out


def test_values_per_query_are_known_by_a_column_of_a_measure() -> None:
    assert kinds_of(["query_id", "nDCG@10"]) == (EVALUATIONS,)
    assert kinds_of(["query_id", "seconds", "clicks"]) == ()
