"""ranktilt rank: a run written now is audited later as if it had been made then."""

import csv
import gzip
import io
import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

import ranktilt as rt
from ranktilt._version import __version__
from tests.cli.conftest import Cli
from tests.llm.server import Server
from tests.rankers.llm.judge import Judge
from tests.rankers.tiny import tiny_model
from tests.toy import raw_docs, raw_queries, tsv, write, write_beir, write_cocktail, write_run

QUICK = ("--set", "statistics.resamples=200")
MATCHES = {
    "q1": {"d1-human", "d1-llm"},
    "q2": {"d2-human", "d2-llm"},
    "q3": {"d3-human", "d3-llm", "d1-human"},
}
"""What shares a word with each of the toy's queries: by hand."""


def documents_by_query(file: Path) -> dict[str, set[str]]:
    """Retrieved documents of each query of a run in TREC format."""
    documents: dict[str, set[str]] = {}
    for line in file.read_text().splitlines():
        query, _, document, *_ = line.split()
        documents.setdefault(query, set()).add(document)
    return documents


def files(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


def test_a_hub_name_is_noted_as_taken_as_dense(
    cli: Cli, toy_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny_model(tmp_path / "models" / "tiny")
    monkeypatch.chdir(tmp_path)
    done = cli("rank", str(toy_folder), "-r", "models/tiny@2", "-o", "run.trec")
    assert "models/tiny: taken as dense:models/tiny\n" in done.err
    assert rt.Run.load("run.trec").spec["ranker"] == "dense:models/tiny@2"


def test_the_run_is_the_rankers_and_a_sidecar_says_how(
    cli: Cli, toy_folder: Path, tmp_path: Path
) -> None:
    arguments = [
        "rank",
        str(toy_folder),
        "-r",
        "bm25@2",
        "--text",
        "title",
        "-o",
        str(tmp_path / "run.trec"),
    ]
    code, out, _ = cli(*arguments)
    assert (code, out) == (0, "")
    assert rt.Run.load(tmp_path / "run.trec") == rt.ranker("bm25(text=title)@2").rank(
        rt.load(toy_folder)
    )
    spec = json.loads((tmp_path / "run.trec.json").read_text())
    assert spec == {
        "ranker": "bm25(text=title)@2",
        "precision": "exact",
        "ranktilt": __version__,
        "collection": str(toy_folder),
        "command": shlex.join(["ranktilt", *arguments]),
    }


def audit_rows(cli: Cli, *arguments: object) -> list[dict[str, object]]:
    """Everything an audit says of its one run, without the run's name."""
    rows = csv.DictReader(
        io.StringIO(cli("audit", *map(str, arguments), *QUICK, "--format", "csv").out)
    )
    return [{key: value for key, value in row.items() if key != "run"} for row in rows]


@pytest.mark.parametrize("spec", ["bm25", "tfidf@2", "bm25(text=text)@1"])
def test_the_next_command_gives_the_same_audit(
    cli: Cli, toy_folder: Path, tmp_path: Path, spec: str
) -> None:
    folder = tmp_path / "a folder with blanks"
    err = cli("rank", toy_folder, "-r", spec, "-o", f"{folder}/run.trec").err
    command = shlex.split(err.splitlines()[-1].removeprefix("Audit it: "))
    assert command[:2] == ["ranktilt", "audit"]
    later, now = audit_rows(cli, *command[2:]), audit_rows(cli, toy_folder, "-r", spec)
    assert later == now


def test_stdout_holds_run_alone_and_gz_name_compresses(
    cli: Cli, toy_folder: Path, tmp_path: Path
) -> None:
    cli("rank", toy_folder, "-r", "bm25", "-o", tmp_path / "run.trec")
    before = files(tmp_path)
    code, out, err = cli("rank", toy_folder, "-r", "bm25", "-o", "-")
    assert code == 0
    assert out == (tmp_path / "run.trec").read_text()
    assert err == "stdout: 3 queries, 2 to 3 documents per query (bm25)\n"
    assert files(tmp_path) == before
    cli("rank", toy_folder, "-r", "bm25", "-o", tmp_path / "run.trec.gz")
    assert gzip.decompress((tmp_path / "run.trec.gz").read_bytes()).decode() == out
    assert json.loads((tmp_path / "run.trec.gz.json").read_text())["ranker"] == "bm25"


def test_several_rankers_fill_a_folder(cli: Cli, toy_folder: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    err = cli(
        "rank",
        toy_folder,
        "-r",
        "bm25(k1=0.9)@2",
        "-r",
        "tfidf",
        "-r",
        "bm25(k1=0.9)@2",
        "-o",
        f"{runs}/",
    ).err
    names = ["bm25_k1=0.9_@2.trec", "tfidf.trec", "bm25_k1=0.9_@2-2.trec"]
    assert files(runs) == sorted([*names, *(f"{name}.json" for name in names)])
    assert err.splitlines()[-1] == shlex.join(
        [
            "Audit",
            "it:",
            "ranktilt",
            "audit",
            str(toy_folder),
            *(p for n in names for p in ("--run", str(runs / n))),
        ]
    )
    assert rt.Run.load(runs / names[1]).name == "tfidf"
    cli("rank", toy_folder, "-r", "bm25", "-o", tmp_path)
    assert {"bm25.trec", "bm25.trec.json"} <= set(files(tmp_path)), (
        "one ranker may name a folder too"
    )


@pytest.mark.parametrize("letter", ["a", "文"])
def test_a_name_fits_every_file_system(
    cli: Cli, toy_folder: Path, tmp_path: Path, letter: str
) -> None:
    saved = write_run(tmp_path / f"{letter * 80}.trec", {"q1": {"d1-human": 1.0}})
    for verb, output in (
        ("rank", ["-o", f"{tmp_path / 'runs'}/"]),
        ("audit", ["--save", tmp_path / "s", "-m", "RR"]),
    ):
        options = [
            "-r",
            f"replay:{saved}",
            *output,
            *(["--set", "statistics.resamples=100"] if verb == "audit" else []),
        ]
        assert cli(verb, toy_folder, *options).code == 0
    names = [
        path.name.encode()
        for path in (*(tmp_path / "runs").iterdir(), *(tmp_path / "s" / "runs").iterdir())
    ]
    assert len(names) == 4
    assert max(map(len, names)) <= 100


def test_judgments_of_file_or_split_choose_queries(cli: Cli, tmp_path: Path) -> None:
    folder = write_cocktail(tmp_path / "c", qrels=[("q2", "d2", 1)])
    cli("rank", folder, "-r", "bm25", "-o", tmp_path / "judged.trec")
    err = cli("rank", folder, "-r", "bm25", "-o", tmp_path / "all.trec", "--qrels", "none").err
    assert set(documents_by_query(tmp_path / "judged.trec")) == {"q2"}
    assert documents_by_query(tmp_path / "all.trec") == MATCHES
    assert err.endswith(f"--run {tmp_path / 'all.trec'} --qrels none\n")
    other_queries = write(tmp_path / "other.tsv", tsv([("q3", "d3", 1)]))
    write(folder / "qrels" / "dev.tsv", tsv([("q1", "d1", 1)]))
    for option, value, query in (("--qrels", str(other_queries), "q3"), ("--split", "dev", "q1")):
        err = cli("rank", folder, "-r", "bm25", "-o", tmp_path / "run.trec", option, value).err
        assert set(documents_by_query(tmp_path / "run.trec")) == {query}
        assert err.endswith(f" {option} {value}\n")


def test_options_that_an_audit_needs_too_stand_in_the_next_command(
    cli: Cli, tmp_path: Path
) -> None:
    queries = [{"_id": row["_id"], "text": row["text"]} for row in raw_docs()]
    judged = [("d1", "d2", 1), ("d2", "d3", 1), ("d1", "gone", 1)]
    folder, run = write_beir(tmp_path / "c", queries=queries, qrels=judged), tmp_path / "a.trec"
    err = cli("rank", folder, "-r", "bm25", "-o", run, "--ignore-unknown").err
    assert "bm25: the document that is the query itself left out for 2 queries" in err
    assert err.endswith(f"--run {run} --ignore-unknown --by none\n")
    err = cli("rank", folder, "-r", "bm25(exclude_self=false)", "-o", run, "--ignore-unknown").err
    assert err.endswith(f"-r 'replay:{run}(exclude_self=false)' --ignore-unknown --by none\n")


def test_queries_without_a_document_and_texts_cut_are_said(
    cli: Cli, tmp_path: Path, toy_folder: Path
) -> None:
    queries = [*raw_queries(), {"_id": "q4", "text": "zebra"}]
    folder = write_beir(tmp_path / "c", queries=queries, qrels=[("q1", "d1", 1), ("q4", "d1", 1)])
    err = cli("rank", folder, "-r", "bm25", "-o", tmp_path / "a.trec").err.splitlines()
    assert err[0] == f"{tmp_path / 'a.trec'}: 2 queries, 0 to 1 documents per query (bm25)"
    assert err[1] == "bm25: found nothing for 1 query; an audit counts that as 0"
    lone = cli(
        "rank", folder, "-r", "bm25", "-o", tmp_path / "b.trec", "--qrels", "none"
    ).err.splitlines()
    assert lone[1] == "bm25: found nothing for 1 query"
    saved = write_run(tmp_path / "saved.trec", {"q1": {"d1-human": 1.0}})
    cut = {"limit": 256, "share": {"human": 0.25, "llm": 0.0}}
    write(tmp_path / "saved.trec.json", json.dumps({"ranker": "dense:minilm", "truncated": cut}))
    err = cli("rank", toy_folder, "-r", f"replay:{saved}", "-o", tmp_path / "run.trec").err
    assert "saved: reads 256 tokens and truncates 25 % of human, 0 % of llm\n" in err
    assert "1 query, 1 document per query" in err


RANKER = "bm25@5>>listwise:openai:tiny(window=3,step=2)"


@pytest.fixture
def judge() -> Judge:
    """Half of its answers are prose."""
    return Judge(value=len, prose=0.5)


@pytest.fixture
def server(judge: Judge, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with Server(answer=judge) as judge_server:
        monkeypatch.setenv("OPENAI_BASE_URL", judge_server.url)
        yield judge_server


@pytest.mark.usefixtures("server")
def test_more_failures_than_allowed_end_each_verb_that_meets_them(cli: Cli, tmp_path: Path) -> None:
    folder, run, audit = (
        write_cocktail(tmp_path / "toy"),
        tmp_path / "run.trec",
        tmp_path / "audit.json",
    )
    few, many = ("--max-failures", "10"), ("--max-failures", "100%")
    for verb in (("rank", folder, "-o", run), ("audit", folder)):
        done = cli(*verb, "-r", RANKER, *few)
        assert done.code == 2
        assert "could not be read, max_failures allows 10 % (first: '" in done.err
        assert not (tmp_path / "run.trec").exists() or verb[0] == "audit"
        assert cli(*verb, "-r", RANKER, *many).code == 0
    assert cli("audit", folder, "--run", run, "--json", audit).code == 0
    gates = ("gate", audit), ("gate", audit, "--baseline", audit), ("compare", audit, audit)
    for command in (("audit", folder, "--run", run), *gates):
        done = cli(*command, *few)
        assert (done.code, done.err.count("\n")) == (2, 1)
        assert "could not be read, --max-failures allows 10 % (first: '" in done.err
        assert cli(*command, *many).code in (0, 3)


def test_the_limit_reaches_every_ranker_that_has_one_and_sets_none() -> None:
    from ranktilt.cli.rankers import read_rankers

    specs = ["bm25@5>>setwise:openai:m", "engine:my_engine:search(max_failures=50)", "tfidf"]
    read = read_rankers(specs, max_failures=2.5)
    assert list(map(repr, read)) == [
        "bm25@5>>setwise:openai:m(max_failures=2.5)",
        "engine:my_engine:search(max_failures=50.0)",
        "tfidf",
    ]


def estimated(out: str) -> dict[str, str]:
    return dict(line.strip().split("  ", 1) for line in out.splitlines() if line.startswith("  "))


def test_a_dry_run_counts_what_would_be_asked(
    cli: Cli, judge: Judge, server: Server, tmp_path: Path
) -> None:
    judge.prose = 0.0
    folder = write_cocktail(tmp_path / "toy")
    done = cli("rank", folder, "-r", RANKER, "--dry-run", "--price", "1000,2000")
    assert done.code == 0
    assert not server.requests
    first = {name: text.strip() for name, text in estimated(done.out).items()}
    assert done.out.startswith(f"{RANKER}\n  requests    ")
    assert cli("rank", folder, "-r", RANKER, "-o", tmp_path / "run.trec").code == 0
    count = len(server.requests)
    assert first["requests"] == f"{count} (0 of {count} are answered already)"
    read, written = (int(first[name].partition(",")[0]) for name in ("tokens in", "tokens out"))
    assert first["price"] == f"{(read * 1000 + written * 2000) / 1e6:,.2f}"

    again = estimated(cli("rank", folder, "-r", RANKER, "--dry-run").out)
    assert again["requests"].strip() == f"0 ({count} of {count} are answered already)"
    assert again["tokens in"].strip().startswith("0, ")
    assert len(server.requests) == count


@pytest.mark.usefixtures("server")
def test_a_dry_run_of_several_stages_says_what_each_would_ask(
    cli: Cli, server: Server, tmp_path: Path
) -> None:
    spec = "bm25@8>>setwise:openai:tiny(size=3,top=3)@4>>pointwise:openai:tiny"
    done = cli("rank", write_cocktail(tmp_path / "toy"), "-r", spec, "-r", "bm25", "--dry-run")
    blocks = done.out.split("\n\n")
    assert [block.splitlines()[0] for block in blocks] == [spec.rpartition(">>")[0], spec]
    assert (
        estimated(blocks[0])["price"].strip() == "give one with --price IN,OUT per million tokens"
    )
    assert not server.requests
