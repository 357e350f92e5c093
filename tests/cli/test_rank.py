"""ranktilt rank: a run written now is audited later as if it had been made then."""

import csv
import gzip
import io
import json
import shlex
from pathlib import Path

import pytest

import ranktilt as rt
from ranktilt._version import __version__
from tests.cli.conftest import Cli, refused
from tests.toy import raw_docs, raw_queries, tsv, write, write_beir, write_cocktail, write_run

QUICK = ("--resamples", "200")
FOUND = {"q1": {"d1-human", "d1-llm"}, "q2": {"d2-human", "d2-llm"}, "q3": {"d3-human", "d3-llm", "d1-human"}}
"""What shares a word with each of the toy's queries: by hand."""


def found_in(file: Path) -> dict[str, set[str]]:
    """Documents of each query in a TREC file."""
    lines = [line.split() for line in file.read_text().splitlines()]
    return {query: {line[2] for line in lines if line[0] == query} for query in {line[0]: None for line in lines}}


def files(folder: Path) -> list[str]:
    """Names of everything below a folder."""
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


def test_the_run_is_the_rankers(cli: Cli, toy_folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.trec"
    code, out, _ = cli("rank", toy_folder, "-r", "bm25(b=0.4)@2", "-o", file)
    assert (code, out) == (0, "")
    assert rt.Run.load(file) == rt.ranker("bm25(b=0.4)@2").rank(rt.load(toy_folder))


def test_the_file_is_trec_and_holds_what_was_found(cli: Cli, toy_folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.trec"
    cli("rank", toy_folder, "-r", "bm25", "-o", file)
    assert found_in(file) == FOUND
    lines = [line.split() for line in file.read_text().splitlines()]
    assert {(len(line), line[1], line[5]) for line in lines} == {(6, "Q0", "ranktilt")}
    assert [int(line[3]) for line in lines] == [1, 2, 1, 2, 1, 2, 3]


def test_the_sidecar_says_how_it_was_made(cli: Cli, toy_folder: Path, tmp_path: Path) -> None:
    arguments = ["rank", str(toy_folder), "-r", "bm25@2", "--text", "title", "-o", str(tmp_path / "run.trec")]
    cli(*arguments)
    spec = json.loads((tmp_path / "run.trec.json").read_text())
    assert spec == {
        "ranker": "bm25(text=title)@2",
        "precision": "exact",
        "ranktilt": __version__,
        "collection": str(toy_folder),
        "command": shlex.join(["ranktilt", *arguments]),
    }


def test_notes_say_how_much_where_and_what_to_do_next(cli: Cli, toy_folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.trec"
    err = cli("rank", toy_folder, "-r", "bm25", "-o", file).err
    assert err.splitlines() == [
        f"{file}: 3 queries, 2 to 3 documents a query (bm25)",
        f"Audit it: ranktilt audit {toy_folder} --run {file}",
    ]


def numbers(cli: Cli, *arguments: object) -> list[dict[str, object]]:
    """Everything an audit says of its one run, without the run's name."""
    rows = csv.DictReader(io.StringIO(cli("audit", *map(str, arguments), *QUICK, "--format", "csv").out))
    return [{key: value for key, value in row.items() if key != "run"} for row in rows]


@pytest.mark.parametrize("spec", ["bm25", "tfidf@2", "bm25(text=text)@1"])
def test_the_next_command_gives_the_same_audit(cli: Cli, toy_folder: Path, tmp_path: Path, spec: str) -> None:
    folder = tmp_path / "a folder with blanks"
    err = cli("rank", toy_folder, "-r", spec, "-o", f"{folder}/run.trec").err
    command = shlex.split(err.splitlines()[-1].removeprefix("Audit it: "))
    assert command[:2] == ["ranktilt", "audit"]
    later, now = numbers(cli, *command[2:]), numbers(cli, toy_folder, "-r", spec)
    assert later == now


@pytest.mark.data
def test_a_real_run_gives_the_same_verdict(cli: Cli, shared_data: Path, tmp_path: Path) -> None:
    folder = shared_data / "cocktail-nfcorpus"
    err = cli("rank", folder, "-r", "bm25", "-o", tmp_path / "run.trec").err
    assert "323 queries, 0 to 1,000 documents a query (bm25)\nbm25: found nothing for 15 queries; an audit" in err
    outs = [
        cli("audit", folder, *ranked, *QUICK, "-m", "nDCG@1", "--quiet").out
        for ranked in (("-r", "bm25"), ("--run", tmp_path / "run.trec"))
    ]
    said = [next(line for line in out.splitlines() if "Relative Δ −27.3 %" in line) for out in outs]
    assert said[0].removeprefix("bm25: ") == said[1].removeprefix("run: ")


def test_stdout_holds_the_run_and_nothing_else(cli: Cli, toy_folder: Path, tmp_path: Path) -> None:
    cli("rank", toy_folder, "-r", "bm25", "-o", tmp_path / "run.trec")
    before = files(tmp_path)
    code, out, err = cli("rank", toy_folder, "-r", "bm25", "-o", "-")
    assert code == 0
    assert out == (tmp_path / "run.trec").read_text()
    assert err == "stdout: 3 queries, 2 to 3 documents a query (bm25)\n"
    assert files(tmp_path) == before


def test_a_name_that_ends_in_gz_is_compressed(cli: Cli, toy_folder: Path, tmp_path: Path) -> None:
    for name in ("run.trec", "run.trec.gz"):
        cli("rank", toy_folder, "-r", "bm25", "-o", tmp_path / name)
    assert gzip.decompress((tmp_path / "run.trec.gz").read_bytes()) == (tmp_path / "run.trec").read_bytes()
    assert json.loads((tmp_path / "run.trec.gz.json").read_text())["ranker"] == "bm25"


def test_several_rankers_fill_a_folder(cli: Cli, toy_folder: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    err = cli("rank", toy_folder, "-r", "bm25(k1=0.9)@2", "-r", "tfidf", "-r", "bm25(k1=0.9)@2", "-o", f"{runs}/").err
    names = ["bm25_k1=0.9_@2.trec", "tfidf.trec", "bm25_k1=0.9_@2-2.trec"]
    assert files(runs) == sorted([*names, *(f"{name}.json" for name in names)])
    assert err.splitlines()[-1] == shlex.join(
        ["Audit", "it:", "ranktilt", "audit", str(toy_folder), *(p for n in names for p in ("--run", str(runs / n)))]
    )
    assert rt.Run.load(runs / names[1]).name == "tfidf"


@pytest.mark.parametrize("letter", ["a", "文"])
def test_a_name_fits_every_file_system(cli: Cli, toy_folder: Path, tmp_path: Path, letter: str) -> None:
    saved = write_run(tmp_path / f"{letter * 80}.trec", {"q1": {"d1-human": 1.0}})
    for verb, place in (("rank", ["-o", f"{tmp_path / 'runs'}/"]), ("audit", ["--save", tmp_path / "s", "-m", "RR"])):
        given = ["-r", f"replay:{saved}", *place, *(["--resamples", "100"] if verb == "audit" else [])]
        assert cli(verb, toy_folder, *given).code == 0
    names = [path.name.encode() for path in (*(tmp_path / "runs").iterdir(), *(tmp_path / "s" / "runs").iterdir())]
    assert len(names) == 4
    assert max(map(len, names)) <= 100


def test_one_ranker_may_name_a_folder_too(cli: Cli, toy_folder: Path, tmp_path: Path) -> None:
    cli("rank", toy_folder, "-r", "bm25", "-o", tmp_path)
    assert {"bm25.trec", "bm25.trec.json"} <= set(files(tmp_path))


def test_only_judged_queries_are_ranked_unless_none_is(cli: Cli, tmp_path: Path) -> None:
    folder = write_cocktail(tmp_path / "c", qrels=[("q2", "d2", 1)])
    cli("rank", folder, "-r", "bm25", "-o", tmp_path / "judged.trec")
    err = cli("rank", folder, "-r", "bm25", "-o", tmp_path / "all.trec", "--qrels", "none").err
    assert set(found_in(tmp_path / "judged.trec")) == {"q2"}
    assert found_in(tmp_path / "all.trec") == FOUND
    assert err.endswith(f"--run {tmp_path / 'all.trec'} --qrels none\n")


def test_judgments_of_a_file_or_a_split_choose_the_queries(cli: Cli, toy_folder: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "other.tsv", tsv([("q3", "d3", 1)]))
    write(toy_folder / "qrels" / "dev.tsv", tsv([("q1", "d1", 1)]))
    for option, value, query in (("--qrels", str(other), "q3"), ("--split", "dev", "q1")):
        err = cli("rank", toy_folder, "-r", "bm25", "-o", tmp_path / "run.trec", option, value).err
        assert set(found_in(tmp_path / "run.trec")) == {query}
        assert err.endswith(f" {option} {value}\n")


def test_queries_without_a_document_are_counted(cli: Cli, tmp_path: Path) -> None:
    queries = [*raw_queries(), {"_id": "q4", "text": "zebra"}]
    folder = write_beir(tmp_path / "c", queries=queries, qrels=[("q1", "d1", 1), ("q4", "d1", 1)])
    err = cli("rank", folder, "-r", "bm25", "-o", tmp_path / "a.trec").err.splitlines()
    assert err[0] == f"{tmp_path / 'a.trec'}: 2 queries, 0 to 1 documents a query (bm25)"
    assert err[1] == "bm25: found nothing for 1 query; an audit counts that as 0"
    lone = cli("rank", folder, "-r", "bm25", "-o", tmp_path / "b.trec", "--qrels", "none").err.splitlines()
    assert lone[1] == "bm25: found nothing for 1 query"


def test_own_documents_are_left_out_as_asked(cli: Cli, tmp_path: Path) -> None:
    docs = raw_docs()
    queries = [{"_id": row["_id"], "text": row["text"]} for row in docs]
    folder = write_beir(tmp_path / "c", docs=docs, queries=queries, qrels=[(f"d{i}", "d1", 1) for i in (1, 2, 3)])
    without = cli("rank", folder, "-r", "bm25", "-o", tmp_path / "a.trec").err
    assert "bm25: own documents of 3 queries left out (--no-exclude-self)" in without
    assert all(query not in found for query, found in found_in(tmp_path / "a.trec").items())
    kept = cli("rank", folder, "-r", "bm25", "-o", tmp_path / "b.trec", "--no-exclude-self").err
    assert kept.endswith(f"--run {tmp_path / 'b.trec'} --no-exclude-self\n")
    assert all(query in found for query, found in found_in(tmp_path / "b.trec").items())


def test_what_a_model_does_not_read_is_said(cli: Cli, toy_folder: Path, tmp_path: Path) -> None:
    saved = write_run(tmp_path / "saved.trec", {"q1": {"d1-human": 1.0}})
    cut = {"limit": 256, "share": {"human": 0.25, "llm": 0.0}}
    write(tmp_path / "saved.trec.json", json.dumps({"ranker": "dense:minilm", "truncated": cut}))
    err = cli("rank", toy_folder, "-r", f"replay:{saved}", "-o", tmp_path / "run.trec").err
    assert "saved: reads 256 tokens; longer, and cut, are 25 % of human, 0 % of llm\n" in err
    assert "1 query, 1 document a query" in err


def test_unknown_judgments_are_refused_unless_ignored(cli: Cli, tmp_path: Path) -> None:
    folder = write_cocktail(tmp_path / "c", qrels=[("q1", "d1", 1), ("q1", "d9", 1)])
    message = refused(cli, "rank", folder, "-r", "bm25", "-o", tmp_path / "run.trec")
    assert message.startswith(f"{folder}/qrels/test.tsv:3: 1 judgment of 1 unknown document (first: 'd9')")
    err = cli("rank", folder, "-r", "bm25", "-o", tmp_path / "run.trec", "--ignore-unknown").err
    assert err.endswith(f"--run {tmp_path / 'run.trec'} --ignore-unknown\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{toy}", "-o", "{tmp}/a"], "nothing to rank with: name a ranker, such as -r bm25"),
        (["{toy}", "-r", "bm25", "-r", "tfidf", "-o", "{tmp}/a"], "-o {tmp}/a: holds one run, got 2 rankers; "),
        (["{toy}", "-r", "bm25", "-r", "tfidf", "-o", "-"], "-o -: holds one run, got 2 rankers; name a "),
        (["{toy}", "-r", "bm25", "-o", "{toy}/queries.jsonl"], "-o {toy}/queries.jsonl: this file is read too; "),
        (["{toy}", "-r", "bm25", "-o", "{toy}/queries.jsonl/"], "{toy}/queries.jsonl/bm25.trec: cannot be written: "),
        (["{toy}", "-r", "replay:{tmp}/r.json", "-o", "{tmp}/r"], "-o, its sidecar {tmp}/r.json: this file is read"),
        (["{toy}", "-r", "bm25", "-o", "{tmp}/b", "--split", "dev"], "{toy}/qrels: unknown split 'dev' (valid: test)"),
        (["{toy}", "-r", "bm25@5>>replay:{tmp}/r", "-o", "{tmp}/b"], "replay:{tmp}/r replays a whole run and re-ranks"),
    ],
)
def test_rank_refuses_in_one_line(
    cli: Cli, toy_folder: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    write_run(tmp_path / "r", {"q1": {"d1-human": 1.0}})
    write(tmp_path / "r.json", '{"q1": {"d1-human": 1.0}}')
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    places = {"toy": toy_folder, "tmp": tmp_path}
    got = refused(cli, "rank", *(argument.format(**places) for argument in arguments))
    assert got.startswith(message.format(**places))
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before
