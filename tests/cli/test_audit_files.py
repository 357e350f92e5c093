"""Every door of an audit reads files by their content and by named columns, and the numbers are
those of TREC's.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.toy import write

QUERIES = [f"q{number}" for number in range(12)]
DOCUMENTS = [f"http://site.org/d{number}" for number in range(8)]


def score(query: int, document: int) -> float:
    return float((7 * query + 5 * document) % 11) + document / 16


def ranked(query: int) -> list[int]:
    return sorted(range(len(DOCUMENTS)), key=lambda document: -score(query, document))


def trec_run() -> str:
    lines = []
    for query, name in enumerate(QUERIES):
        for rank, document in enumerate(ranked(query), start=1):
            lines.append(
                f"{name} Q0 {DOCUMENTS[document]} {rank} {score(query, document)} engine\n"
            )
    return "".join(lines)


def responses() -> str:
    by_query = {
        name: {
            "request": {"text": name},
            "found": {
                "pages": [
                    {"page": {"address": DOCUMENTS[document]}, "bm25": score(query, document)}
                    for document in ranked(query)
                ]
            },
        }
        for query, name in enumerate(QUERIES)
    }
    return json.dumps(by_query)


def graded() -> list[tuple[str, str, int]]:
    return [
        (name, DOCUMENTS[document], (query + document) % 3)
        for query, name in enumerate(QUERIES)
        for document in range(len(DOCUMENTS))
    ]


def audited(cli: Cli, *words: Any) -> dict[str, Any]:
    code, out, err = cli("audit", *words, "-m", "nDCG@5", "--json", "-")
    assert code == 0, err
    result: dict[str, Any] = json.loads(out)
    return {name: result[name] for name in ("tilts", "values", "queries", "groups", "measures")}


@pytest.fixture
def trec_files(tmp_path: Path) -> dict[str, Path]:
    labels = "".join(f"{name}\t{'human' if n % 2 else 'llm'}\n" for n, name in enumerate(DOCUMENTS))
    qrels = "".join(f"{query} 0 {document} {grade}\n" for query, document, grade in graded())
    return {
        "run": write(tmp_path / "engine.trec", trec_run()),
        "qrels": write(tmp_path / "qrels.txt", qrels),
        "groups": write(tmp_path / "labels.tsv", f"doc_id\tsource\n{labels}"),
    }


def test_named_columns_give_the_audit_of_trec_files(
    cli: Cli, tmp_path: Path, trec_files: dict[str, Path]
) -> None:
    expected = audited(cli, *(f"--{name}={path}" for name, path in trec_files.items()))
    run = write(tmp_path / "other" / "engine.json", responses())
    rows = "".join(f"{query};{document};{grade}\n" for query, document, grade in graded())
    qrels = write(tmp_path / "other" / "qrels.csv", f"ask;page;stars\n{rows}")
    labels = [
        {"doc": {"url": name}, "by": {"kind": "human" if n % 2 else "llm"}}
        for n, name in enumerate(DOCUMENTS)
    ]
    groups = write(tmp_path / "other" / "labels.json", json.dumps(labels))
    words = (
        f"--run={run}:hits=found.pages,id=page.address,score=bm25",
        f"--qrels={qrels}:query=ask,id=page,grade=stars",
        f"--groups={groups}:id=doc.url,source=by.kind",
    )
    assert audited(cli, *words) == expected
    saved = tmp_path / "audit.json"
    assert cli("audit", *words, "-m", "nDCG@5", "--json", saved)[0] == 0
    code, _, err = cli("report", saved, "-o", tmp_path / "page.html")
    assert code == 0, err
    assert "could not" not in err


def test_standard_input_is_a_run(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, trec_files: dict[str, Path]
) -> None:
    class Stdin:
        buffer = io.BytesIO(trec_run().encode())

    expected = audited(cli, *(f"--{name}={path}" for name, path in trec_files.items()))
    monkeypatch.setattr("sys.stdin", Stdin())
    others = (f"--{name}={trec_files[name]}" for name in ("qrels", "groups"))
    assert audited(cli, "--run", "-", *others) == expected


def test_a_folder_of_responses_is_a_run(
    cli: Cli, tmp_path: Path, trec_files: dict[str, Path]
) -> None:
    expected = audited(cli, *(f"--{name}={path}" for name, path in trec_files.items()))
    for query, name in enumerate(QUERIES):
        hits = [{"_id": DOCUMENTS[n], "_score": score(query, n)} for n in ranked(query)]
        content = json.dumps({"took": 1, "hits": {"hits": hits}})
        write(tmp_path / "engine" / f"{name}.json", content)
    others = (f"--{name}={trec_files[name]}" for name in ("qrels", "groups"))
    result = audited(cli, "--run", tmp_path / "engine", *others)
    assert result == expected


def test_a_file_behind_another_door_is_named(cli: Cli, trec_files: dict[str, Path]) -> None:
    run, qrels, groups = (trec_files[name] for name in ("run", "qrels", "groups"))
    for words, message in (
        ((f"--run={qrels}", f"--groups={groups}"), "judgments"),
        ((f"--run={groups}", f"--groups={groups}"), "labels are named with --groups"),
        ((f"--run={run}", f"--groups={groups}", f"--qrels={run}"), "a run is named with --run"),
        ((f"--run={run}", f"--groups={qrels}"), "judgments are named with --qrels"),
    ):
        code, _, err = cli("audit", *words)
        assert code == 2
        assert message in err
