"""ranktilt generate answer against a real server on loopback: documents, exit codes, and what faults leave."""

import json
from collections import Counter
from pathlib import Path

import pytest

import ranktilt as rt
from tests.cli.conftest import Cli
from tests.llm.server import Faults, Server
from tests.toy import jsonl, tsv, write, write_beir

pytestmark = pytest.mark.usefixtures("no_key")
QUERIES = {"q1": "what shortens a cold", "q2": "where does the river meet the sea", "q3": "why do old clocks lose time"}
ASKED = "Please write a passage that answers the following query: "


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    return write(tmp_path / "queries.tsv", "".join(f"{name}\t{text}\n" for name, text in QUERIES.items()))


@pytest.fixture
def qa(tmp_path: Path) -> Path:
    """A collection with two splits of judgments, and a domain for each query."""
    docs = [{"_id": f"d{n}", "text": f"Human text {n} about colds, rivers and clocks."} for n in range(3)]
    rows = [{"_id": name, "text": text, "domain": "medicine"} for name, text in QUERIES.items()]
    write_beir(tmp_path / "qa", docs=docs, queries=rows, qrels=[("q3", "d2", 1)])
    write(tmp_path / "qa" / "qrels" / "train.tsv", tsv([("q1", "d0", 1), ("q2", "d1", 1)]))
    return tmp_path / "qa"


def run(cli: Cli, server: Server, given: Path, *arguments: str | Path, out: str = "out") -> tuple[int, str, str]:
    """Answer with a client that is quick to give up, unless told otherwise."""
    usual = ["--llm", "openai:tiny", "--base-url", server.url, "--timeout", "1", "-o", given.parent / out]
    return cli("generate", "answer", given, *usual, *arguments)


def asked(bodies: list[dict[str, object]]) -> Counter[str]:
    """How often each request was sent, told by prompt and seed."""
    return Counter(json.dumps([body["messages"], body.get("seed")]) for body in bodies)


def test_a_query_file_becomes_a_collection(cli: Cli, server: Server, queries: Path) -> None:
    code, out, err = run(cli, server, queries)
    made = rt.load(queries.parent / "out")
    assert (code, out) == (0, "")
    assert err.splitlines() == [
        f"{queries.parent / 'out'}: {made!r}",
        "tiny: 3 of 3 documents written",
        "3 answers asked for",
        "qrels/test.tsv is made, not judged: each document is relevant to the query it was written from",
    ]
    assert {body["messages"][0]["content"] for body in server.bodies} == {ASKED + text for text in QUERIES.values()}
    assert dict(made.queries.select("id", "text").iter_rows()) == QUERIES
    assert made.sources == ("tiny",)
    assert made.docs.select("id", "origin", "query_id").rows() == [(f"{q}-tiny-1",) * 2 + (q,) for q in QUERIES]
    assert sorted(made.qrels.rows()) == [(q, f"{q}-tiny-1", 1) for q in QUERIES]


def test_several_documents_of_a_query_are_requests_of_their_own(cli: Cli, server: Server, queries: Path) -> None:
    run(cli, server, queries, "--seed", "7")
    code, _, err = run(cli, server, queries, "--seed", "7", "-n", "3", "--attempts", "5")
    made = rt.load(queries.parent / "out")
    assert code == 0
    assert "6 answers asked for; 3 were known" in err, "what was written before is written for good"
    assert max(asked(server.bodies).values()) == 1
    assert {body["seed"] for body in server.bodies} == {7, 1007, 2007}
    assert sorted(made.ids) == [f"{q}-tiny-{n}" for q in QUERIES for n in (1, 2, 3)]
    assert made.qrels.height == 9


def test_the_train_side_of_a_collection_mixes_with_it(cli: Cli, server: Server, qa: Path) -> None:
    code, _, err = run(cli, server, qa, "--split", "train", "-n", "2", out="answers")
    assert code == 0
    assert err.splitlines()[-1] == f"Next: ranktilt data mix {qa} {qa.parent / 'answers'} --split train -o mixed"
    assert {body["messages"][0]["content"].removeprefix(ASKED) for body in server.bodies} == {
        QUERIES["q1"],
        QUERIES["q2"],
    }, "queries that another split judges are no part of this one"
    assert cli("data", "mix", qa, qa.parent / "answers", "--split", "train", "-o", qa.parent / "mixed")[0] == 0
    mixed = rt.load(qa.parent / "mixed")
    assert Counter(mixed.docs["source"]) == {"human": 3, "tiny": 4}
    assert {row[:2] for row in mixed.qrels.rows() if row[0] == "q1"} == {
        ("q1", "d0"),
        ("q1", "q1-tiny-1"),
        ("q1", "q1-tiny-2"),
    }
    assert mixed.pairs("human", "tiny").height == 0, "an answer is no rewrite of a document"
    assert set(mixed.docs.filter(source="tiny")["domain"]) == {"medicine"}, "what is known of a query, of its documents"


def test_faults_lose_nothing_and_ask_nothing_twice(cli: Cli, server: Server, tmp_path: Path) -> None:
    many = write(tmp_path / "many.jsonl", jsonl([{"_id": n, "text": f"query {n} of many"} for n in range(40)]))
    server.faults = Faults(seed=3, share=0.3, kinds=("500", "503", "drop", "malformed", "empty-choices"))
    code, _, err = run(cli, server, many, "-n", "2", "--seed", "1", "--retries", "0")
    assert code == 1
    assert err.splitlines()[-1].endswith("; the same command again asks only for these")
    answered, before = asked(server.answered), len(server.requests)
    server.faults = None
    code, _, err = run(cli, server, many, "-n", "2", "--seed", "1", "--retries", "0")
    assert code == 0, err
    assert not answered & asked(server.bodies[before:]), "an answer was paid for twice"
    assert sorted(rt.load(tmp_path / "out").ids) == sorted(f"{n}-tiny-{k}" for n in range(40) for k in (1, 2))


@pytest.mark.parametrize(("most", "code"), [(None, 1), ("0.3", 1), ("0.34", 0)])
def test_failures_may_be_allowed(cli: Cli, queries: Path, most: str | None, code: int) -> None:
    allowed = [] if most is None else ["--max-failures", most]
    with Server(script=["500"]) as server:
        found, _, err = run(cli, server, queries, "--retries", "0", "--concurrency", "1", *allowed)
    assert found == code
    assert "1 document got no answer (" in err
    assert rt.load(queries.parent / "out").ids.to_list() == ["q2-tiny-1", "q3-tiny-1"]


def test_a_query_with_only_empty_answers_is_left_out_and_listed(cli: Cli, queries: Path) -> None:
    def says(messages: list[dict[str, str]], body: dict[str, object]) -> str:
        return " \n" if "river" in messages[-1]["content"] else "Sure! Here is a passage about it:\n\nA good answer."

    with Server(says) as server:
        code, _, err = run(cli, server, queries, "--attempts", "2")
    made = rt.load(queries.parent / "out")
    assert code == 0
    assert "left out: q2-tiny-1 (flagged); all in" in err
    assert "flagged answers: 2 empty" in err
    assert made.ids.to_list() == ["q1-tiny-1", "q3-tiny-1"]
    assert made.queries["id"].to_list() == list(QUERIES)


def test_the_card_and_the_manifest_say_that_judgments_are_made(cli: Cli, server: Server, queries: Path) -> None:
    run(cli, server, queries)
    made = queries.parent / "out"
    card = (made / "README.md").read_text(encoding="utf-8")
    assert "Made, not judged: each document is taken as relevant (grade 1) to the query it was written from" in card
    assert "| written | 3 |" in card
    spec = json.loads((made / "manifest.json").read_text())["spec"]
    assert spec["qrels"] == "made: each document is relevant to the query it was written from; nobody judged it"
    assert "0 answers asked for; 3 were known" in run(cli, server, queries)[2], "its own output is replaced"
    (made / "notes.txt").write_text("mine\n")
    assert "notes.txt: is no part of answers and would be lost" in run(cli, server, queries)[2]


def test_the_cost_is_known_beforehand(cli: Cli, queries: Path) -> None:
    code, out, err = cli(
        "generate", "answer", queries, "--llm", "openai:tiny", "-n", "2", "--dry-run", "--price", "1,2"
    )
    assert (code, err) == (0, "")
    assert out.splitlines()[:3] == [
        "documents   6 documents",
        "sources     tiny",
        "requests    6 (0 of 6 are answered already); up to 2 more for each text whose answers are flagged",
    ]
    assert "tokens out  1,200, if a document has 200 tokens" in out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "{file}: the file is empty"),
        ("id\ttext\n", "{file}: expected queries, got a header only"),
        ("q1\tone\nq1\ttwo\n", "{file}:2: query 'q1' came before"),
        ("q1\tone\nq2\t \n", "{file}: query 'q2' has no text"),
        ("q1\tone\nq2 two\n", "{file}:2: expected id and text with a tab between, got 1 fields: 'q2 two'"),
        ("q1\tone\tmore\n", "{file}:1: expected id and text with a tab between, got 3 fields: 'q1\\tone\\tmore'"),
        ("\tone\n", "{file}:1: expected id and text with a tab between, got no id: '\\tone'"),
        (None, "{file}: cannot be read: No such file or directory"),
    ],
)
def test_a_query_file_that_is_none_is_refused(cli: Cli, tmp_path: Path, content: str | None, message: str) -> None:
    file = tmp_path / "queries.tsv"
    if content is not None:
        file.write_text(content)
    code, out, err = cli("generate", "answer", file, "--llm", "openai:tiny", "--dry-run")
    assert (code, out) == (2, "")
    assert err == f"ranktilt: {message.format(file=file)}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "where to? Name a folder: -o DIR; or ask for the cost: --dry-run"),
        (["--dry-run", "-n", "0"], "Invalid value for '--documents-per-query' / '-n': "),
        (["--dry-run", "-n", "2", "--temperature", "0"], "at temperature 0 a model repeats itself: 2 documents"),
        (["--dry-run", "--source-name", "human"], "source 'human' is that of people's documents; name another one"),
        (["--dry-run", "--source-name", "a\tb"], "id 'q1-a\\tb-1' has a tab or line end in it"),
        (["--dry-run", "--split", "a/b"], "--split expects a name such as train, got 'a/b'"),
        (["--dry-run", "--prompt", "{tmp}/none.txt"], "{tmp}/none.txt: expected {{query}}, the place of the query"),
        (
            ["--dry-run", "--prompt", "{tmp}/document.txt"],
            "{tmp}/document.txt: {{document}} cannot be filled in, only {{query}} can; write",
        ),
        (["--dry-run", "--prompt", "passsage"], "unknown prompt 'passsage'; did you mean 'passage'?"),
        (["-o", "{tmp}/other"], "{tmp}/other/corpus.jsonl: is no part of answers and would be lost; move it, or"),
        (["-o", "{tmp}/queries.tsv/out"], "{tmp}/queries.tsv/out: "),
    ],
)
def test_mistakes_are_refused_in_one_line(cli: Cli, queries: Path, arguments: list[str], message: str) -> None:
    tmp = queries.parent
    write_beir(tmp / "other")
    write(tmp / "none.txt", "nothing here")
    write(tmp / "document.txt", "{query} {document}")
    code, out, err = cli(
        "generate", "answer", queries, "--llm", "openai:tiny", *(one.format(tmp=tmp) for one in arguments)
    )
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.split(": ", 1)[1].startswith(message.format(tmp=tmp)), err


def test_another_file_is_not_written_over_these_answers(cli: Cli, server: Server, queries: Path) -> None:
    run(cli, server, queries)
    other = write(queries.parent / "others.tsv", "id\ttext\nq9\tanother thing\n")
    code, _, err = run(cli, server, other)
    assert code == 2
    assert err == f"ranktilt: {queries.parent / 'out'}: holds answers to other queries, {queries}; choose another " + (
        "folder or remove it\n"
    )
