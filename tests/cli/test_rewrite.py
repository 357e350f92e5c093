"""ranktilt generate rewrite against a real server on loopback: output, notes, exit codes, and what faults leave."""

import gzip
import hashlib
import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

import ranktilt as rt
from tests.cli.conftest import Cli, refused
from tests.datasets.hub_cache import cached, mteb, point_to
from tests.llm.server import FAULTS, Faults, Server
from tests.toy import raw_qrels, tsv, write, write_beir

pytestmark = pytest.mark.usefixtures("no_key")
SOURCE = "tiny-tmp0.2"
WORDS = [
    "amber", "basalt", "cedar", "delta", "ember", "fjord", "granite", "harbour", "island", "juniper", "kelp", "lagoon",
    "meadow", "nectar", "orchard", "pebble", "quarry", "ridge", "summit", "tundra", "upland", "valley", "willow",
]  # fmt: skip
ENDING = ("401", "403", "404-model", "429-quota")
"""Faults that no other prompt would survive."""
LOST = ("429", "429-retry-after", "500", "503", "hang", "drop", "malformed", "empty-choices")
"""Faults that leave a document without an answer where nothing is sent again."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return collection(tmp_path / "in")


def text(number: int) -> str:
    """Two sentences that no other document has."""
    words = [WORDS[(number * 7 + step * (1 + number % 5)) % len(WORDS)] for step in range(16)]
    return f"Number {number} tells of {', '.join(words[:8])}. Later it tells of {' and '.join(words[8:])}."


def collection(folder: Path, count: int = 12) -> Path:
    docs = [{"_id": f"d{n}", "title": f"Title {n}", "text": text(n)} for n in range(count)]
    return write_beir(folder, docs=docs, qrels=[("q1", "d0", 2), ("q2", "d1", 1), ("q3", "d2", 1)])


def run(cli: Cli, server: Server, folder: Path, *arguments: str | Path, out: str = "out") -> tuple[int, str, str]:
    """Rewrite with a client that is quick to give up, unless told otherwise."""
    usual = ["--llm", "openai:tiny", "--base-url", server.url, "--timeout", "1", "-o", folder.parent / out]
    return cli("generate", "rewrite", folder, *usual, *arguments)


def rewrites(folder: Path) -> Counter[str]:
    """How often each document's id stands in the output as a rewrite."""
    rows = (json.loads(line) for line in (folder / "corpus.jsonl").read_text().splitlines())
    return Counter(row["origin"].removesuffix("-human") for row in rows if row["source"] == SOURCE)


def once(count: int = 12) -> Counter[str]:
    return Counter(f"d{n}" for n in range(count))


def sound(server: Server) -> None:
    """Let the server answer everything from now on."""
    server.script, server.faults = [], None


def asked(bodies: list[dict[str, object]]) -> Counter[str]:
    return Counter(json.dumps(body["messages"]) for body in bodies)


def test_a_collection_and_its_rewrites_are_written(cli: Cli, server: Server, folder: Path) -> None:
    code, out, err = run(cli, server, folder)
    made = folder.parent / "out"
    assert (code, out) == (0, "")
    assert rewrites(made) == once()
    assert err.splitlines() == [
        f"{made}: {rt.load(made)!r}",
        f"{SOURCE}: 12 of 12 documents rewritten",
        "12 answers asked for",
        f"Next: ranktilt check {made}",
    ]
    assert rt.load(made).pairs("human", SOURCE).height == 12


def test_rewrites_in_parts_are_those_in_json_lines(cli: Cli, server: Server, folder: Path) -> None:
    run(cli, server, folder)
    made, parts = folder.parent / "out", folder.parent / "parts"
    assert run(cli, server, folder, "--rows-per-file", 10, out="parts")[0] == 0
    assert rt.load(parts) == rt.load(made)
    assert sorted(p.name for p in (parts / "corpus").iterdir()) == [f"part-0000{n}-of-00003.parquet" for n in range(3)]
    known = json.loads((parts / "manifest.json").read_text())["files"]
    names = ["README.md", "answers.jsonl.gz", *(f"corpus/part-0000{n}-of-00003.parquet" for n in range(3))]
    assert sorted(known)[:5] == names
    assert known[names[-1]] == hashlib.sha256((parts / names[-1]).read_bytes()).hexdigest()
    code, _, err = run(cli, server, folder, "--rows-per-file", 10, out="parts")
    assert (code, len(server.requests)) == (0, 12), err


def test_the_same_command_again_asks_nothing(cli: Cli, server: Server, folder: Path) -> None:
    run(cli, server, folder)
    before = {p: p.read_bytes() for p in (folder.parent / "out").rglob("*") if p.is_file()}
    code, _, err = run(cli, server, folder)
    assert code == 0
    assert len(server.requests) == 12
    assert "0 answers asked for; 12 were known" in err
    assert {p: p.read_bytes() for p in (folder.parent / "out").rglob("*") if p.is_file()} == before


def test_the_server_gets_model_prompt_and_sampling(cli: Cli, server: Server, folder: Path) -> None:
    options = ["--temperature", "0.7", "--top-p", "0.9", "--max-tokens", "200", "--seed", "3", "--limit", "1"]
    run(cli, server, folder, *options)
    body = server.requests[0][1]
    assert body["messages"] == [{"role": "user", "content": f"Please rewrite the following text: {text(0)}"}]
    assert (body["model"], body["temperature"], body["top_p"], body["seed"]) == ("tiny", 0.7, 0.9, 3)
    assert (body.get("max_tokens") or body.get("max_completion_tokens")) == 200


def test_several_temperatures_make_several_sources(cli: Cli, server: Server, folder: Path) -> None:
    code, _, err = run(cli, server, folder, "--temperature", "0.2", "--temperature", "1")
    assert code == 0
    assert rt.load(folder.parent / "out").sources == ("human", SOURCE, "tiny-tmp1.0")
    assert "tiny-tmp1.0: 12 of 12 documents rewritten" in err


def test_a_collection_with_rewrites_gets_another_source(cli: Cli, server: Server, folder: Path) -> None:
    run(cli, server, folder)
    prompt = write(folder.parent / "anew.txt", "Say it anew: {text}")
    code, _, _ = run(cli, server, folder.parent / "out", "--prompt", prompt, out="both")
    assert code == 0
    assert rt.load(folder.parent / "both").sources == ("human", SOURCE, "tiny-tmp0.2-anew")
    error = refused(
        cli,
        "generate",
        "rewrite",
        folder.parent / "out",
        "--llm",
        "openai:tiny",
        "--base-url",
        server.url,
        "-o",
        folder.parent / "x",
    )
    assert f"source '{SOURCE}' is in this collection already" in error


@pytest.mark.parametrize("fault", FAULTS)
def test_after_any_fault_a_rerun_has_each_document_once(cli: Cli, server: Server, folder: Path, fault: str) -> None:
    server.script = [None] * 4 + [fault] * 2
    first = run(cli, server, folder, "--concurrency", "2", "--retries", "0")
    sound(server)
    answered, before = asked(server.answered), len(server.requests)
    code, _, err = run(cli, server, folder)
    again = asked(server.bodies[before:])
    assert first[0] == (2 if fault in ENDING else 1 if fault in LOST else 0), first
    assert code == 0, err
    assert rewrites(folder.parent / "out") == once()
    assert not answered & again, "an answer was paid for twice"
    assert set(answered | again) == set(asked(server.answered)), "each document was answered"


@pytest.mark.parametrize("fault", ENDING)
def test_a_fault_that_ends_all_says_so_in_one_line_and_writes_nothing(cli: Cli, folder: Path, fault: str) -> None:
    with Server(script=[None] * 6, faults=Faults(share=1, kinds=(fault,))) as server:
        code, out, err = run(cli, server, folder)
    assert (code, out) == (2, "")
    assert err.startswith("ranktilt generate rewrite: ") or err.startswith("ranktilt: ")
    assert err.count("\n") == 1
    assert not (folder.parent / "out").exists()


def test_documents_without_an_answer_give_exit_1_and_are_listed(cli: Cli, folder: Path) -> None:
    with Server(script=["500"]) as server:
        code, _, err = run(cli, server, folder, "--retries", "0", "--concurrency", "1")
    assert code == 1
    assert f"{SOURCE}: 11 of 12 documents rewritten; left out: 1 unanswered" in err
    assert err.splitlines()[-1].startswith("1 document got no answer (")
    assert err.splitlines()[-1].endswith("); the same command again asks only for these")
    listed = [json.loads(line) for line in (folder.parent / "out" / "left-out.jsonl").read_text().splitlines()]
    assert [(row["_id"], row["reason"]) for row in listed] == [("d0-human", "unanswered")]


def test_flagged_documents_are_listed_and_are_no_failure(cli: Cli, folder: Path) -> None:
    def says(messages: list[dict[str, str]], body: dict[str, object]) -> str:
        from tests.llm.server import rewritten

        return (
            "I cannot help with rewriting that."
            if "Number 3 " in messages[-1]["content"]
            else rewritten(messages, body)
        )

    with Server(says) as server:
        code, _, err = run(cli, server, folder, "--attempts", "2")
    assert code == 0
    assert len(server.requests) == 13
    assert f"{SOURCE}: 11 of 12 documents rewritten; left out: 1 flagged; flagged answers: 2 refusal" in err
    assert f"left out: d3-human (flagged); all in {folder.parent / 'out' / 'left-out.jsonl'}" in err


def test_nothing_that_passes_is_exit_1(cli: Cli, folder: Path) -> None:
    with Server(lambda messages, body: "I cannot help with rewriting that.") as server:
        code, _, err = run(cli, server, folder, "--attempts", "1")
    assert code == 1
    assert err.splitlines()[-1] == "no answer passed the checks: there is nothing to compare"
    assert rt.load(folder.parent / "out").sources == ("human",)


def test_a_document_longer_than_the_context_is_listed_or_cut(cli: Cli, tmp_path: Path) -> None:
    docs = [{"_id": "short", "text": text(1)}, {"_id": "long", "text": " ".join(text(n) for n in range(20))}]
    folder = write_beir(tmp_path / "in", docs=docs, qrels=[("q1", "short", 1)])
    with Server(context=100) as server:
        code, _, err = run(cli, server, folder)
        assert code == 0
        assert "1 of 2 documents rewritten; left out: 1 too long" in err
        code, _, err = run(cli, server, folder, "--truncate")
    assert code == 0
    assert "2 of 2 documents rewritten; 1 of a text that was cut" in err
    made = rt.load(tmp_path / "out").docs.filter(pl.col("source") == SOURCE)
    assert made["cut_to"].to_list()[0] is None
    assert 70 <= made["cut_to"].to_list()[1] <= 95
    assert set(made["text"][1].lower().replace(".", "").replace(",", "").split()) <= {
        word for row in docs for word in row["text"].lower().replace(".", "").replace(",", "").split()
    }


def test_a_collection_that_changed_asks_only_what_is_new(cli: Cli, server: Server, folder: Path) -> None:
    run(cli, server, folder)
    lines = (folder / "corpus.jsonl").read_text().splitlines(keepends=True)
    write(folder / "corpus.jsonl", "".join([lines[0].replace("Number 0", "Item 0"), *lines[1:]]))
    code, _, err = run(cli, server, folder)
    assert code == 0
    assert "1 answer asked for; 11 were known" in err
    assert len(server.requests) == 13


def test_all_splits_come_along_and_the_pool_is_marked(cli: Cli, server: Server, folder: Path) -> None:
    write(folder / "qrels" / "train.tsv", tsv([("q1", "d5", 1)]))
    code, _, err = run(cli, server, folder, "--pool", "bm25(k1=0.9,b=0.4),tfidf", "--pool-depth", "1")
    assert code == 0
    assert err.startswith("pool: ")
    made = rt.load(folder.parent / "out")
    assert (folder.parent / "out" / "qrels" / "train.tsv").is_file()
    chosen = made.docs.filter(pl.col("pool") & (pl.col("source") == "human"))["id"].to_list()
    assert {"d0-human", "d1-human", "d2-human"} <= set(chosen)
    assert len(server.requests) == len(chosen) < 12
    assert "Queries chose the documents" in (folder.parent / "out" / "README.md").read_text()


def test_the_next_command_names_the_split_that_was_named(cli: Cli, server: Server, folder: Path) -> None:
    write(folder / "qrels" / "train.tsv", tsv([("q1", "d5", 1)]))
    err = run(cli, server, folder, "--split", "train", "--pool", "bm25", "--pool-depth", "1")[2]
    assert err.splitlines()[-1] == f"Next: ranktilt check {folder.parent / 'out'} --split train"
    docs = rt.load(folder.parent / "out").docs
    assert "d5-human" in docs.filter(pl.col("pool"))["id"].to_list()


def test_a_dry_run_asks_nothing_and_needs_no_key(cli: Cli, folder: Path) -> None:
    code, out, err = cli(
        "generate", "rewrite", folder, "--llm", "openai:gpt-4o-mini", "--dry-run", "--price", "0.15,0.60"
    )
    assert (code, err) == (0, "")
    lines = dict(line.split("  ", 1) for line in out.splitlines())
    assert {name: lines[name].strip() for name in ("documents", "sources")} == {
        "documents": "12 documents",
        "sources": "gpt-4o-mini-tmp0.2",
    }
    assert lines["requests"].strip().startswith("12 (0 of 12 are answered already)")
    assert set(lines) == {"documents", "sources", "requests", "tokens in", "tokens out", "price", "time"}
    assert not (folder.parent / "cache").exists()


def test_a_dry_run_knows_what_is_journalled(cli: Cli, server: Server, folder: Path) -> None:
    run(cli, server, folder, "--limit", "5")
    options = ["--base-url", server.url, "--dry-run", "--json", "-", "--requests-per-minute", "60", "--price", "1,2"]
    code, out, _ = cli("generate", "rewrite", folder, "--llm", "openai:tiny", *options)
    content = json.loads(out)
    assert code == 0
    assert (content["requests"], content["journalled"]) == (12, 5)
    assert content["seconds"] == 7
    assert content["pace"] == ", by 60 requests a minute"
    assert len(server.requests) == 5


def test_json_holds_what_came_of_it(cli: Cli, server: Server, folder: Path, tmp_path: Path) -> None:
    code, out, err = run(cli, server, folder, "--json", tmp_path / "made.json", "--quiet")
    content = json.loads((tmp_path / "made.json").read_text())
    assert (code, out, err) == (0, "", "")
    assert content["made"][0]["rewritten"] == 12
    assert content["left_out"] == []
    assert content["spec"]["llm"]["model"] == "tiny"


def test_limits_and_prompt_of_ones_own(cli: Cli, server: Server, folder: Path, tmp_path: Path) -> None:
    prompt = write(tmp_path / "mine.txt", "Say it anew: {text}\n")
    options = ["--prompt", prompt, "--max-length-ratio", "0.5", "--min-length-ratio", "0.1", "--attempts", "1"]
    code, _, err = run(cli, server, folder, *options)
    assert code == 1
    assert "flagged answers: 12 too long" in err
    assert server.requests[0][1]["messages"][0]["content"].startswith("Say it anew: Number")


def test_no_key_reaches_a_file(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-1")
    with Server(key="sk-very-secret-1") as server:
        assert run(cli, server, folder)[0] == 0
    everything = b"".join(
        gzip.decompress(p.read_bytes()) if p.suffix == ".gz" else p.read_bytes()
        for p in folder.parent.rglob("*")
        if p.is_file()
    )
    assert b"sk-very-secret" not in everything


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "where to? Name a folder: -o DIR; or ask for the cost: --dry-run"),
        (["-o", "{tmp}/out", "--price", "1,2"], "--price is about the estimate; ask for it: --dry-run"),
        (["-o", "{tmp}/out", "--pool-depth", "9"], "--pool-depth is about a pool; name its rankers"),
        (["-o", "{tmp}/in"], "-o {tmp}/in: this is the collection that is read; choose another"),
        (["-o", "{tmp}/other"], "{tmp}/other/corpus.jsonl: is no part of rewrites and would be lost"),
        (["--dry-run", "--price", "cheap"], "--price expects two numbers, of a million tokens in and"),
        (["--dry-run", "--titles", "keeep"], "Invalid value for '--titles': 'keeep' is not one of"),
        (["--dry-run", "--prompt", "{tmp}/q.txt"], "{tmp}/q.txt: {{query}} cannot be filled in"),
        (["--dry-run", "--source-to-rewrite", "llm"], "unknown source 'llm' (valid: human)"),
        (["--dry-run", "--device", "cpu"], "unknown option of openai 'device'"),
        (
            ["--dry-run", "--llm", "transformers:none", "--base-url", "http://localhost:8000/v1"],
            "unknown option of transformers 'base_url'",
        ),
        (["--dry-run", "--temperature", "-1"], "Invalid value for '--temperature': "),
    ],
)  # fmt: skip
def test_mistakes_are_refused_in_one_line(cli: Cli, folder: Path, arguments: list[str], message: str) -> None:
    tmp = folder.parent
    write_beir(tmp / "other", qrels=raw_qrels())
    write(tmp / "q.txt", "{text} {query}")
    write(tmp / "none.txt", "nothing here")
    usual = [] if "--llm" in arguments else ["--llm", "openai:tiny"]
    code, out, err = cli("generate", "rewrite", folder, *usual, *(argument.format(tmp=tmp) for argument in arguments))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.split(": ", 1)[1].startswith(message.format(tmp=tmp))
    assert not (tmp / "out").exists()


def test_a_named_collection_keeps_its_judgments(
    cli: Cli, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("huggingface_hub")
    point_to(tmp_path / "hub", monkeypatch)
    cached(tmp_path / "hub", "mteb/scifact", mteb())
    given = ["--llm", "openai:tiny", "--base-url", server.url, "-o", tmp_path / "out", "--attempts", "1"]
    code, _, err = cli("generate", "rewrite", "hub:mteb/scifact", *given)
    assert (code, err.splitlines()[0].rpartition("; ")[2]) == (0, "3 queries, 10 judgments)")
    human = rt.load("hub:mteb/scifact").qrels
    made = rt.load(tmp_path / "out").qrels
    assert made.height == 2 * human.height
    assert [p.name for p in (tmp_path / "out" / "qrels").iterdir()] == ["test.tsv"]


@pytest.mark.parametrize("verb", [("check",), ("check", "--full", "--similarity", "none")])
def test_what_comes_next_works_without_judgments_too(
    cli: Cli, server: Server, folder: Path, verb: tuple[str, ...]
) -> None:
    (folder / "qrels" / "test.tsv").unlink()
    assert run(cli, server, folder)[0] == 0
    code, out, err = cli(*verb, folder.parent / "out")
    # The server's rewrites are the same words in another order: nothing is left to compare.
    assert (code, "Traceback" in err) == (1, False)
    assert "Void because of near-identical pairs (12 of 12, 100.0 %" in " ".join(out.split())


def test_the_test_split_chooses_the_pool_if_there_are_several(cli: Cli, server: Server, folder: Path) -> None:
    write(folder / "qrels" / "dev.tsv", tsv([("q1", "d5", 1)]))
    run(cli, server, folder, "--pool", "bm25", "--pool-depth", "1")
    docs = rt.load(folder.parent / "out", split="test").docs
    chosen = docs.filter(pl.col("pool") & (pl.col("source") == "human"))["id"].to_list()
    assert {"d0-human", "d1-human", "d2-human"} <= set(chosen)
    assert "d5-human" not in chosen
