"""ranktilt generate versions: by rule, by a server, of a table; what is printed, written and
priced.
"""

import json
from pathlib import Path

import pytest

import ranktilt as rt
from ranktilt.generation.versions.checks import ManipulationChecks
from tests.cli.conftest import Cli, refused
from tests.cli.test_generate import folder, text
from tests.llm.server import Server
from tests.toy import write

pytestmark = pytest.mark.usefixtures("no_key")
__all__ = ["folder"]  # a fixture of twelve documents
PRONOUNS = (("M", "He"), ("F", "She"))


def test_by_rule_a_design_is_written_and_its_checks_are_printed(
    cli: Cli, folder: Path, tmp_path: Path
) -> None:
    output, file = tmp_path / "out", tmp_path / "checks.json"
    call = (
        "generate",
        "versions",
        folder,
        "--factors",
        "length,words,facts",
        "--by-rule",
        "-o",
        output,
    )
    code, out, err = cli(*call, "--design", 8, "--json", file)
    assert code == 0
    assert (
        err
        == f"{output}: {rt.load(output)!r}\nNext: ranktilt explain {output} -r bm25 --by-factor\n"
    )
    assert rt.load(output).docs.height == 8 * 12
    checks = ManipulationChecks.load(file)
    assert out == rt.table(checks)
    assert checks.spec["command"].startswith("ranktilt generate versions ")
    assert "length\n   words" in out
    assert rt.load(output).spec["design"]["failed"] == list(checks.failed)
    before = {path: path.read_bytes() for path in output.rglob("*") if path.is_file()}
    assert cli(*call, "--quiet")[::2] == (0, "")
    after = {path: path.read_bytes() for path in output.rglob("*") if path.is_file()}
    assert after == before, "8 runs are all combinations of three factors"


def test_cells_are_drawn_and_documents_limited(cli: Cli, folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    options = (
        "--factors",
        "length,fluency,query-words",
        "--by-rule",
        "--cells",
        2,
        "--limit",
        6,
        "--seed",
        4,
    )
    assert cli("generate", "versions", folder, *options, "-o", output).code == 0
    read = rt.load(output)
    assert (read.docs.height, read.docs["origin"].n_unique()) == (12, 6)
    assert (read.spec["design"]["cells"], read.spec["design"]["seed"]) == (2, 4)


def test_versions_are_resumed(cli: Cli, server: Server, folder: Path, tmp_path: Path) -> None:
    output, prompt = (
        tmp_path / "out",
        write(tmp_path / "turned.txt", "Please rewrite the following text: {text}"),
    )
    call = (
        "generate",
        "versions",
        folder,
        "--factors",
        f"{prompt},facts",
        "--llm",
        f"openai:tiny(base_url={server.url},timeout=1,retries=0,concurrency=2)",
        "-o",
        output,
    )
    server.script = [None] * 4 + ["503"] * 2
    code, _, err = cli(*call)
    assert code == 1
    assert "2 texts got no answer; run the command again to ask only for these" in err
    server.script = []
    code, _, err = cli(*call)
    assert code == 0
    assert "turned: 12 of 12 documents rewritten" in err
    answered = [json.dumps(body["messages"]) for body in server.answered]
    assert len(answered) == len(set(answered)) == 12, "an answer was paid for twice"
    read = rt.load(output)
    assert read.sources == ("human", "tiny")
    assert read.docs.height == 4 * 12
    assert (output / "answers.jsonl.gz").stat().st_size > 100


def test_a_dry_run_prices_each_prompt_and_sends_nothing(
    cli: Cli, server: Server, folder: Path
) -> None:
    call = (
        "generate",
        "versions",
        folder,
        "--factors",
        "source,style,words",
        "--llm",
        f"openai:tiny(base_url={server.url})",
    )
    code, out, err = cli(*call, "--dry-run", "--price", "1,2")
    assert (code, err, len(server.requests)) == (0, "", 0)
    lines = out.splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["source", "12"],
        ["style", "24"],
        ["price", "0.01"],
    ]
    content = json.loads(cli(*call, "--dry-run", "--json", "-").out)
    assert [row["texts"] for row in content["factors"]] == [12, 24]
    assert content["price"] is None


def test_a_judge_grades_false_versions_and_faults_are_resumed(
    cli: Cli, folder: Path, tmp_path: Path
) -> None:
    """Of q1, q2 and q3, whose documents have grades 2, 1 and 1, the judge gives 3, 1 and 0: on 0 to
    2 a 2, a 1, a 0.
    """
    grades = {"query q1": "3", "query q2": "1", "query q3": "0"}

    def answered(messages: list[dict[str, str]], body: dict[str, object]) -> str:
        return next(
            f"##final score: {grade}"
            for query, grade in grades.items()
            if query in messages[-1]["content"]
        )

    output = tmp_path / "out"
    queries = [json.dumps({"_id": f"q{n}", "text": f"query q{n}"}) for n in (1, 2, 3)]
    write(folder / "queries.jsonl", "\n".join(queries))
    with Server(answer=answered, script=[None, "503"]) as server:
        call = (
            "generate",
            "versions",
            folder,
            "--factors",
            "facts",
            "--by-rule",
            "--judge",
            f"openai:tiny(base_url={server.url},retries=0,concurrency=1)",
        )
        dry = cli(*call, "--dry-run", "--price", "1000000,0")
        assert (dry.code, dry.err, len(server.requests)) == (0, "", 0)
        assert dry.out.splitlines()[0].split()[:3] == ["judge", "3", "pairs,"]
        code, out, err = cli(*call, "-o", output)
        assert code == 1
        assert "umbrela-tiny: graded 2 of 3 pairs; asked for 2 answers" in err
        assert "1 request got no answer" in err
        assert "of 2 false versions graded lower than their originals" in out
        left = json.loads(cli(*call, "--dry-run", "--price", "1000000,0", "--json", "-").out)
        assert (left["factors"], left["judge"]["documents"]["journalled"]) == ([], 2)
        assert (
            0
            < left["price"]
            == left["judge"]["price"]
            < float(dry.out.split()[-1].replace(",", ""))
        )
        code, out, err = cli(*call, "-o", output)
        assert code == 0
        assert "graded 3 of 3 pairs; asked for 1 answer" in err
        assert (
            "facts: 1 of 3 false versions graded lower than their originals, 0 higher, by "
            "umbrela-tiny"
        ) in out
        bodies = [json.dumps(body["messages"]) for body in server.answered]
        assert len(bodies) == len(set(bodies)) == 3, "an answer was paid for twice"
    read = rt.load(output)
    assert sorted(read.qrels.rows()) == [
        ("q1", "d0", 2),
        ("q1", "d0+facts", 2),
        ("q2", "d1", 1),
        ("q2", "d1+facts", 1),
        ("q3", "d2", 1),
        ("q3", "d2+facts", 0),
    ]
    assert read.spec["design"]["judged"]["model"] == "tiny"
    spec = json.loads((output / "manifest.json").read_text())["spec"]["judge"]
    assert (spec["counts"]["graded"], spec["prompt"]["name"]) == (3, "umbrela")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--factors", "length", "--judge", "openai:tiny"),
            "a judge (--judge) grades versions whose facts are changed",
        ),
        (
            ("--factors", "facts", "--judge-prompt", "basic"),
            "--judge-prompt needs a judge: --judge openai:MODEL",
        ),
        (("--factors", "facts", "--dry-run"), "nothing to price: rules make every factor"),
        (("--factors", "facts", "--judge", "openai:tiny"), "openai:tiny needs a key"),
    ],
)
def test_judges_that_nothing_is_left_to_are_refused(
    cli: Cli, folder: Path, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    assert message in refused(
        cli, "generate", "versions", folder, *options, "--by-rule", "-o", tmp_path / "out"
    )


def test_a_table_of_versions_is_read(cli: Cli, tmp_path: Path) -> None:
    rows = ["origin,gender,text,query_id,query"]
    words = [(n, who, word) for n in range(6) for who, word in PRONOUNS]
    rows += [f'd{n},{who},"{word} {text(n)}",q{n},query {n}' for n, who, word in words]
    table = write(tmp_path / "versions.csv", "\n".join([*rows, 'd0,N,"They.",q0,query 0', ""]))
    output = tmp_path / "out"
    code, out, err = cli(
        "generate",
        "versions",
        "--table",
        table,
        "--factors",
        "gender",
        "--factor",
        "gender=M,F",
        "-o",
        output,
    )
    assert code == 0
    assert err.splitlines()[0] == "warning: 1 row is left out: 'gender' is neither 'M' nor 'F'"
    assert "every factor moved what it should" in out
    read = rt.load(output)
    assert read.docs["id"].to_list()[:2] == ["d0", "d0+gender"]
    assert read.spec["design"]["kind"] == "given"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--dry-run",), "--dry-run: there is nothing to price, --table already holds versions"),
        (("--split", "dev", "-o", "out"), "--split needs a collection: name its folder DIR"),
        (("--by-rule", "-o", "out"), "--table already holds versions; only --factors, --factor"),
    ],
)
def test_table_refuses_what_nothing_reads(
    cli: Cli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [f'd{n},{who},"{word} {text(n)}"' for n in range(6) for who, word in PRONOUNS]
    write(tmp_path / "versions.csv", "\n".join(["origin,gender,text", *rows, ""]))
    words = ("--table", "versions.csv", "--factors", "gender", "--factor", "gender=M,F")
    assert message in refused(cli, "generate", "versions", *words, *options)
    assert [path.name for path in tmp_path.iterdir()] == ["versions.csv"]
