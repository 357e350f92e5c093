"""ranktilt audit: the table, the files, and the options that choose what is measured."""

import csv
import importlib
import io
import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import ranktilt as rt
from ranktilt import Audit, Run
from ranktilt.auditing.checks.failed_check import with_failed_check
from ranktilt.cli.rankers import read_rankers
from ranktilt.reporting.sentences.notes import note_sentences
from tests.cli.conftest import SCORES, Cli, judgments, labels, refused, two_model_folder
from tests.reporting.readers import explorers
from tests.toy import raw_qrels, write, write_beir, write_cocktail, write_run

RANKERS = ("-r", "tfidf", "-r", "bm25(k1=0.9,b=0.4)@5")
QUICK = ("--set", "statistics.resamples=200")


def library_audit(
    folder: Path, rankers: tuple[str, ...] = ("tfidf", "bm25(k1=0.9,b=0.4)@5"), **options: Any
) -> Audit:
    collection = rt.load(folder)
    runs = [rt.ranker(text).rank(collection) for text in rankers]
    return with_failed_check(
        collection, rt.audit(collection, runs, **{"resamples": 200, **options})
    )


def saved_audit(cli: Cli, tmp_path: Path, *arguments: str | Path) -> Audit:
    result = cli("audit", *arguments, *QUICK, "--json", tmp_path / "audit.json", "--quiet")
    assert (result.code, result.err) == (0, "")
    return Audit.load(tmp_path / "audit.json")


def equal_but_for_command(first: Audit, second: Audit) -> bool:
    """Whether two audits differ in nothing but the command that made them."""
    return without_command(first) == without_command(second)


def without_command(audit: Audit) -> Audit:
    spec = {name: value for name, value in audit.spec.items() if name != "command"}
    return replace(audit, spec=spec)


@pytest.mark.parametrize(
    ("options", "faults"),
    [
        ([], "cut-off endings of llm (100.0 %; limit ≤ 10 %)"),
        (["--set", "check.max_cut_off=100"], ""),
        (["--by", "gender"], ""),
    ],
)
def test_a_check_that_fails_is_repeated(
    cli: Cli, tmp_path: Path, options: list[str], faults: str
) -> None:
    docs = [
        {
            "_id": f"d{number}-{source}",
            "text": f"topic{number} {source} words {number} that never end" * (number + 1),
            "source": source,
            "origin": f"d{number}",
            "gender": "fm"[number % 2],
        }
        for number in range(4)
        for source in ("human", "llm")
    ]
    queries = [{"_id": f"q{number}", "text": f"topic{number}"} for number in range(4)]
    judgments = [(f"q{row['_id'][1]}", row["_id"], 1) for row in docs]
    folder = write_beir(tmp_path / "open", docs=docs, queries=queries, qrels=judgments)
    out = cli("audit", folder, "-r", "bm25", "-m", "nDCG@3", *options, *QUICK).out
    warning = f"warning: ranktilt check {folder} ends with Void: {faults}; this alone may"
    assert (" ".join(warning.split()) in " ".join(out.split())) == bool(faults)
    assert ("ends with Void" in out) == bool(faults)


def test_per_query_has_a_line_a_value(cli: Cli, tmp_path: Path) -> None:
    judgments = [("q1", "d1-human", 1), ("q2", "d2-human", 1), ("q2", "d2-llm", 1)]
    folder = write_cocktail(tmp_path / "toy", qrels=judgments)
    cli("audit", folder, "-r", "bm25", "-m", "nDCG@1", *QUICK, "--per-query", tmp_path / "q.csv")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "q.csv").read_text())))
    expected_keys = product(["bm25"], ["nDCG@1"], ["all", "human", "llm"], ["q1", "q2"])
    assert [tuple(row.values())[:4] for row in rows] == list(expected_keys)
    assert rows[4]["value"] == ""
    expected = library_audit(folder, ("bm25",), measures=["nDCG@1"]).values.ravel()
    got = [float(row["value"]) if row["value"] else np.nan for row in rows]
    assert np.array_equal(got, expected, equal_nan=True)


def test_saved_runs_give_same_audit(cli: Cli, toy_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert cli("audit", toy_folder, *RANKERS, *QUICK, "--save", out).code == 0
    expected = library_audit(toy_folder)
    assert equal_but_for_command(Audit.load(out / "audit.json"), expected)
    assert pl.read_parquet(out / "table.parquet").equals(expected.table)
    collection = rt.load(toy_folder)
    files = sorted((out / "runs").glob("*.trec.gz"))
    assert [file.name for file in files] == ["1-tfidf.trec.gz", "2-bm25_k1=0.9_b=0.4_@5.trec.gz"]
    for file, text in zip(files, expected.runs, strict=True):
        run = Run.load(file)
        expected_run = rt.ranker(text).rank(collection)
        assert run.name == text
        assert run.frame().sort(pl.all()).equals(expected_run.frame().sort(pl.all()))
    again = saved_audit(cli, tmp_path, toy_folder, "--run", files[0], "--run", files[1])
    assert again.runs == ("1-tfidf", "2-bm25_k1=0.9_b=0.4_@5")
    assert again.values.tolist() == expected.values.tolist()
    assert [t.value for t in again.tilts] == [t.value for t in expected.tilts]


def test_groups_are_compared_in_all_pairs_or_against_one(cli: Cli, tmp_path: Path) -> None:
    folder = two_model_folder(tmp_path / "sided")
    every = saved_audit(cli, tmp_path, folder, "-r", "bm25", "--mixed")
    assert every.pairs == (("human", "gpt"), ("human", "llm"), ("gpt", "llm"))
    swapped = saved_audit(
        cli, tmp_path, folder, "-r", "bm25", "--pair", "llm, human", "--pair", "gpt,llm"
    )
    assert (swapped.pairs, swapped.groups) == (
        (("llm", "human"), ("gpt", "llm")),
        ("all", "human", "gpt", "llm"),
    )
    result = saved_audit(cli, tmp_path, folder, "-r", "bm25", "--protected", "llm")
    assert (result.pairs, result.groups) == ((("llm", "rest"),), ("all", "llm", "rest"))
    assert (
        saved_audit(cli, tmp_path, folder, "-r", "bm25", "--pair", "llm,rest").tilts == result.tilts
    )


def test_unknown_judgments_can_be_kept_out_of_groups(cli: Cli, tmp_path: Path) -> None:
    folder = write_cocktail(
        tmp_path / "toy", qrels=[*raw_qrels(), ("q1", "gone", 1), ("q9", "d1", 1)]
    )
    refused = cli("audit", folder, "-r", "bm25")
    assert refused.code == 2
    result = saved_audit(cli, tmp_path, folder, "-r", "bm25", "-m", "R@10", "--ignore-unknown")
    sentence = (
        "1 judgment for unknown documents and 2 judgments for unknown queries count only in the "
        "row 'all', in no group"
    )
    assert sentence in note_sentences(result.notes)
    everyone = dict(zip(result.queries, result.values[0, 0, 0], strict=True))
    assert everyone["q1"] == pytest.approx(2 / 5)
    assert everyone["q9"] == 0


def test_statistics_card_and_controls_can_be_chosen(
    cli: Cli, toy_folder: Path, tmp_path: Path
) -> None:
    chosen = {
        "ties": "trec_eval",
        "correction": "bonferroni",
        "margin": 7.5,
        "seed": 3,
    }
    options = [
        "--ties",
        "trec_eval",
        "--margin",
        "7.5",
        "--set",
        "statistics.correction=bonferroni",
    ]
    options += ["--set", "statistics.seed=3"]
    more = ("--card", "--controls", "--set", "check.near_identical=0.5")
    result = saved_audit(cli, tmp_path, toy_folder, *RANKERS, *options, *more)
    assert {name: result.spec[name] for name in chosen} == chosen
    collection, rankers = rt.load(toy_folder), [rt.ranker(text) for text in RANKERS[1::2]]
    expected = library_audit(toy_folder, card=True, **chosen)
    runs = [ranker.rank(collection) for ranker in rankers]
    assert equal_but_for_command(result, rt.controls(collection, rankers, runs, expected, near=0.5))
    assert result.spec["near"] == 0.5


@pytest.mark.parametrize(
    ("options", "spec"),
    [
        ("--preset dai -r tfidf", {"ties": "trec_eval", "rounding": "paper", "test": "interval"}),
        ("--preset dai -r tfidf --ties expected", {"ties": "expected", "rounding": "paper"}),
        ("--preset askari -r tfidf", {"ties": "expected", "rounding": "none", "test": "t"}),
    ],
)
def test_preset_sets_what_no_option_overrides(
    cli: Cli, toy_folder: Path, tmp_path: Path, options: str, spec: dict[str, str]
) -> None:
    pytest.importorskip("nltk")
    result = saved_audit(cli, tmp_path, toy_folder, *options.split())
    assert {name: result.spec[name] for name in spec} == spec


def test_preset_dai_takes_its_recipe_measures_and_text(
    cli: Cli, toy_folder: Path, tmp_path: Path
) -> None:
    pytest.importorskip("nltk")
    result = saved_audit(
        cli, tmp_path, toy_folder, "--preset", "dai", "-r", "bm25@5", "-r", "bm25(k1=1)"
    )
    assert result.runs == ("bm25:dai@5", "bm25:dai(k1=1.0)")
    measures = ["nDCG@1", "nDCG@3", "nDCG@5", "AP@1", "AP@3", "AP@5"]
    assert list(map(repr, result.measures)) == measures
    single = saved_audit(cli, tmp_path, toy_folder, "--preset", "dai", "-r", "bm25", "-m", "RR")
    assert list(map(repr, single.measures)) == ["RR"]
    refused = cli("audit", toy_folder, "-r", "bm25", "--preset", "day")
    message = (
        "unknown preset 'day'; did you mean 'dai'? (valid: dai, wang, askari, askari-notebook)"
    )
    assert (refused.code, refused.err) == (2, f"ranktilt: {message}\n")


@pytest.mark.parametrize(
    ("spec", "options", "expected"),
    [
        ("bm25", {}, "bm25"),
        ("bm25", {"text": "title", "device": "cpu"}, "bm25(text=title)"),
        ("bm25(text=title+text)", {"text": "title"}, "bm25"),
        (
            "dense:m",
            {"device": "cuda:1", "exclude_self": False},
            "dense:m(exclude_self=false,device=cuda:1)",
        ),
        ("dense:m(device=cpu)", {"device": "cuda:1"}, "dense:m(device=cpu)"),
        (
            "replay:a.trec",
            {"text": "title", "exclude_self": True},
            "replay:a.trec(exclude_self=true)",
        ),
        ("bm25@5>>dense:m", {"device": "cpu"}, "bm25@5>>dense:m(device=cpu)"),
    ],
)
def test_options_reach_the_rankers_that_have_them(
    spec: str, options: dict[str, Any], expected: str
) -> None:
    assert [
        repr(read_ranker)
        for read_ranker in read_rankers([spec], **{"text": None, "exclude_self": None, **options})
    ] == [expected]


# Runs that exist, and labels


def test_without_judgments_the_card_answers(cli: Cli, tmp_path: Path) -> None:
    run = write_run(tmp_path / "engine.trec", SCORES)
    result = cli("audit", "--run", run, "--groups", labels(tmp_path), *QUICK)
    assert (result.code, result.err) == (0, "")
    # q1: d1 wins, d3 loses, d2 wins; q2: two losses; q3: a tie and a win.
    assert "7 pairs: human 3, llm 3, tied 1" in result.out
    assert "nDCG" not in result.out


def test_judgments_can_be_left_out_or_replaced_and_labels_added(
    cli: Cli, toy_folder: Path, tmp_path: Path
) -> None:
    none = saved_audit(cli, tmp_path, toy_folder, "-r", "bm25", "--qrels", "none")
    assert "ΔNDSR@20" in {estimate.name for estimate in none.card}, (
        "without judgments the card comes by itself"
    )
    assert (none.measures, none.queries) == ((), ("q1", "q2", "q3"))
    assert [e.estimand.key for e in none.card] == [
        "page",
        "twins",
        "twins, pooled",
        "rank gap",
        "score gap",
    ]
    file = write(tmp_path / "mine.txt", "q2 0 d2 1\n")
    mine = saved_audit(cli, tmp_path, toy_folder, "-r", "bm25", "--qrels", file)
    assert mine.queries == ("q2",)
    table = write(
        tmp_path / "side.csv", "doc_id,side\nd1-human,east\nd1-llm,west\nd2-llm,east\nd3-llm,west\n"
    )
    result = saved_audit(cli, tmp_path, toy_folder, "-r", "bm25", "--groups", table, "--by", "side")
    assert result.groups == ("all", "east", "west")
    assert "2 documents without side, so in no group" in note_sentences(result.notes)
    assert result.spec["inputs"][-1]["path"] == str(table)


def test_the_order_of_ranks_can_be_asked_for(cli: Cli, toy_folder: Path, tmp_path: Path) -> None:
    lines = ["q1 Q0 d1-llm 1 0.1 x", "q1 Q0 d1-human 2 0.9 x", "q2 Q0 d2-llm 1 7 x"]
    file = write(tmp_path / "ranks.trec", "\n".join(lines) + "\n")
    table, qrels = labels(tmp_path), judgments(tmp_path)
    for first in ((toy_folder,), ("--groups", table, "--qrels", qrels)):
        from_engine = saved_audit(
            cli, tmp_path, *first, "--run", file, "--score-order", "rank", "--card"
        )
        assert from_engine.values[0, 0, :, 0].tolist() == [1, 0, 1]
        assert np.isnan(next(e.value for e in from_engine.card if e.estimand.key == "score gap"))
    result = cli("audit", "--groups", table, "--qrels", qrels, "--run", file, *QUICK)
    assert result.code == 0
    assert result.err.startswith(f"warning: {file}")
    assert result.err.count("\n") == 1


DISTANCES = "query_id,doc_id,score\n" + "".join(
    f"{query},{doc},{distance}\n"
    for query in ("q1", "q2")
    for doc, distance in (("d1-llm", 0.1), ("d1-human", 0.4), ("d2-llm", 0.5), ("d2-human", 0.9))
)


def test_distances_are_audited_once_their_order_is_named(
    cli: Cli, toy_folder: Path, tmp_path: Path
) -> None:
    file, table = write(tmp_path / "faiss.csv", DISTANCES), labels(tmp_path)
    for first in ((toy_folder, "--qrels", "none"), ("--groups", table)):
        result = cli("audit", *first, "--run", file, *QUICK)
        assert result.code == 2
        assert result.err.startswith(
            f"ranktilt: {file}: the scores rise along the given order in 2 of 2 lists; "
            "say how to order the results with --score-order ascending (smaller"
        )
        audit = saved_audit(cli, tmp_path, *first, "--run", file, "--score-order", "ascending")
        values = {estimate.estimand.key: estimate.value for estimate in audit.card}
        assert values["twins"] == -1.0  # the llm's version is above in all four pairs


def test_partial_responses_are_left_out_up_to_a_share(cli: Cli, tmp_path: Path) -> None:
    hits = [
        {"_id": name, "_score": score}
        for name, score in (("d1-llm", 3.0), ("d1-human", 2.0), ("d2-llm", 1.0))
    ]
    complete = {"timed_out": False, "hits": {"hits": hits}}
    responses = {"q1": complete, "q2": complete, "q3": {**complete, "timed_out": True}}
    file, table = write(tmp_path / "run.json", json.dumps(responses)), labels(tmp_path)
    command = ("audit", "--groups", table, "--run", file, *QUICK)
    result = cli(*command)
    message = (
        "1 of 3 queries failed, max_failures=5 % allows 0 of 3 (--max-failures): 'q3': timed out"
    )
    assert (result.code, result.err) == (2, f"ranktilt: {file}: {message}\n")
    result = cli(*command, "--max-failures", "40", "--json", tmp_path / "audit.json")
    assert result.code == 0
    failure = "1 of 3 queries failed and are not in the run (first: 'q3': timed out)"
    assert result.err == f"warning: {file}: {failure}\n"
    assert Audit.load(tmp_path / "audit.json").queries == ("q1", "q2")


# Pages and places


def test_output_is_the_report_of_the_same_audit(cli: Cli, toy_folder: Path, tmp_path: Path) -> None:
    page, file = tmp_path / "new folder" / "report.html", tmp_path / "audit.json"
    result = cli("audit", toy_folder, *RANKERS, *QUICK, "-o", page, "--json", file)
    assert (result.code, result.err) == (0, "")
    assert result.out == rt.table(library_audit(toy_folder))
    assert equal_but_for_command(Audit.load(file), library_audit(toy_folder))
    assert page.read_bytes() == rt.report(file, tmp_path / "again.html").read_bytes()
    assert explorers(page.read_text("utf-8"))[0]["runs"] == ["tfidf", "bm25(k1=0.9,b=0.4)@5"]


def test_the_report_ranks_nothing_again(
    cli: Cli, toy_folder: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    write(
        tmp_path / "audit_shop.py",
        "calls = []\ndef search(query, k):\n    calls.append(query)\n"
        "    return [('d1-human', 2.0), ('d1-llm', 1.0)]\n",
    )
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "report.html"
    result = cli("audit", toy_folder, "-r", "engine:audit_shop:search", *QUICK, "-o", page)
    assert (result.code, result.err) == (0, "")
    assert explorers(page.read_text("utf-8"))[0]["runs"] == ["engine:audit_shop:search"]
    assert len(importlib.import_module("audit_shop").calls) == 3


def test_unwritable_output_is_refused_before_ranking(
    cli: Cli, toy_folder: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(toy_folder.parent)
    monkeypatch.setattr(
        "ranktilt.rankers.lexical.bm25.BM25.rank", lambda *_: pytest.fail("ranked first")
    )
    for name in ("kept/table.parquet", "half"):
        Path(name).mkdir(parents=True)
    Path("file").touch()
    Path("half/runs").touch()
    before = sorted(Path().rglob("*"))
    for options, message in (
        ("--save kept", "kept/table.parquet: expected a file, got a folder"),
        ("--save file", "file/audit.json: cannot be written: Not a directory"),
        ("--save half", "half/runs/1-run.trec.gz: cannot be written: Not a directory"),
        ("--json file/a.json", "file/a.json: cannot be written: Not a directory"),
        ("--per-query kept/audit.json --save kept", "this file is written by --per-query too"),
    ):
        assert message in refused(cli, "audit", "toy", "-r", "bm25", *options.split())
        assert sorted(Path().rglob("*")) == before


@pytest.mark.parametrize("labels", [False, True])
def test_responses_are_read_with_queries_of_a_file(
    cli: Cli, toy_folder: Path, tmp_path: Path, labels: bool
) -> None:
    hits = ['{"hits": {"hits": [{"_id": "d1-human", "_score": 2}]}}', '{"hits": {"hits": []}}']
    run = write(tmp_path / "msearch.json", f'{{"responses": [{", ".join(hits)}]}}')
    queries = write(tmp_path / "queries.tsv", "q1\tone\nq2\ttwo\n")
    table = write(tmp_path / "labels.tsv", "doc_id\tsource\nd1-human\thuman\nd1-llm\tllm\n")
    call = [
        "audit",
        *(["--groups", table] if labels else [toy_folder]),
        "-m",
        "Share@1",
        "--run",
        run,
    ]
    assert (
        "got 2 responses and no ids; the responses do not name their queries; give these in the "
        "same order with --queries FILE" in refused(cli, *call)
    )
    code, out, _ = cli(*call, "--queries", queries, "--json", tmp_path / "a.json")
    assert code == 0
    assert out.count(f"{run}: read as responses of Elasticsearch or OpenSearch: _id, _score") == 1
    assert Audit.load(tmp_path / "a.json").runs == ("msearch",)
    assert "--queries needs a run" in refused(
        cli, "audit", toy_folder, "-r", "bm25", "--queries", queries
    )
