"""The command line as a whole: mistakes end in one line, and nothing is left behind."""

import errno
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from cyclopts import Token

import ranktilt as rt
from ranktilt.cli.app import app, percentage, points
from ranktilt.cli.main import main
from ranktilt.cli.tree import Command, commands, parse
from tests.cli.conftest import Cli, refused
from tests.reporting.readers import Terminal
from tests.toy import raw_docs, raw_qrels, raw_queries, write, write_beir

BM25 = ("-r", "bm25", "--set", "statistics.resamples=100")


BAD = "\x1b]0;title\x07\x9b2J\u202e"
CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")


@pytest.fixture
def folder_with_escapes(tmp_path: Path) -> Path:
    """The toy, with an escape sequence in every id, source and text."""
    rows = [
        {
            "_id": f"{doc['_id']}-{side}{BAD}",
            "text": doc["text"] + BAD,
            "source": side + BAD,
            "origin": doc["_id"] + BAD,
        }
        for side in ("human", "llm")
        for doc in raw_docs(side)
    ]
    queries = [{"_id": row["_id"] + BAD, "text": row["text"] + BAD} for row in raw_queries()]
    qrels = list[tuple[str, str, int]]()
    for query, name, grade in raw_qrels():
        qrels += [(query + BAD, f"{name}-{side}{BAD}", grade) for side in ("human", "llm")]
    return write_beir(tmp_path / f"hostile{BAD}", docs=rows, queries=queries, qrels=qrels)


@pytest.mark.parametrize(
    "arguments",
    [
        ["audit", "", *BM25, "-m", "nDCG@3", "--card", "--controls"],
        ["audit", "", *BM25, "-m", "nDCG@3", "--card", "--controls", "--format", "latex"],
        ["audit", "", *BM25, "--pair", f"human{BAD},x{BAD}"],
        ["audit", "", "--run", f"absent{BAD}"],
        ["check", "", "--format", "markdown"],
        ["data", "mix", "", "", "-o", f"out{BAD}"],
        ["data", "load", "", "-o", f"loaded{BAD}"],
        [f"audit{BAD}"],
    ],
    ids=lambda arguments: (
        " ".join(arguments[:1] + arguments[-2:]).encode("ascii", "ignore").decode("ascii")
    ),
)
def test_no_escape_is_printed(
    cli: Cli, folder_with_escapes: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.chdir(folder_with_escapes.parent)
    _, out, err = cli(*(part or folder_with_escapes for part in arguments))
    assert "x1b]0;" in out + err
    assert not CONTROLS.findall(out + err)


def test_a_terminal_is_sent_colours_and_nothing_else(
    folder_with_escapes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("TERM", "xterm-256color"), ("COLUMNS", "100"), ("LINES", "50")):
        monkeypatch.setenv(name, value)
    for format in ("table", "csv"):
        stream = Terminal()
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setattr(
            sys,
            "argv",
            ["ranktilt", "audit", str(folder_with_escapes), *BM25, "--card", "--format", format],
        )
        with pytest.raises(SystemExit):
            main()
        colours = re.compile(r"\x1b\[[0-9;]*m")
        assert bool(colours.search(stream.getvalue())) == (format == "table")
        assert r"\x1b]0;" in stream.getvalue()
        assert not CONTROLS.findall(colours.sub("", stream.getvalue()))


def test_a_missing_extra_names_the_command(
    cli: Cli, toy_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [n for n in sys.modules if n.partition(".")[0] == "nltk"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "nltk", None)
    message = refused(cli, "audit", toy_folder, "-r", "bm25", "-r", "bm25:dai")
    assert (
        message == "analyzer 'paper' needs nltk. Install it with: pip install \"ranktilt[paper]\""
    )


def test_ids_with_blanks_are_saved_and_read_back(
    cli: Cli, toy_folder: Path, tmp_path: Path
) -> None:
    names = (toy_folder / "queries.jsonl").read_text(encoding="utf-8")
    (toy_folder / "queries.jsonl").write_text(names.replace('"q1"', '"q 1"'), encoding="utf-8")
    qrels = next((toy_folder / "qrels").iterdir())
    qrels.write_text(qrels.read_text(encoding="utf-8").replace("q1\t", "q 1\t"), encoding="utf-8")
    code, _, err = cli("audit", toy_folder, *BM25, "--save", tmp_path / "s")
    assert (code, err) == (0, "")
    run = tmp_path / "s/runs/1-bm25.trec.gz"
    csv = [
        cli("audit", toy_folder, *options, "--format", "csv").out
        for options in (BM25, ("--run", run, *BM25[2:]))
    ]
    assert csv[1].replace("1-bm25", "bm25") == csv[0]
    why = "query id 'q 1' contains a blank, which a run alone cannot hold; name a file instead"
    assert refused(cli, "rank", toy_folder, "-r", "bm25", "-o", "-") == f"-o -: {why}"


def test_a_stdout_of_an_old_encoding_keeps_its_signs(process: Cli, toy_folder: Path) -> None:
    done = process("audit", toy_folder, *BM25, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.code == 0
    assert "Relative Δ" in done.out


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_behind_stdout_is_one_line(process: Cli, toy_folder: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = process(
            "audit", toy_folder, *BM25, "--json", "-", capture_output=False, stdout=full, stderr=-1
        )
    hint = "free some space or choose another place"
    expected = (
        f"ranktilt: standard output: cannot be written: {os.strerror(errno.ENOSPC)}; {hint}\n"
    )
    assert (done.code, done.err) == (2, expected)


@pytest.mark.skipif(os.name != "posix", reason="pipes behave otherwise here")
def test_a_reader_that_leaves_is_no_error(process: Cli, toy_folder: Path) -> None:
    read, write_end = os.pipe()
    os.close(read)
    with os.fdopen(write_end, "w") as stream:
        done = process(
            "audit",
            toy_folder,
            *BM25,
            "--json",
            "-",
            capture_output=False,
            stdout=stream,
            stderr=-1,
        )
    assert (done.code, done.err) == (141, "")


def test_debug_shows_where_it_happened(process: Cli) -> None:
    done = process("audit", "no/such/folder", *BM25, "--debug")
    assert done.code == 2
    assert done.err.startswith("Traceback (most recent call last):")
    assert done.err.rstrip().endswith("DataError: no/such/folder: no such folder")


class Panic(BaseException):
    """As a library written in Rust raises it."""


def test_crash_never_returns_code_of_gate(
    cli: Cli, toy_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases: list[tuple[BaseException, int, str]] = [
        (ZeroDivisionError("ours"), 70, "ZeroDivisionError: ours\n"),
        (Panic("theirs"), 70, "Panic: theirs\n"),
        (MemoryError(), 71, "ranktilt: out of memory: lower --memory or close other programs\n"),
        (
            PermissionError(13, "Permission denied", "x"),
            2,
            "ranktilt: x: Permission denied\n",
        ),
        (BrokenPipeError(32, "Broken pipe"), 141, ""),
        (KeyboardInterrupt(), 130, "ranktilt: interrupted; the cache keeps finished work\n"),
    ]
    for error, code, end in cases:
        monkeypatch.setattr("ranktilt.rankers.lexical.bm25.BM25.rank", Mock(side_effect=error))
        result = cli("audit", toy_folder, *BM25)
        assert (result.code, result.out, result.err.endswith(end)) == (code, "", True), result.err
        assert ("Traceback" in result.err) == (code == 70), "an error of ours is not hidden"


@pytest.mark.skipif(os.name != "posix", reason="pipes behave otherwise here")
def test_notes_that_nobody_reads_end_no_work(
    process: Cli, toy_folder: Path, tmp_path: Path
) -> None:
    read, write_end = os.pipe()
    os.close(read)
    verb = ("rank", toy_folder, "-r", "bm25", "-o", tmp_path / "made")
    done = process(*verb, capture_output=False, stdout=-1, stderr=write_end)
    os.close(write_end)
    assert (done.code, done.out) == (0, "")
    assert (tmp_path / "made").stat().st_size


def test_help_names_the_verbs_in_five_panels_of_one_line_each(cli: Cli) -> None:
    assert cli("--version") == (0, f"ranktilt {rt.__version__}\n", "")
    bare = cli()
    assert (bare.code, bare.out) == (2, "")
    assert bare.err.startswith("Usage: ranktilt COMMAND [OPTIONS]")
    code, out, err = cli("-h")
    assert (code, err) == (0, "")
    panels: dict[str, list[str]] = {}
    for line in out.splitlines():
        if heading := re.match(r" ─ ([^─]+) ─", line):
            names = panels.setdefault(heading[1], [])
        elif re.match(r"  [a-z]", line):
            names.append(line.split()[0])
            assert len(line.rstrip()) <= 80
    assert list(panels.items())[:5] == [
        ("Start", ["demo", "check", "audit", "report"]),
        ("Decide", ["compare", "gate"]),
        ("Understand", ["cite", "explain", "judge", "pairwise"]),
        ("Correct", ["mitigate", "train"]),
        ("More", ["data", "generate", "rank", "tools"]),
    ]


COMMANDS = list(commands())
NAMES = [command.name for command in COMMANDS]


@pytest.mark.parametrize("command", COMMANDS, ids=NAMES)
def test_help_opens_with_commands_that_can_be_typed(command: Command, cli: Cli) -> None:
    assert len(command.examples) in (1, 2, 3)
    for example in command.examples:
        words = shlex.split(example)
        command_words = ["ranktilt", *command.path]
        assert words[: len(command_words)] == command_words
        parse(words[1:])
    code, out, _ = cli(*command.path, "--help-all")
    assert code == 0
    for option in command.options:
        assert option.names[0] in out
        assert option.parameter.help, f"{option.names[0]} says nothing"
    assert not re.search(r"\[\[|<list|Parameter|typing|NONE", out), "nothing of the parser leaks"


@pytest.fixture(scope="module")
def bash_script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The script that completes in bash, as it is installed."""
    home = tmp_path_factory.mktemp("home")
    command = [sys.executable, "-m", "ranktilt", "--install-completion", "--shell", "bash"]
    environment = {**os.environ, "HOME": str(home)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    (script,) = home.rglob("ranktilt")
    assert str(script) in done.stderr
    return script


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        # As bash breaks them: at colons and equals signs, but not within an open quote.
        (["judge", "--llm", '"openai:m(te'], "openai:m(temperature="),
        (["audit", "-r", "dense", ":", "mini"], "minilm"),
        (["audit", "-r", "'bm25@9>>monot5:ba"], "bm25@9>>monot5:base"),
        (["audit", "-r", '"bm25(k1=0.9,b'], "bm25(k1=0.9,b="),
        (["mit"], "mitigate"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_bash_completes_what_it_breaks_into_words(
    bash_script: Path, words: list[str], offered: str
) -> None:
    line = "ranktilt " + " ".join(words).replace(" : ", ":")
    typed = " ".join(map(shlex.quote, ["ranktilt", *words]))
    commands = f"""
        compopt() {{ :; }}
        source {shlex.quote(str(bash_script))}
        COMP_LINE={shlex.quote(line)} COMP_POINT={len(line)} COMP_CWORD={len(words)}
        COMP_WORDS=({typed})
        _ranktilt_whole_words
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}
    done = subprocess.run(
        ["bash", "-c", commands], env=environment, capture_output=True, text=True, check=True
    )
    assert offered in done.stdout.split()


def test_threads_reach_the_libraries(process: Cli, toy_folder: Path, tmp_path: Path) -> None:
    write(
        tmp_path / "sitecustomize.py",
        "import atexit, os, sys\n"
        "def show():\n"
        "    import polars\n"
        "    names = ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS')\n"
        "    sys.stderr.write(' '.join(str(os.environ.get(n)) for n in names) + f' "
        "{polars.thread_pool_size()}')\n"
        "atexit.register(show)\n",
    )
    unset = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "7")
    done = process(
        "audit", toy_folder, *BM25, "--threads", "1", env={"PYTHONPATH": str(tmp_path), **unset}
    )
    assert (done.code, done.err) == (0, "1 1 1 1")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("audit -r bm", "bm25"),
        ("audit -r bm25@100>>monot5", "bm25@100>>monot5:base"),
        ("audit -r bm25(k1=0.9,b", "bm25(k1=0.9,b="),
        ("audit -m nD", "nDCG"),
        ("report --layout dai-fig1", "dai-fig10"),
        ("explain --probe over", "overlap"),
        ("explain --probe perplexity(ev", "perplexity(every="),
        ("mitigate --method fair-rerank:f", "fair-rerank:fa-ir"),
        ("judge --llm open", "openai:"),
        ("judge --llm openai:m(temp", "openai:m(temperature="),
    ],
)
def test_a_shell_completes_names(cli: Cli, typed: str, offered: str) -> None:
    _, *records = cli("__complete", *typed.split()).out.split("\x1fbegin\n")
    names = records[0].split()
    assert offered in names
    assert all(name.startswith(typed.split()[-1]) for name in names)


@pytest.mark.parametrize("command", COMMANDS, ids=NAMES)
def test_an_option_of_one_value_is_refused_twice(command: Command, cli: Cli) -> None:
    for option in command.options:
        is_list = option.token_count()[1]
        if is_list:
            continue
        first, last = option.names[0], option.names[-1]
        value = [] if option.hint is bool else ["1"]
        refusal = refused(cli, *command.path, first, *value, last, *value)
        assert refusal == f"{last} is given twice, but takes one value: keep one of them"


def test_a_signature_is_read_once_and_each_pass_has_arguments_of_its_own() -> None:
    first_pass, second_pass = (app["audit"].assemble_argument_collection() for _ in range(2))
    for first, second in zip(first_pass, second_pass, strict=True):
        assert first.parameter is second.parameter
        assert all(any(child is argument for argument in second_pass) for child in second.children)
    parent = next(argument for argument in first_pass if argument.children)
    parent.children[0].append(Token(keyword="--seed", value="3"))
    assert parent.has_tokens
    assert not any(argument.has_tokens for argument in second_pass)


def test_repeatable_options(cli: Cli, toy_folder: Path) -> None:
    assert cli("audit", toy_folder, *BM25, "-r", "tfidf").code == 0
    refusal = refused(cli, "audit", toy_folder, "--groups", "a", "--groups", "b", "--groups", "c")
    assert refusal == "--groups is given twice, but takes one value: keep one of them"


def test_python_m_ranktilt_is_the_command_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ranktilt", "audit", "/nowhere"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("ranktilt")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("converter", "text", "number"),
    [(percentage, "5%", 5.0), (percentage, "100", 100.0), (points, "5", 5.0), (points, "5 %", 5.0)],
)
def test_sizes_may_be_percent(converter: Any, text: str, number: float) -> None:
    assert converter(float, [Token(value=text)]) == number
