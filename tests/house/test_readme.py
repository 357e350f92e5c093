"""What README.md and docs/ show is true: the README's Python runs, and every page's command lines parse."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer

from scripts.refresh_docs import SHARED, Block, blocks
from tests.house import tree

README = tree.ROOT / "README.md"
PAGES = [README, tree.ROOT / "CONTRIBUTING.md", *sorted(tree.ROOT.glob("docs/**/*.md"))]
PAGES += sorted(tree.ROOT.glob("examples/**/*.md"))


def commands(text: str) -> list[list[str]]:
    """List the `ranktilt` commands of a console block, as words; lines marked `# planned` are left out."""
    found = []
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("$") and "# planned" not in line:
            lexer = shlex.shlex(line[1:], posix=True, punctuation_chars="|&;<>()")
            lexer.whitespace_split = True
            command: list[str] = []
            for word in [*lexer, ";"]:
                if set(word) <= set("|&;<>()"):
                    found.append(command)
                    command = []
                elif command or not re.fullmatch(r"\w+=.*", word):
                    command.append(word)
    return [command[1:] for command in found if command[:1] == ["ranktilt"]]


def mistake(command: Any, words: list[str]) -> str:
    """Return what is wrong with the subcommand or the options of a command line; "" if nothing is."""
    rest = iter(words)
    for word in rest:
        subcommands = getattr(command, "commands", {})
        if word.startswith("-") and word != "-":
            name = word.split("=")[0]
            option = next((p for p in command.params if name in [*p.opts, *p.secondary_opts]), None)
            if option is None and name != "--help":
                return f"{command.name} has no option {name}"
            if option is not None and not option.is_flag and not getattr(option, "count", False) and "=" not in word:
                next(rest, None)
        elif subcommands:
            if word not in subcommands:
                return f"{command.name} has no subcommand {word!r}"
            command = subcommands[word]
    return ""


PYTHON = [block for block in blocks(README.read_text(encoding="utf-8"), "README.md") if block.language == "python"]


@pytest.mark.long
@pytest.mark.journey
@pytest.mark.parametrize("block", PYTHON, ids=lambda block: block.place)
def test_python_block_runs(block: Block, tmp_path: Path) -> None:
    if block.untested:
        pytest.skip(block.untested)
    if SHARED in block.text and not (tree.ROOT / SHARED).is_dir():
        pytest.skip(f"needs {SHARED}")
    result = subprocess.run(
        [sys.executable, "-c", block.text],
        cwd=tree.ROOT if SHARED in block.text else tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert result.returncode == 0, f"{block.place}\n{result.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(tree.ROOT).as_posix())
def test_the_command_lines_of_a_page_parse(page: Path) -> None:
    from ranktilt.cli.main import app

    command = typer.main.get_command(app)
    for block in blocks(page.read_text(encoding="utf-8"), page.name):
        if block.language == "console":
            wrong = {" ".join(words): mistake(command, words) for words in commands(block.text)}
            assert not {line: problem for line, problem in wrong.items() if problem}, block.place


def test_commands_are_found_in_console_blocks() -> None:
    text = """
$ ranktilt demo                # no network
$ HF_HUB_OFFLINE=1 ranktilt audit DIR -r "bm25@100>>x" \\
    --json a.json | tee log && ranktilt gate a.json > out
$ ranktilt later               # planned
$ pip install "ranktilt[neural]"
ranktilt printed this
"""
    audit = ["audit", "DIR", "-r", "bm25@100>>x", "--json", "a.json"]
    assert commands(text) == [["demo"], audit, ["gate", "a.json"]]


def test_mistakes_are_found_in_command_lines() -> None:
    app = typer.Typer(name="root")

    @app.command()
    def audit(
        folder: list[str],
        *,
        by: str = "",
        ranker: Annotated[str, typer.Option("--ranker", "-r")] = "",
        quiet: bool = False,
    ) -> None: ...

    @app.command()
    def demo() -> None: ...

    command = typer.main.get_command(app)
    for words, expected in {
        "audit DIR --by source -r bm25": "",
        "audit DIR --by=source --quiet OTHER": "",
        "audit --help": "",
        "audit DIR --by --quiet --bye x": "audit has no option --bye",
        "audit DIR -x": "audit has no option -x",
        "adit DIR": "root has no subcommand 'adit'",
    }.items():
        assert mistake(command, words.split()) == expected
