"""ranktilt tools replay-log: exit 0, or 1 where too many answers hold no ranking; 2 for what cannot be replayed."""

import json
from pathlib import Path

import orjson
import pytest

from ranktilt.auditing.replay_log import ReplayedLog
from ranktilt.datasets.save import save
from ranktilt.run import Run
from tests.auditing.test_replay_log import CANDIDATES, EVERY, both, lists, llm_first, prose
from tests.cli.conftest import Cli, refused
from tests.rankers.llm.logged import logged, rank_llm_text


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log of prose and rankings, its candidates with texts and as a run, judgments, and the collection."""
    monkeypatch.chdir(tmp_path)
    texts = dict(EVERY.docs.select("id", "text").iter_rows())
    queries = dict(EVERY.queries.select("id", "text").iter_rows())
    for name, answer in (("both", both), ("prose", prose), ("llm", llm_first)):
        records, run = logged(lists(), queries, texts, answer)
        Path(f"{name}.json").write_text(rank_llm_text(records))
        Path(f"{name}.run").write_text(json.dumps({q: {d: -n for n, d in enumerate(docs)} for q, docs in run.items()}))
    ids, _ = logged(lists(), queries, texts, both, ids=True)
    Path("ids.jsonl").write_bytes(b"\n".join(map(orjson.dumps, ids)))
    hits = {q: [{"qid": q, "docid": d, "content": texts[d]} for d in docs] for q, docs in lists().items()}
    Path("texts.json").write_text(json.dumps([{"query": queries[q], "hits": found} for q, found in hits.items()]))
    later = [
        {
            "query": {"qid": q, "text": queries[q]},
            "candidates": [{"docid": d, "doc": {"contents": texts[d]}} for d in docs],
        }
        for q, docs in lists().items()
    ]
    Path("later.jsonl").write_text("\n".join(map(json.dumps, later)))
    CANDIDATES.save("candidates.trec")
    rows = EVERY.qrels.select("query_id", "doc_id", "grade").iter_rows()
    Path("qrels.txt").write_text("".join(f"{q} 0 {d} {g}\n" for q, d, g in rows))
    save(EVERY, "collection")
    return tmp_path


def test_a_log_is_replayed_from_candidates_with_texts(here: Path, cli: Cli) -> None:
    code, out, err = cli(
        "tools", "replay-log", "prose.json", "--candidates", "texts.json", "--qrels", "qrels.txt", "--resamples", 200,
        "-m", "nDCG@5", "--save", "made", "-o", "page.html", "--json", "found.json",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert "In 96 of 96 answers there is no ranking: what the published run shows is the input order and the" in out
    assert "The published reading takes all 96 answers without a ranking for one." in out
    found = ReplayedLog.load("found.json")
    assert found.kinds == {"off-format": 96}
    assert found.measures == ("nDCG@5",)
    published, stored = Run.load("made/published.trec"), Run.load("prose.run")
    for run in (published, stored):
        assert run.frame().sort("query_id", "rank")["doc_id"].to_list() == [
            doc for _, docs in sorted(json.loads(Path("prose.run").read_text()).items()) for doc in docs
        ]
    assert Run.load("made/strict.trec") != published
    assert "<title>Stored answers of an LLM ranker, read again</title>" in Path("page.html").read_text()
    assert cli("report", "found.json", "-o", "report.html").code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        "both.json --candidates texts.json --qrels qrels.txt",
        "both.json --candidates later.jsonl --qrels qrels.txt",
        "both.json --candidates candidates.trec --collection collection --by none",
        "both.json --candidates texts.json --collection collection --by none",
        "ids.jsonl --candidates candidates.trec --qrels qrels.txt",
    ],
)
def test_texts_and_judgments_may_lie_anywhere(here: Path, cli: Cli, arguments: str) -> None:
    code, out, err = cli("tools", "replay-log", *arguments.split(), "--resamples", 100, "--format", "csv")
    assert (code, err) == (0, "")
    expected = cli(
        "tools", "replay-log", "both.json", "--candidates", "texts.json", "--qrels", "qrels.txt", "--resamples", 100,
        "--format", "csv",
    ).out  # fmt: skip
    assert out == expected
    assert out.splitlines()[1].startswith("kinds,48,48,")


def test_tilts_are_split_where_there_are_sources(here: Path, cli: Cli) -> None:
    code, out, _ = cli(
        "tools", "replay-log", "llm.json", "--candidates", "candidates.trec", "--collection", "collection"
    )
    assert code == 0
    assert "Relative Δ nDCG@10, human | llm" in out
    assert "ExposureRatio, human | llm" in out
    Path("labels.tsv").write_text(
        "doc_id\tlength\n" + "".join(f"{d}\t{'long' if d[0] < '1' else 'short'}\n" for d in EVERY.ids)
    )
    code, out, _ = cli(
        "tools", "replay-log", "llm.json", "--candidates", "texts.json", "--groups", "labels.tsv", "--by", "length",
        "-m", "NDSR@3", "-m", "ExposureRatio", "--pair", "short,long", "--reference", "long", "--resamples", 100,
    )  # fmt: skip
    assert code == 0
    assert "ExposureRatio, long | short" in out


@pytest.mark.parametrize(
    ("name", "most", "code", "said"),
    [
        ("both", "0.5", 0, "passed: 48 of 96 answers (50.0 %) hold no ranking; at most 50.0 % may"),
        ("both", "0.49", 1, "failed: 48 of 96 answers (50.0 %) hold no ranking; at most 49.0 % may"),
        ("prose", "0.05", 1, "failed: 96 of 96 answers (100.0 %) hold no ranking; at most 5.0 % may"),
        ("llm", "0", 0, "passed: 0 of 96 answers (0.0 %) hold no ranking; at most 0.0 % may"),
    ],
)
def test_too_many_answers_without_a_ranking_fail(
    here: Path, cli: Cli, name: str, most: str, code: int, said: str
) -> None:
    found = cli("tools", "replay-log", f"{name}.json", "--candidates", "texts.json", "--max-failures", most)
    assert (found.code, found.err) == (code, "")
    assert found.out.rstrip().endswith(said)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            "candidates.trec --candidates texts.json",
            "candidates.trec:1: expected records of prompt and response (rank_llm), or of query, ids and answer, got ",
        ),
        ("empty --candidates texts.json", "empty: holds no calls"),
        ("both.json --candidates other.json", "both.json: none of its 96 calls fits the candidates: call 1 shows"),
        ("both.json --candidates twice.json", "twice.json: document 'd' occurs twice for query 'q'"),
        ("both.json --candidates named.json", "named.json: entry 1: expected rank_llm's candidates: query and hits"),
        ("two.json --candidates texts.json", "call 97 of the log ranks a query again from its first order: it holds"),
    ],
)
def test_what_cannot_be_replayed_is_one_line(here: Path, cli: Cli, arguments: str, message: str) -> None:
    Path("empty").touch()
    hit = {"qid": "q", "docid": "d", "content": "t"}
    for name, content in (
        ("other", [{"query": "clocks", "hits": [{"qid": "9", "docid": "9", "content": "Clocks tick. " * 9}]}]),
        ("twice", [{"query": "clocks", "hits": [hit, hit]}]),
        ("named", [{"query": "clocks", "hits": [{"docid": "d", "content": "t"}]}]),
    ):
        Path(f"{name}.json").write_text(json.dumps(content))
    Path("broken.json").write_text('[{"query": "a"')
    Path("two.json").write_text(2 * Path("llm.json").read_text())
    before = sorted(Path().rglob("*"))
    assert refused(cli, "tools", "replay-log", *arguments.split()).startswith(message)
    assert sorted(Path().rglob("*")) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("-m nDCG@5", "nDCG@5 needs judgments, and there are none: name them"),
        ("--split test", "--split needs a collection (--collection DIR)"),
        ("--save texts.json", "texts.json/published.trec: cannot be written: Not a directory; choose"),
        ("--json both.json", "--json both.json: this file is read too"),
    ],
)
def test_options_that_do_not_fit_are_refused(here: Path, cli: Cli, options: str, message: str) -> None:
    found = refused(cli, "tools", "replay-log", "both.json", "--candidates", "texts.json", *options.split())
    assert found.startswith(message)
