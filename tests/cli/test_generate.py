"""ranktilt generate against a real server on loopback: output, notes, exit codes, and what faults
leave.
"""

import gzip
import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

import ranktilt as rt
from tests.cli.conftest import Cli, refused
from tests.data.hub_cache import cached, mteb, point_to
from tests.llm.server import Faults, Server, rewritten
from tests.toy import tsv, write, write_beir

pytestmark = pytest.mark.usefixtures("no_key")
SOURCE = "tiny-tmp0.2"
WORDS = [
    "amber",
    "basalt",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "granite",
    "harbour",
    "island",
    "juniper",
    "kelp",
    "lagoon",
    "meadow",
    "nectar",
    "orchard",
    "pebble",
    "quarry",
    "ridge",
    "summit",
    "tundra",
    "upland",
    "valley",
    "willow",
]
QUERIES = {
    "q1": "what shortens a cold",
    "q2": "where does the river meet the sea",
    "q3": "why do old clocks lose time",
}
ASKED = "Please write a passage that answers the following query: "


def text(number: int) -> str:
    """Two sentences that no other document has."""
    words = [WORDS[(number * 7 + step * (1 + number % 5)) % len(WORDS)] for step in range(16)]
    return (
        f"Number {number} tells of {', '.join(words[:8])}. Later it tells of "
        f"{' and '.join(words[8:])}."
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    docs = [
        {"_id": f"d{n}", "title": f"Title {n}", "text": text(n), "source": "human"}
        for n in range(12)
    ]
    return write_beir(
        tmp_path / "in", docs=docs, qrels=[("q1", "d0", 2), ("q2", "d1", 1), ("q3", "d2", 1)]
    )


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    return write(
        tmp_path / "queries.tsv", "".join(f"{name}\t{text}\n" for name, text in QUERIES.items())
    )


def rewrite(cli: Cli, server: Server, folder: Path, *arguments: str | Path) -> tuple[int, str, str]:
    """Rewrite with a client that is quick to give up, unless told otherwise."""
    output = [] if "-o" in arguments else ["-o", folder.parent / "out"]
    model = [] if "--llm" in arguments else engine(server)
    return cli("generate", "rewrite", folder, *model, *output, *arguments)


def answer(cli: Cli, server: Server, path: Path, *arguments: str | Path) -> tuple[int, str, str]:
    model = [] if "--llm" in arguments else engine(server)
    return cli("generate", "answer", path, *model, "-o", path.parent / "out", *arguments)


def engine(server: Server, **options: float) -> list[str]:
    """Name the server's model, with options in its text."""
    options = {"timeout": 1, **options}
    text = ",".join(f"{name}={value}" for name, value in options.items())
    return ["--llm", f"openai:tiny(base_url={server.url},{text})"]


def messages(bodies: list[dict[str, object]]) -> Counter[str]:
    return Counter(json.dumps(body["messages"]) for body in bodies)


def test_a_collection_and_its_rewrites_are_written(cli: Cli, server: Server, folder: Path) -> None:
    output = folder.parent / "out"
    code, out, err = rewrite(cli, server, folder, "--json", folder.parent / "made.json")
    assert (code, out) == (0, "")
    assert err.splitlines() == [
        f"{output}: {rt.load(output)!r}",
        f"{SOURCE}: 12 of 12 documents rewritten",
        "asked for 12 answers",
        f"Next: ranktilt check {output}",
    ]
    assert rt.load(output).pairs("human", SOURCE).height == 12
    content = json.loads((folder.parent / "made.json").read_text())
    assert (content["summaries"][0]["rewritten"], content["left_out"]) == (12, [])
    assert content["spec"]["llm"]["model"] == "tiny"
    before = {path: path.read_bytes() for path in output.rglob("*") if path.is_file()}
    code, _, err = rewrite(cli, server, folder)
    assert (code, len(server.requests)) == (0, 12)
    assert "asked for 0 answers; had 12 already" in err
    assert {path: path.read_bytes() for path in output.rglob("*") if path.is_file()} == before
    quiet = rewrite(
        cli, server, folder, "--rows-per-file", "10", "--quiet", "-o", folder.parent / "parts"
    )
    assert quiet[1:] == ("", "")
    assert rt.load(folder.parent / "parts") == rt.load(output)
    assert len(list((folder.parent / "parts" / "corpus").glob("part-*.parquet"))) == 3


def test_the_server_gets_model_prompt_and_sampling(cli: Cli, server: Server, folder: Path) -> None:
    model = engine(server, temperature=0.7, top_p=0.9, max_tokens=200, seed=3)
    rewrite(cli, server, folder, *model, "--limit", "1")
    body = server.requests[0][1]
    assert body["messages"] == [
        {"role": "user", "content": f"Please rewrite the following text: {text(0)}"}
    ]
    assert (body["model"], body["temperature"], body["top_p"], body["seed"]) == (
        "tiny",
        0.7,
        0.9,
        3,
    )
    assert (body.get("max_tokens") or body.get("max_completion_tokens")) == 200


def test_temperatures_are_options_or_one_in_the_text(
    cli: Cli, server: Server, folder: Path
) -> None:
    several = ["--temperature", "0.2", "--temperature", "1", "--limit", "1"]
    assert rewrite(cli, server, folder, *several)[0] == 0
    assert rt.load(folder.parent / "out").sources == ("human", SOURCE, "tiny-tmp1.0")
    refusal = refused(
        cli, "generate", "rewrite", folder, *several, *engine(server, temperature=0), "-o", "x"
    )
    assert refusal == "--temperature and temperature=0 of openai:tiny: keep one of them"


@pytest.mark.parametrize("verb", [("rewrite", "in"), ("answer", "queries.tsv")])
def test_a_missing_place_is_named_before_a_missing_model(
    cli: Cli, tmp_path: Path, verb: tuple[str, str]
) -> None:
    name, file = verb
    path = tmp_path / file
    output = ("-o", tmp_path / "out")
    assert refused(cli, "generate", name, path, *output).startswith(f"{path}: no such f")
    path.mkdir()
    refusal = refused(cli, "generate", name, path, *output)
    assert refusal == "no model: name one, such as --llm openai:MODEL"


@pytest.mark.parametrize(
    ("fault", "first"),
    [
        ("401", 2),
        ("429-quota", 2),
        ("503", 1),
        ("hang", 1),
        ("drop", 1),
        ("empty-choices", 1),
        ("length", 0),
    ],
)
def test_a_rerun_after_any_fault_has_each_once(
    cli: Cli, server: Server, folder: Path, fault: str, first: int
) -> None:
    """Exit code 2 where no other prompt would survive the fault, 1 where a document is left without
    an answer.
    """
    server.script = [None] * 4 + [fault] * 2
    assert rewrite(cli, server, folder, *engine(server, concurrency=2, retries=0))[0] == first
    server.script = []
    answered, before = messages(server.answered), len(server.requests)
    code, _, err = rewrite(cli, server, folder)
    again = messages(server.bodies[before:])
    assert code == 0, err
    rows = map(json.loads, (folder.parent / "out" / "corpus.jsonl").read_text().splitlines())
    counts = Counter(
        row["origin"].removesuffix("-human") for row in rows if row["source"] == SOURCE
    )
    assert counts == Counter(f"d{n}" for n in range(12))
    assert not answered & again, "an answer was paid for twice"
    assert set(answered | again) == set(messages(server.answered)), "each document was answered"


@pytest.mark.parametrize("fault", ["403", "404-model"])
def test_fatal_fault_is_one_line_and_writes_nothing(cli: Cli, folder: Path, fault: str) -> None:
    with Server(script=[None] * 6, faults=Faults(share=1, kinds=(fault,))) as server:
        code, out, err = rewrite(cli, server, folder)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(("ranktilt generate rewrite: ", "ranktilt: "))
    assert not (folder.parent / "out").exists()


def test_documents_without_an_answer_give_exit_1_and_are_listed(cli: Cli, folder: Path) -> None:
    with Server(script=["500"]) as server:
        code, _, err = rewrite(cli, server, folder, *engine(server, retries=0, concurrency=1))
    assert code == 1
    assert f"{SOURCE}: 11 of 12 documents rewritten; left out: 1 unanswered" in err
    assert err.splitlines()[-1].startswith("1 document got no answer (")
    assert err.splitlines()[-1].endswith("); run the command again to ask only for these")
    listed = [
        json.loads(line)
        for line in (folder.parent / "out" / "left-out.jsonl").read_text().splitlines()
    ]
    assert [(row["_id"], row["reason"]) for row in listed] == [("d0-human", "unanswered")]


def test_flagged_documents_are_listed_and_are_no_failure(cli: Cli, folder: Path) -> None:
    def says(messages: list[dict[str, str]], body: dict[str, object]) -> str:
        return (
            "I cannot help with that."
            if "Number 3 " in messages[-1]["content"]
            else rewritten(messages, body)
        )

    with Server(says) as server:
        code, _, err = rewrite(cli, server, folder, "--attempts", "2")
    assert (code, len(server.requests)) == (0, 13)
    assert (
        f"{SOURCE}: 11 of 12 documents rewritten; left out: 1 flagged; flagged answers: 2 refusal"
        in err
    )
    assert f"left out: d3-human (flagged); all in {folder.parent / 'out' / 'left-out.jsonl'}" in err


def test_limits_that_nothing_meets_leave_nothing(
    cli: Cli, server: Server, folder: Path, tmp_path: Path
) -> None:
    prompt = write(tmp_path / "mine.txt", "Say it anew: {text}\n")
    options = [
        "--prompt",
        prompt,
        "--max-length-ratio",
        "0.5",
        "--min-length-ratio",
        "0.1",
        "--attempts",
        "1",
    ]
    code, _, err = rewrite(cli, server, folder, *options)
    assert code == 1
    assert "flagged answers: 12 too long" in err
    assert err.splitlines()[-1] == "no answer passed the checks: there is nothing to compare"
    assert server.requests[0][1]["messages"][0]["content"].startswith("Say it anew: Number")
    assert rt.load(folder.parent / "out").sources == ("human",)


def test_all_splits_come_along_and_the_pool_is_marked(
    cli: Cli, server: Server, folder: Path
) -> None:
    write(folder / "qrels" / "train.tsv", tsv([("q1", "d5", 1)]))
    code, _, err = rewrite(
        cli, server, folder, "--pool", "bm25(k1=0.9,b=0.4),tfidf", "--pool-depth", "1"
    )
    assert code == 0
    assert err.startswith("pool: ")
    collection = rt.load(folder.parent / "out")
    assert (folder.parent / "out" / "qrels" / "train.tsv").is_file()
    chosen = collection.docs.filter(pl.col("pool") & (pl.col("source") == "human"))["id"].to_list()
    assert {"d0-human", "d1-human", "d2-human"} <= set(chosen)
    assert len(server.requests) == len(chosen) < 12
    assert "Queries chose the documents" in (folder.parent / "out" / "README.md").read_text()
    other_folder = folder.parent / "other"
    err = rewrite(
        cli,
        server,
        folder,
        "--split",
        "train",
        "--pool",
        "bm25",
        "--pool-depth",
        "1",
        "-o",
        other_folder,
    )[2]
    assert err.splitlines()[-1] == f"Next: ranktilt check {other_folder} --split train"
    assert "d5-human" in rt.load(other_folder).docs.filter(pl.col("pool"))["id"].to_list()


def test_pool_splits_at_commas_between_rankers_alone(cli: Cli, folder: Path) -> None:
    pool = 'bm25(k1=0.9,b=0.4), nothing:"a(b,c"'
    options = ("--llm", "openai:tiny", "--dry-run", "--pool", pool)
    error = refused(cli, "generate", "rewrite", folder, *options)
    assert error.startswith("unknown ranker 'nothing'")


def test_a_dry_run_asks_nothing_and_knows_what_was_answered(
    cli: Cli, server: Server, folder: Path
) -> None:
    estimate = (
        "generate",
        "rewrite",
        folder,
        "--llm",
        "openai:tiny",
        "--dry-run",
        "--price",
        "0.15,0.60",
    )
    code, out, err = cli(*estimate)
    lines = dict(line.split("  ", 1) for line in out.splitlines())
    assert (code, err, len(server.requests)) == (0, "", 0)
    assert (lines["documents"].strip(), lines["sources"].strip()) == ("12 documents", SOURCE)
    assert lines["requests"].strip().startswith("12 (0 of 12 are answered already)")
    assert set(lines) == {
        "documents",
        "sources",
        "requests",
        "tokens in",
        "tokens out",
        "price",
        "time",
    }
    rewrite(cli, server, folder, "--limit", "5")
    model = engine(server, requests_per_minute=60)
    code, out, _ = cli("generate", "rewrite", folder, *model, "--dry-run", "--json", "-")
    content = json.loads(out)
    assert (code, content["requests"], content["journalled"], len(server.requests)) == (0, 12, 5, 5)
    assert (content["seconds"], content["pace"]) == (7, ", at 60 requests per minute")


def test_no_key_reaches_a_file(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-1")
    with Server(key="sk-very-secret-1") as server:
        assert rewrite(cli, server, folder)[0] == 0
    for path in folder.parent.rglob("*"):
        if path.is_file():
            content = (
                gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            )
            assert b"sk-very-secret" not in content, path


def test_a_named_one_keeps_judgments(
    cli: Cli, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("huggingface_hub")
    point_to(tmp_path / "hub", monkeypatch)
    cached(tmp_path / "hub", "mteb/scifact", mteb())
    options = [*engine(server), "-o", tmp_path / "out", "--attempts", "1"]
    code, _, err = cli("generate", "rewrite", "hub:mteb/scifact", *options)
    assert (code, err.splitlines()[0].rpartition("; ")[2]) == (0, "3 queries, 10 judgments)")
    assert rt.load(tmp_path / "out").qrels.height == 2 * rt.load("hub:mteb/scifact").qrels.height
    assert [path.name for path in (tmp_path / "out" / "qrels").iterdir()] == ["test.tsv"]


@pytest.mark.parametrize("verb", [("check",), ("check", "-r", "bm25")])
def test_next_step_needs_no_judgments(
    cli: Cli, server: Server, folder: Path, verb: tuple[str, ...]
) -> None:
    (folder / "qrels" / "test.tsv").unlink()
    assert rewrite(cli, server, folder)[0] == 0
    code, out, err = cli(*verb, folder.parent / "out")
    # The server's rewrites are the same words in another order: nothing is left to compare.
    assert (code, "Traceback" in err) == (1, False)
    assert ": near-identical pairs (12 of 12, 100.0 %" in " ".join(out.split())


def test_a_query_file_becomes_a_collection_whose_cost_is_known(
    cli: Cli, server: Server, queries: Path
) -> None:
    code, out, err = answer(cli, server, queries)
    collection = rt.load(queries.parent / "out")
    assert (code, out) == (0, "")
    assert err.splitlines() == [
        f"{queries.parent / 'out'}: {collection!r}",
        "tiny: 3 of 3 documents written",
        "asked for 3 answers",
        (
            "qrels/test.tsv is generated, not judged. Each document counts as relevant to the "
            "query "
            "it "
            "was written for"
        ),
    ]
    assert {body["messages"][0]["content"] for body in server.bodies} == {
        ASKED + text for text in QUERIES.values()
    }
    assert dict(collection.queries.select("id", "text").iter_rows()) == QUERIES
    assert collection.sources == ("tiny",)
    assert collection.docs.select("id", "origin", "query_id").rows() == [
        (f"{q}-tiny-1",) * 2 + (q,) for q in QUERIES
    ]
    assert sorted(collection.qrels.rows()) == [(q, f"{q}-tiny-1", 1) for q in QUERIES]
    card = (queries.parent / "out" / "README.md").read_text(encoding="utf-8")
    assert (
        "Made, not judged: each document counts as relevant (grade 1) to the query it was "
        "written from"
    ) in card
    other_queries = write(queries.parent / "others.tsv", "id\ttext\nq9\tanother thing\n")
    error = refused(
        cli, "generate", "answer", other_queries, *engine(server), "-o", queries.parent / "out"
    )
    refusal = f"{queries.parent / 'out'}: holds answers to other queries, {queries}; "
    assert error == f"{refusal}choose another folder or remove it"
    options = ("--llm", "openai:tiny", "-n", "2", "--dry-run", "--price", "1,2")
    code, out, err = cli("generate", "answer", queries, *options)
    assert (code, err) == (0, "")
    assert out.splitlines()[:3] == [
        "documents   6 documents",
        "sources     tiny",
        (
            "requests    6 (0 of 6 are answered already); up to 2 more for each text whose answers "
            "are "
            "flagged"
        ),
    ]
    assert "tokens out  1,200, if a document has 200 tokens" in out


def test_the_train_side_of_a_collection_mixes_with_it(
    cli: Cli, server: Server, tmp_path: Path
) -> None:
    texts = [f"Human text {n} about colds, rivers and clocks." for n in range(3)]
    docs = [{"_id": f"d{n}", "text": text, "source": "human"} for n, text in enumerate(texts)]
    rows = [{"_id": name, "text": text, "domain": "medicine"} for name, text in QUERIES.items()]
    qa, answers = (
        write_beir(tmp_path / "qa", docs=docs, queries=rows, qrels=[("q3", "d2", 1)]),
        tmp_path / "out",
    )
    write(qa / "qrels" / "train.tsv", tsv([("q1", "d0", 1), ("q2", "d1", 1)]))
    code, _, err = answer(cli, server, qa, "--split", "train", "-n", "2", *engine(server, seed=7))
    assert code == 0
    assert err.splitlines()[-1] == f"Next: ranktilt data mix {qa} {answers} --split train -o mixed"
    texts = {body["messages"][0]["content"].removeprefix(ASKED) for body in server.bodies}
    assert texts == {QUERIES["q1"], QUERIES["q2"]}, (
        "queries that another split judges are no part of this one"
    )
    assert {body["seed"] for body in server.bodies} == {7, 1007}
    assert cli("data", "mix", qa, answers, "--split", "train", "-o", tmp_path / "mixed")[0] == 0
    mixed = rt.load(tmp_path / "mixed")
    assert Counter(mixed.docs["source"]) == {"human": 3, "tiny": 4}
    judged = {doc for query, doc, _ in mixed.qrels.rows() if query == "q1"}
    assert judged == {"d0", "q1-tiny-1", "q1-tiny-2"}
    assert mixed.pairs("human", "tiny").height == 0, "an answer is no rewrite of a document"
    assert set(mixed.docs.filter(source="tiny")["domain"]) == {"medicine"}, (
        "what is known of a query, of its documents"
    )


@pytest.mark.parametrize(("most", "code"), [(None, 1), ("30", 1), ("34%", 0)])
def test_failures_may_be_allowed(cli: Cli, queries: Path, most: str | None, code: int) -> None:
    allowed = [] if most is None else ["--max-failures", most]
    with Server(script=["500"]) as server:
        model = engine(server, retries=0, concurrency=1)
        exit_code, _, err = answer(cli, server, queries, *model, *allowed)
    assert exit_code == code
    assert "1 document got no answer (" in err
    assert rt.load(queries.parent / "out").ids.to_list() == ["q2-tiny-1", "q3-tiny-1"]
