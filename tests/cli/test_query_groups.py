"""--by-query on the command line: audit and cite, an audit that is made again, and a page."""

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import Cli

QUICK = ("--set", "statistics.resamples=300")
QUERIES, DOCUMENTS, DEPTH = 40, 90, 20


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run whose ai documents are higher in one topic, labels and topics."""
    folder = tmp_path_factory.mktemp("grouped")
    rng = np.random.default_rng(2)
    is_ai = rng.random(DOCUMENTS) < 0.5
    rows = [f"d{number},{'ai' if ai else 'human'}" for number, ai in enumerate(is_ai)]
    (folder / "labels.csv").write_text("\n".join(["doc_id,source", *rows]) + "\n")
    lines, topics = [], ["query_id,topic,year"]
    for query in range(QUERIES):
        topic = "health" if query % 2 else "law"
        topics.append(f"q{query},{topic},{1990 + query}")
        drawn = rng.choice(DOCUMENTS, DEPTH, replace=False)
        scores = rng.standard_normal(DEPTH) + 2.5 * is_ai[drawn] * (topic == "health")
        for rank, position in enumerate(np.argsort(-scores), start=1):
            document, score = drawn[position], scores[position]
            lines.append(f"q{query} Q0 d{document} {rank} {score:.6f} run")
    (folder / "run.trec").write_text("\n".join(lines) + "\n")
    (folder / "topics.csv").write_text("\n".join(topics) + "\n")
    return folder


def words(folder: Path, *more: str) -> list[str]:
    inputs = ["audit", "--run", str(folder / "run.trec"), "--groups", str(folder / "labels.csv")]
    return [*inputs, "--reference", "human", *QUICK, *more]


def test_audit_is_printed_paged_and_made_again(cli: Cli, labelled: Path, tmp_path: Path) -> None:
    topics = f"{labelled / 'topics.csv'}:topic"
    first, second, page = tmp_path / "first.json", tmp_path / "second.json", tmp_path / "page.html"
    printed = cli(*words(labelled, "--by-query", topics, "--json", str(first), "-o", str(page)))
    assert printed.code == 0, printed.err
    assert "run: the tilt differs between groups of queries by topic" in printed.out
    assert "it is largest in health, toward ai" in printed.out
    html = page.read_text()
    assert 'id="query-groups"' in html
    assert "Do the groups differ?" in html
    assert cli("audit", first, "--quiet", "--json", second).code == 0
    audits = [json.loads(path.read_text()) for path in (first, second)]
    assert audits[0]["by_query"] == audits[1]["by_query"]
    paths = [record["path"] for record in audits[0]["spec"]["inputs"]]
    assert str(labelled / "topics.csv") in paths


def test_numbers_in_parts(cli: Cli, labelled: Path) -> None:
    printed = cli(*words(labelled, "--by-query", f"{labelled / 'topics.csv'}:year:2"))
    assert printed.code == 0, printed.err
    assert "year 1990 to 2009" in printed.out
    assert "year 2010 to 2029" in printed.out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("topics.csv", "has 2 columns to group by (topic, year); name one: --by-query"),
        ("topics.csv:topik", "unknown column 'topik'; did you mean 'topic'?"),
        ("topics.csv:year", "column 'year' holds 40 different numbers; make parts of them: year:3"),
        ("labels.csv:source", "expected a table of queries with a column of their ids"),
    ],
)
def test_refused(cli: Cli, labelled: Path, text: str, message: str) -> None:
    refused = cli(*words(labelled, "--by-query", f"{labelled}/{text}"))
    assert refused.code == 2
    assert message in refused.err
    assert len(refused.err.strip().splitlines()) == 1


def test_column_without_its_file(cli: Cli, labelled: Path) -> None:
    refused = cli(*words(labelled, "--by-query", "topic"))
    assert refused.code == 2
    assert (
        "--by-query topic: nothing is known of the queries but their ids; name the file too: "
        "--by-query FILE:topic"
    ) in refused.err


def test_sequential_and_ungrouped_audits_refuse_it(cli: Cli, labelled: Path) -> None:
    topics = f"{labelled / 'topics.csv'}:topic"
    sequential = cli(*words(labelled, "--by-query", topics, "--stop-at-tilt", "5"))
    assert sequential.code == 2
    assert "--by-query does not apply to a sequential audit" in sequential.err
