"""ranktilt audit, the rarer ways: several models, labels as people have them, a live engine, the
bundled collection.
"""

import io
import json
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import ranktilt as rt
from ranktilt import Collection, SourceAudits, load, save
from ranktilt.auditing.controls.controls import CONTROLS
from ranktilt.data.labels.label_file import LabelFile
from ranktilt.data.labels.label_table import read_labels
from ranktilt.data.labels.labels import labelled, with_labels
from ranktilt.reporting.reload import reload, reload_sources
from ranktilt.reporting.sentences.notes import note_sentences
from tests.cli.conftest import Cli, two_model_folder
from tests.cli.conftest import refused as refused_by
from tests.cli.test_audit import QUICK, RANKERS, saved_audit
from tests.refusals import refused
from tests.toy import toy, write, write_run


class TestSeveralModels:
    """A folder with the rewrites of two models, each audited with the originals alone."""

    def test_source_audit_equals_audit_of_two_sources(self, cli: Cli, tmp_path: Path) -> None:
        folder = two_model_folder(tmp_path / "sided")
        result = cli("audit", folder, *RANKERS, *QUICK, "--json", tmp_path / "a.json")
        assert result.err == ""
        audits = SourceAudits.load(tmp_path / "a.json")
        assert [source.source for source in audits.sources] == ["gpt", "llm"]
        for part in reload_sources(audits).parts:
            (_, source) = part.audit.pairs[0]
            pair_audit = saved_audit(
                cli, tmp_path, folder, *RANKERS, "--source", "human", "--source", source
            )
            alone = tmp_path / source
            save(Collection(*frames_of_source(load(folder), source)), alone)
            assert part.audit.pairs == pair_audit.pairs == (("human", source),)
            expected = saved_audit(cli, tmp_path, alone, *RANKERS)
            for audit in (part.audit, pair_audit):
                assert np.array_equal(audit.values, expected.values, equal_nan=True)
                assert audit.by_group().equals(expected.by_group())
            assert part.collection == load(alone)

    def test_files_of_source_audits(self, cli: Cli, tmp_path: Path) -> None:
        folder, page = two_model_folder(tmp_path / "sided"), tmp_path / "page.html"
        files = ("-o", page, "--save", tmp_path / "kept", "--per-query", tmp_path / "q.csv")
        result = cli("audit", folder, "-r", "bm25", *QUICK, *files, "--format", "csv")
        rows = pl.read_csv(io.StringIO(result.out))
        assert rows.filter(part="tilts").select("b", "compared_source").unique().sort(
            "b"
        ).rows() == [
            ("gpt", "gpt"),
            ("llm", "llm"),
        ]
        text = page.read_text(encoding="utf-8")
        assert [f"human | {source}" in text for source in ("gpt", "llm")] == [True, True]
        runs = (tmp_path / "kept").glob("runs/*/*.trec.gz")
        assert sorted(path.parent.name for path in runs) == ["gpt", "llm"]
        per_query = pl.read_csv(tmp_path / "q.csv")
        assert per_query["compared_source"].unique(maintain_order=True).to_list() == ["gpt", "llm"]
        cli("audit", folder, "-r", "bm25", *QUICK, "--json", tmp_path / "a.json")
        again = cli("report", tmp_path / "a.json", "-o", tmp_path / "again.html")
        assert again.code == 0
        assert "human | gpt" in (tmp_path / "again.html").read_text(encoding="utf-8")

    def test_card_and_controls_are_shown_for_each_source(self, cli: Cli, tmp_path: Path) -> None:
        folder = two_model_folder(tmp_path / "sided")
        result = cli("audit", folder, "-r", "bm25", *QUICK, "--card", "--controls")
        for source in ("gpt", "llm"):
            assert result.out.count(f"\nhuman against {source}:\n") == 1
        assert result.out.count("near-identical") >= 2

    def test_without_judgments_the_primary_question_has_a_table(
        self, cli: Cli, tmp_path: Path
    ) -> None:
        folder = two_model_folder(tmp_path / "sided")
        result = cli(
            "audit", folder, "-r", "bm25", "--qrels", "none", "--set", "statistics.resamples=100"
        )
        assert result.code == 0
        assert "HeadToHead: human against each source" in result.out

    def test_sources_and_reference_are_chosen(self, cli: Cli, tmp_path: Path) -> None:
        folder = two_model_folder(tmp_path / "sided")
        words = ("audit", folder, "-r", "bm25", *QUICK, "--json", "-")
        content = json.loads(cli(*words, "--reference", "llm").out)
        assert content["reference"] == "llm"
        assert [source["source"] for source in content["sources"]] == ["gpt", "human"]
        against_gpt = json.loads(cli(*words, "--source", "gpt", "--reference", "human").out)
        assert (against_gpt["format"], against_gpt["groups"]) == (
            "ranktilt-audit",
            ["all", "human", "gpt"],
        )

    @pytest.mark.parametrize("option", [("--mixed",), ("--pair", "human,llm"), ("--by", "side")])
    def test_one_collection_by_name_or_for_its_groups(
        self, cli: Cli, tmp_path: Path, option: tuple[str, ...]
    ) -> None:
        folder, run = two_model_folder(tmp_path / "sided"), tmp_path / "run.trec"
        result = saved_audit(cli, tmp_path, folder, "-r", "bm25", *option)
        assert result.spec["collection"].get("without_sources") is None
        assert any(
            note.startswith("mixed: 3 sources") for note in note_sentences(result.notes)
        ) == (option[0] != "--by")
        assert cli("rank", folder, "-r", "bm25", "-o", run).code == 0
        groups = saved_audit(cli, tmp_path, folder, "--run", run).groups
        assert groups == ("all", "human", "gpt", "llm"), "a saved run stays as it was ranked"


def frames_of_source(
    collection: Collection, source: str
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Documents of people and of one source, queries, and judgments of these documents."""
    docs = collection.docs.filter(pl.col("source").is_in(["human", source]))
    return (
        docs,
        collection.queries,
        collection.qrels.filter(pl.col("doc_id").is_in(docs["id"].implode())),
    )


ROWS = '{"url": "a", "is_ai": 1}\n{"url": "b", "is_ai": 0}\n'


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("l.csv.gz", "url,text,is_ai,doc_id\na,x,1,7\nb,y,0,8\n"),
        ("l.tsv", "is_ai\turl\n1.0\ta\n0.0\tb\n"),
        ("l.jsonl.gz", ROWS),
    ],
)
def test_columns_are_named_by_what_they_hold_and_values_get_names(
    tmp_path: Path, name: str, content: str
) -> None:
    labels = LabelFile.from_text(f"{write(tmp_path / name, content)}:id=url,source=is_ai")
    renamed_labels = read_labels(LabelFile(labels.path, columns=labels.columns, names={"1": "ai"}))
    assert renamed_labels.select("doc_id", "source").rows() == [("a", "ai"), ("b", "0")]


def test_truth_values_have_names_too(tmp_path: Path) -> None:
    path = tmp_path / "l.parquet"
    pl.DataFrame({"doc_id": ["a", "b"], "source": [True, None]}).write_parquet(path)
    assert read_labels(LabelFile(str(path), names={"True": "ai"})).rows() == [
        ("a", "ai"),
        ("b", None),
    ]
    content = '{"doc_id": "a", "source": true}\n{"doc_id": "b", "source": false}\n'
    file = str(write(tmp_path / "l:id=a.jsonl", content))  # a name, because it is a file's
    assert read_labels(LabelFile(LabelFile.from_text(file).path, names={"true": "ai"})).rows() == [
        ("a", "ai"),
        ("b", "false"),
    ]


@pytest.mark.parametrize("header", ["", "docid\n"])
@pytest.mark.parametrize("name", ["ai.txt", "ai.tsv"])
def test_of_a_list_of_ids_all_others_are_the_rest(tmp_path: Path, name: str, header: str) -> None:
    file = write(tmp_path / name, f"{header}d1-llm\nd2-llm\n\nd3-llm\nelsewhere\n")
    labelled_toy = with_labels(
        toy(), LabelFile(str(file), names={"listed": "llm"}, rest="human"), by="source"
    )
    assert labelled_toy == toy()
    assert labelled_toy.spec["labels_read"] == "listed = llm; documents: 3 llm, 3 human (the rest)"


def test_labels_that_contradict_sources_are_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "l.txt", "d1-human\n")
    with pytest.raises(
        rt.DataError, match="'d1-human' is 'listed' here but 'human' in the collection"
    ):
        with_labels(toy(), LabelFile(str(file), rest="human"), by="source")


def test_a_run_and_a_list_are_audited_and_read_again(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_run(
        Path("engine.trec"), {"q1": {"x": 3.0, "y": 2.0, "z": 1.0}, "q2": {"y": 2.0, "x": 1.0}}
    )
    write(Path("ai.csv"), "url,is_ai,note\ny,1,a\nw,1,b\n")
    start = (
        "audit",
        "--run",
        "engine.trec",
        "--groups",
        "ai.csv:id=url,source=is_ai",
        "--rest",
        "human",
    )
    more = (
        "-m",
        "Share@1",
        "--set",
        "statistics.resamples=100",
        "--name",
        "1=an AI",
        "--json",
        "a.json",
    )
    assert cli(*start, *more, "--reference", "an AI").code == 0
    turned = rt.Audit.load("a.json")
    code, out, _ = cli(*start, *more)
    assert code == 0
    note = "labels: id = url, source = is_ai; 1 = an AI; documents: 2 an AI, 2 human (the rest)"
    assert note in " ".join(out.split())
    result = rt.Audit.load("a.json")
    assert (result.pairs, turned.pairs) == ((("human", "an AI"),), (("an AI", "human"),))
    # Human text holds rank 1 and two of three places in q1, no first rank and one of two places in
    # q2.
    share = next(e for e in result.card if repr(e.estimand) == "Share@1")
    assert share.value == pytest.approx(((1 - 2 / 3) + (0 - 1 / 2)) / 2)
    assert [e.value for e in result.card] == [-e.value for e in turned.card]
    again = reload(result).collection
    assert again is not None
    assert dict(again.docs.select("id", "source").iter_rows()) == {
        n: "human" if n in "xz" else "an AI" for n in "ywxz"
    }


def test_label_refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = write(Path("l.csv"), "url,source\na,1\nb,0\n")
    runs = [rt.Run.load(write_run(Path("engine.trec"), {"q1": {"d": 1.0}}))]
    for text, names, message in (
        (":id=uri", {}, "{}: unknown column 'uri'; did you mean 'url'? (valid: url, source)"),
        (":id=url", {"2": "x"}, "unknown value of 'source' to name '2' (valid: 0, 1)"),
        (
            ":id=url,source=url",
            {},
            "{}:id=url,source=url: expected each column once, such as {}:id=url,source=is_ai",
        ),
        (
            ":id=url",
            {},
            (
                "engine.trec: no overlap: none of its 1 document is in {} (first: 'd'; its ids "
                "look "
                "like 'a')"
            ),
        ),
    ):
        with refused(message.replace("{}", str(file)), rt.UserError):
            label_file = LabelFile.from_text(f"{file}{text}")
            labelled(LabelFile(label_file.path, columns=label_file.columns, names=names), runs)


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
    return (
        "-r",
        "engine:asked_engine:search@30",
        "--groups",
        "labels.parquet",
        "--queries",
        "queries.tsv",
    )


def test_a_live_engine_is_asked_until_a_tilt_is_decided(cli: Cli, engine: tuple[str, ...]) -> None:
    code, out, _ = cli(
        "audit",
        *engine,
        "--stop-at-tilt",
        "10",
        "-m",
        "Share@1",
        "--json",
        "s.json",
        "-o",
        "s.html",
    )
    assert code == 0
    assert "engine:asked_engine:search@30 favours human, shown after" in out
    result = rt.SequentialAudit.load("s.json")
    assert (result.decision, result.of, result.stop_at_tilt) == ("tilted", 216, 10)
    assert result.sent < 216
    assert result.spec["collection"]["queries"] == "queries.tsv"
    assert "closed in" in Path("s.html").read_text("utf-8")
    assert cli("report", "s.json", "-o", "again.html").code == 0
    rt.save(rt.bundled(), "bundled")  # a collection and any ranker will do
    code, out, _ = cli(
        "audit",
        "bundled",
        "-r",
        "bm25",
        "--stop-at-tilt",
        "1",
        "--max-queries",
        "20",
        "--set",
        "statistics.seed=3",
    )
    assert (code, "bm25 is undecided after 20 queries and " in out) == (0, True)


def test_engine_may_fail_while_it_is_asked_for_a_tilt(cli: Cli, engine: tuple[str, ...]) -> None:
    failure = "    if len(query) % 4 == 0:\n        raise OSError('down')\n"
    Path("asked_engine.py").write_text(
        ENGINE.replace("    found", f"{failure}    found", 1), "utf-8"
    )
    words = ("audit", *engine, "--stop-at-tilt", "10", "-m", "Share@1")
    code, _, err = cli(*words)
    assert code == 2
    assert "max_failures=5 % allows 0 of 16: " in err
    assert cli(*words, "--max-failures", "90").code == 0


def test_demo_audits_bundled_collection_and_names_its_texts(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    code, out, err = cli(
        "demo", "-r", "bm25", "-m", "P@1", "--card", "--controls", "--json", file, "--format", "csv"
    )
    result, collection = rt.Audit.load(file), rt.bundled()
    assert (code, out) == (0, rt.table(result, "csv"))
    for words in (
        "paragraphs from the NumPy",
        "with a rewrite by a language model (Claude)",
        "judged by the same model",
    ):
        assert words in err
    assert err.count("\n") == 1
    expected = rt.audit(collection, rt.ranker("bm25").rank(collection), ["P@1"])
    assert result.values.tolist() == expected.values.tolist()
    assert {e.estimand.key for e in result.card} >= {"page", "relevant twins", "rank gap"}
    assert {c.control for c in result.controls} == {"raw", *CONTROLS}
    assert (
        cli("demo", "-r", "bm25", "-m", "P@1", "--quiet", "-o", tmp_path / "report.html").err == ""
    )
    assert "All 216 queries of the audit." in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_demo_without_the_neural_extra_says_how_to_get_it(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ranktilt.cli.audit.demo.find_spec", lambda name: None)
    code, out, err = cli("demo", "-m", "P@1", "--format", "csv")
    assert code == 0
    assert {line.split(",")[1] for line in out.splitlines() if line.startswith("means,")} == {
        "tfidf",
        "bm25",
    }
    assert err.endswith('To add a neural retriever: pip install "ranktilt[neural,demo]"\n')


def test_demo_takes_the_neural_retriever_where_it_is(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested_specs: list[str] = []

    def stop(specs: list[str], **options: object) -> None:
        requested_specs.extend(specs)
        raise rt.UserError("stop")

    monkeypatch.setattr("ranktilt.cli.audit.demo.find_spec", lambda name: name)
    monkeypatch.setattr("ranktilt.cli.audit.demo.read_rankers", stop)
    assert refused_by(cli, "demo") == "stop"
    assert requested_specs == ["tfidf", "bm25", "dense:minilm"]
