"""README and docs/ run from top to bottom and show what is printed; links lead somewhere, command
lines parse.
"""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from cyclopts import CycloptsError

from ranktilt.cli.tree import parse
from ranktilt.data.bundled.reader import bundled
from ranktilt.measures.base import Measure, every_estimand
from scripts import refresh_docs
from scripts.refresh_docs import (
    DATA,
    SHARED,
    Mistake,
    blocks,
    brought_up,
    pages,
    refreshed,
    steps,
)
from tests.house import tree

MEASURES = tree.ROOT / "docs" / "measures"
SECTIONS = ["Formula", "Facts", "When it misleads", "Source"]
FACTS = ["range", "unit", "sign", "undefined", "needs"]
NEEDS_PACKAGE = "needs the package to be installed"
INDEX = ["README", "statistics", "ties", "confounds-and-controls"]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
README = tree.ROOT / "README.md"
FIRST_PAGE = tree.ROOT / "docs" / "index.md"
LINKED = [README, tree.ROOT / "CONTRIBUTING.md"]
LINKED += sorted(
    page for folder in ("docs", "examples") for page in tree.ROOT.glob(f"{folder}/**/*.md")
)
MEASURE_PAGES = [page for page in sorted(MEASURES.glob("*.md")) if page.stem not in INDEX]


def page_name(page: Path) -> str:
    return page.relative_to(tree.ROOT).as_posix()


def anchors(page: Path) -> set[str]:
    """Names of a page's headings, as links write them."""
    lines = re.sub(
        r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    ).splitlines()
    titles = (line.lstrip("#").strip().lower() for line in lines if line.startswith("#"))
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles}


def marked(page: Path) -> Any:
    """README, the first page and tutorials are read first, so CI runs them."""
    is_first_read = page in (README, FIRST_PAGE) or page.parent.name == "tutorials"
    marks = [pytest.mark.long, *([pytest.mark.journey] if is_first_read else [])]
    return pytest.param(page, id=page_name(page), marks=marks)


@pytest.mark.parametrize("page", [marked(page) for page in pages()])
def test_a_page_runs_and_shows_what_is_printed(page: Path, tmp_path: Path) -> None:
    spec = bundled().spec
    if spec["matched"] != spec["pairs"]:
        pytest.skip(
            f"shows the whole bundled collection; here are {spec['matched']} of {spec['pairs']} "
            "pairs"
        )
    text = page.read_text(encoding="utf-8")
    if SHARED in text and not DATA.is_dir():
        pytest.skip(f"needs {SHARED}")
    assert refreshed(text, page_name(page), tmp_path) == text, (
        "if this is meant: python scripts/refresh_docs.py"
    )


@pytest.mark.parametrize("page", LINKED, ids=page_name)
def test_links_lead_to_pages_and_headings_and_command_lines_parse(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in LINK.findall(text):
        file, _, anchor = target.partition("#")
        if "://" not in target:
            target_page = page.parent / file if file else page
            assert target_page.exists(), target
            assert not anchor or anchor in anchors(target_page), target
    for block in blocks(text, page.name):
        # What an imagined package adds is tried where it is put together (tests/papers).
        if block.language == "console" and block.untested != NEEDS_PACKAGE:
            wrong = {" ".join(words): mistake(words) for words in commands(block.text)}
            assert not {line: problem for line, problem in wrong.items() if problem}, block.location


@pytest.mark.parametrize("page", MEASURE_PAGES, ids=page_name)
def test_a_measure_has_its_sections_and_facts(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == SECTIONS
    facts = re.findall(r"^\| (\w+) \|", text, re.MULTILINE)
    assert [name for name in facts if name in FACTS] == FACTS
    assert re.search(r"^\*[^*]+\?\*$", text, re.MULTILINE), "a question below the title"
    assert any(block.language == "python" for block in blocks(text, page.name)), (
        "an example that runs"
    )


def test_the_indexes_list_every_page_and_every_measure() -> None:
    text = (MEASURES / "README.md").read_text(encoding="utf-8")
    listed = {target.partition("#")[0] for target in LINK.findall(text)}
    assert {page.name for page in MEASURES.glob("*.md")} - {"README.md"} <= listed
    assert {estimand.name for estimand in every_estimand() if isinstance(estimand, Measure)} <= set(
        re.findall(r"\w+", text)
    )
    docs = tree.ROOT / "docs"
    lines = (docs / "index.md").read_text(encoding="utf-8").splitlines()
    of_docs = set(pages()) - {README}
    assert of_docs == {FIRST_PAGE, *(docs / f"{line}.md" for line in lines)} & of_docs


def page_of(*lines: str) -> str:
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("documented", "printed", "expected"),
    [
        ("...\nb 1\n", ["a", "b 2"], "...\nb 2\n"),
        ("a\n...\nd\n", ["a", "", "c", "d"], "a\n...\nd\n"),
        ("...\nb 2\n...\n", ["b 1", "b 2", "c"], "...\nb 2\n...\n"),
        ("p < .001\n", ["p = .020"], "p = .020\n"),
        ("x  +1.0\n", ["x −12.5"], "x −12.5\n"),
        ("one long\nline 1\n", ["one long line 2"], "one long line 2\n"),
        ("a\n\nb\n", ["a", "", "b", "c"], "a\n\nb\nc\n"),
        ("a\nb\nc\n...\n", ["", "a", "b", "d", "e"], "a\nb\n...\n"),
    ],
)
def test_shown_lines_are_found_among_printed_ones(
    documented: str, printed: list[str], expected: str
) -> None:
    assert brought_up(documented, printed, "a.md:1") == expected


@pytest.mark.parametrize(
    ("documented", "printed"),
    [("a\n", ["b", "c"]), ("...\na\n...\n", ["b"]), ("a\n...\nz\n", ["a", "b"]), ("a\n", [])],
)
def test_lines_that_are_not_printed_are_a_mistake(documented: str, printed: list[str]) -> None:
    with pytest.raises(Mistake, match=r"^a\.md:7: shows lines that are not printed:\n") as caught:
        brought_up(documented, printed, "a.md:7")
    assert str(caught.value).endswith("printed is:\n" + "\n".join(printed))


@pytest.mark.parametrize(
    ("language", "line", "problem"),
    [
        ("console", "$ echo told >&2; exit 3  # exit 1", r"a\.md:2: expected exit 1, got 3\ntold"),
        ("console", "$ exit 3", r"a\.md:2: expected exit 0, got 3"),
        ("console", "$ true  # exit 1", r"a\.md:2: expected exit 1, got 0"),
        ("python", "import warnings; warnings.warn('old')", r"a\.md:1: expected exit 0, got 1"),
    ],
)
def test_another_exit_status_than_stated_is_a_mistake(
    language: str, line: str, problem: str, tmp_path: Path
) -> None:
    with pytest.raises(Mistake, match=problem):
        refreshed(page_of(f"```{language}", line, "```"), "a.md", tmp_path)


def test_some_lines_are_not_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(refresh_docs, "DATA", tmp_path / "absent")
    text = page_of(
        "<!-- no-test: needs a key -->",
        "```python",
        "key",
        "```",
        "```console",
        "$ ranktilt later  # planned",
        "$ ranktilt audit ../shared/data/x",
        "$ cat a \\",
        "  b",
        "shown",
        "```",
    )
    parsed_steps = list(steps(text, "a.md"))
    assert [step.argv[-1] for step in parsed_steps] == ["(exit 0)\ncat a \\\n  b"]
    assert [text[step.output] for step in parsed_steps] == ["shown\n"]
    assert parsed_steps[0].location == "a.md:8"


def test_a_page_is_brought_up_to_date(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its blocks share a folder; what is not shown is not compared, and words further down belong
    to no block.
    """
    (tmp_path / "sets" / "tiny").mkdir(parents=True)
    monkeypatch.setattr(refresh_docs, "DATA", tmp_path / "sets")
    text = page_of(
        "```python",
        "open('a', 'w').write('1\\n')",
        "```",
        "",
        "words",
        "",
        "```text",
        "not printed",
        "```",
        "```console",
        "$ cat a",
        "0",
        "$ cp a b",
        "$ exit 3  # here: exit 3",
        "$ echo $?",
        "3",
        "```",
        "```python",
        "print(open('b').read(), end='')",
        "```",
        "",
        "```text",
        "0",
        "```",
        "```console",
        "$ ls ../shared/data",
        "tiny",
        "$ echo no >&2; exit 2 # exit 2",
        "no",
        "```",
    )
    assert refreshed(text, "a.md", tmp_path) == text.replace("\n0\n", "\n1\n")


def commands(text: str) -> list[list[str]]:
    """List the `ranktilt` commands of a console block, as words; lines marked `# planned` are left
    out.
    """
    written_commands = []
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("$") and "# planned" not in line:
            lexer = shlex.shlex(line[1:], posix=True, punctuation_chars="|&;<>()")
            lexer.whitespace_split = True
            command: list[str] = []
            for word in [*lexer, ";"]:
                if set(word) <= set("|&;<>()"):
                    written_commands.append(command)
                    command = []
                elif command or not re.fullmatch(r"\w+=.*", word):
                    command.append(word)
    return [command[1:] for command in written_commands if command[:1] == ["ranktilt"]]


def mistake(words: list[str]) -> str:
    """Return what is wrong with a command line; "" if nothing is."""
    if not words or words[-1] in ("--help", "--help-all"):
        return ""
    try:
        parse(words)
    except CycloptsError as error:
        return str(error)
    return ""
