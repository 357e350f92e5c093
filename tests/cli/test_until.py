"""ranktilt audit --stop-at-tilt: a live engine is asked until a tilt is decided."""

import sys
from pathlib import Path

import pytest

import ranktilt as rt
from tests.cli.conftest import Cli, refused

ENGINE = """
import ranktilt as rt
collection = rt.bundled()
run = rt.ranker("bm25@30").rank(collection).frame()
lists = {name: rows for (name,), rows in run.group_by("query_id")}
names = dict(zip(collection.queries["text"], collection.queries["id"]))
def search(query, k):
    found = lists[names[query]]
    return list(zip(found["doc_id"], found["score"]))[:k]
"""


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...]:
    """A folder with an engine, labels and queries; the options that name them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "asked_engine", raising=False)
    Path("asked_engine.py").write_text(ENGINE, "utf-8")
    collection = rt.bundled()
    collection.docs.select(doc_id="id", source="source").write_parquet("labels.parquet")
    lines = (f"{name}\t{text}\n" for name, text in collection.queries.select("id", "text").rows())
    Path("queries.tsv").write_text("".join(lines), "utf-8")
    return ("--engine", "asked_engine:search@30", "--groups", "labels.parquet", "--queries", "queries.tsv")


def test_a_live_engine_is_asked_until_a_tilt_is_decided(cli: Cli, engine: tuple[str, ...]) -> None:
    code, out, _ = cli("audit", *engine, "--stop-at-tilt", "10", "-m", "Share@1", "--json", "s.json", "-o", "s.html")
    assert code == 0
    assert "engine:asked_engine:search@30 favours human, shown after" in out
    found = rt.SequentialAudit.load("s.json")
    assert (found.decision, found.of, found.stop_at_tilt) == ("tilted", 216, 10)
    assert found.asked < 216
    assert found.spec["collection"]["queries"] == "queries.tsv"
    assert "closed in" in Path("s.html").read_text("utf-8")
    assert cli("report", "s.json", "-o", "again.html").code == 0


def test_a_collection_and_any_ranker_will_do(cli: Cli, engine: tuple[str, ...]) -> None:
    rt.save(rt.bundled(), "bundled")
    code, out, _ = cli("audit", "bundled", "-r", "bm25", "--stop-at-tilt", "1", "--max-queries", "20", "--seed", "3")
    assert code == 0
    assert "bm25 is not decided after 20 queries and " in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--stop-at-tilt", "0"), "expected a tilt to be decided above 0, such as 10 (points), got 0"),
        ((), "--engine is about a sequential audit; name the tilt to be decided: --stop-at-tilt 10"),
        (("--stop-at-tilt", "10", "--card"), "--card is not about a sequential audit; leave it or --stop-at-tilt out"),
        (("--stop-at-tilt", "10", "--qrels", "none"), "--qrels is not about a sequential audit"),
        (("--stop-at-tilt", "10", "-r", "bm25"), "a sequential audit asks one ranker or live engine"),
        (
            ("--stop-at-tilt", "10", "-m", "Share@1", "-m", "Share@5"),
            "a sequential audit decides one measure of one pair",
        ),
        (("--stop-at-tilt", "10", "-m", "nDCG@5"), "nDCG@5 cannot be asked query after query"),
        (("--stop-at-tilt", "10", "--by", "none"), "a sequential audit needs a column of groups (by)"),
        (("--stop-at-tilt", "10", "--by", "gender"), "unknown column 'gender'"),
    ],
)
def test_mistakes_end_in_one_line(cli: Cli, engine: tuple[str, ...], arguments: tuple[str, ...], message: str) -> None:
    assert message in refused(cli, "audit", *engine, *arguments)


def test_without_labels_or_queries_there_is_nothing_to_ask(cli: Cli, engine: tuple[str, ...]) -> None:
    assert "Name --queries FILE and --groups FILE, or DIR" in refused(cli, "audit", *engine[:4], "--stop-at-tilt", "10")
