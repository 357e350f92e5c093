"""A fourth paper, installed as pip would leave it: its builder, table and preset are found by their
names.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ranktilt.reporting.layouts.layout import load_layouts
from tests.cli.conftest import Cli, cli
from tests.house import tree
from tests.toy import write

__all__ = ["cli"]  # a fixture that runs the command
PAGE = tree.ROOT / "docs" / "reference" / "extending.md"
POINTS = """[ranktilt.builders]
smith-forum = smith:forum
[ranktilt.layouts]
smith = smith:LAYOUTS
[ranktilt.presets]
smith = smith:SMITH
"""


def blocks_of_the_page(kind: str) -> list[str]:
    """Return the page's blocks of one kind."""
    pattern = rf"^```{kind}\n(.*?)^```"
    return re.findall(pattern, PAGE.read_text(encoding="utf-8"), re.M | re.S)


def code_of_the_page() -> str:
    """Put the page's blocks of smith.py together."""
    return "\n".join(block for block in blocks_of_the_page("python") if block.startswith("# smith"))


def csv_of_the_page() -> str:
    return next(block for block in blocks_of_the_page("text") if block.startswith("question,"))


def commands_of_the_page() -> list[tuple[str, list[str]]]:
    """Return each command that needs the package, and the lines that it prints."""
    commands = list[tuple[str, list[str]]]()
    for block in blocks_of_the_page("console"):
        for line in block.splitlines():
            if line.startswith("$ ranktilt "):
                commands.append((line.removeprefix("$ ranktilt "), []))
            elif commands:
                commands[-1][1].append(line)
    return [command for command in commands if "smith" in command[0]]


@pytest.fixture
def smith(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install the package of the page, and go to the folder of its files."""
    site = tmp_path / "site"
    info = site / "smith-1.0.dist-info"
    write(site / "smith.py", code_of_the_page())
    write(info / "METADATA", "Metadata-Version: 2.1\nName: smith\nVersion: 1.0\n")
    write(info / "entry_points.txt", POINTS)
    write(tmp_path / "example.csv", csv_of_the_page())
    monkeypatch.syspath_prepend(site)
    monkeypatch.chdir(tmp_path)
    load_layouts.cache_clear()
    yield tmp_path
    load_layouts.cache_clear()
    sys.modules.pop("smith", None)


def test_commands_of_the_page_print_what_it_shows(smith: Path, cli: Cli) -> None:
    commands = commands_of_the_page()
    assert [line.split()[0] for line, _ in commands] == ["data", "audit", "report"]
    for line, printed_texts in commands:
        code, out, err = cli(*line.split())
        assert code == 0, err
        assert [text for text in printed_texts if text not in f"{out}{err}"] == []
    assert "--preset smith --ties trec_eval" in cli(*commands[1][0].split()).out


def test_questions_without_an_answer_that_is_long_enough_are_left_out(
    smith: Path, cli: Cli
) -> None:
    built = cli("data", "build", "smith-forum", "example.csv", "-o", "x", "--least-words", "6")
    assert built.out == "answers  2\n"
    nothing = cli("data", "build", "smith-forum", "example.csv", "-o", "y", "--least-words", "60")
    assert nothing.err == (
        "ranktilt: example.csv: no question whose answers have 60 words or more\n"
    )


def test_a_layout_with_a_column_that_there_is_not_is_to_blame_itself(smith: Path, cli: Cli) -> None:
    code = code_of_the_page().replace('"target": "group"', '"target": "side"')
    write(smith / "site" / "smith.py", code)
    cli("data", "build", "smith-forum", "example.csv", "-o", "forum")
    cli("audit", "forum", "--preset", "smith", "-r", "bm25", "--json", "audit.json")
    refused = cli("report", "audit.json", "--layout", "smith-1")
    assert refused.err.startswith('ranktilt: layout smith-1: no column "side"; there are by, ')


def test_a_parameter_that_the_docstring_does_not_describe_is_named(smith: Path, cli: Cli) -> None:
    code = code_of_the_page()
    description = "    least_words : int\n        Leave out shorter answers.\n"
    assert description in code
    write(smith / "site" / "smith.py", code.replace(description, ""))
    refused = cli("data", "build", "smith-forum", "example.csv", "-o", "forum")
    assert refused.code == 2
    assert refused.err == (
        "ranktilt: builder 'smith-forum': its docstring does not say what least_words is; "
        "describe it under Parameters, as numpydoc does\n"
    )


def test_help_shows_parameters_with_their_types_and_defaults(smith: Path, cli: Cli) -> None:
    page = " ".join(cli("data", "build", "smith-forum", "--help").out.split())
    assert "Build the forum of Smith et al.: questions answered by people and by a model." in page
    assert "FILE Questions with both answers (.csv). [required]" in page
    assert "--least-words N Leave out shorter answers. [default: 0]" in page


def test_mistyped_names_list_those_there_are(smith: Path, cli: Cli) -> None:
    cases = {
        "data build smith-forun": "no such command 'smith-forun'; did you mean 'smith-forum'?",
        "report audit.json --layout smith-2": "unknown layout 'smith-2'; did you mean 'smith-1'?",
        "audit forum -r bm25 --preset smit": "unknown preset 'smit'; did you mean 'smith'?",
    }
    cli("data", "build", "smith-forum", "example.csv", "-o", "forum")
    for line, message in cases.items():
        refused = cli(*line.split())
        assert refused.code == 2
        assert message in refused.err


def test_objects_of_another_kind_are_refused_in_one_line(smith: Path, cli: Cli) -> None:
    points = POINTS.replace("smith:LAYOUTS", "smith:SMITH").replace("smith:forum", "smith:SMITH")
    write(smith / "site" / "smith-1.0.dist-info" / "entry_points.txt", points)
    load_layouts.cache_clear()
    refused = cli("data", "build", "smith-forum", "example.csv", "-o", "forum")
    message = "builder 'smith-forum' of smith 1.0 (smith:SMITH) is no function\n"
    assert (refused.code, refused.err) == (2, f"ranktilt: {message}")
    refused = cli("report", "audit.json", "--layout", "smith-1")
    message = (
        "layout 'smith' of smith 1.0 (smith:SMITH) is neither a Layout nor a tuple of Layouts\n"
    )
    assert (refused.code, refused.err) == (2, f"ranktilt: {message}")


def test_a_broken_package_takes_no_table_of_others_away(smith: Path, cli: Cli) -> None:
    cli("data", "build", "smith-forum", "example.csv", "-o", "forum")
    cli("audit", "forum", "-r", "bm25", "-m", "nDCG@3", "--json", "audit.json")
    write(smith / "site" / "smith.py", "import nothing_of_that_name\n")
    sys.modules.pop("smith", None)
    load_layouts.cache_clear()
    assert cli("report", "audit.json", "--layout", "dai-3").code == 0
    refused = cli("report", "audit.json", "--layout", "smith-1")
    assert "layout 'smith' of smith 1.0 (smith:LAYOUTS) cannot be imported" in refused.err


def test_a_broken_package_takes_no_builder_of_others_away(smith: Path, cli: Cli) -> None:
    write(smith / "site" / "smith.py", "import nothing_of_that_name\n")
    sys.modules.pop("smith", None)
    message = "builder 'smith-forum' of smith 1.0 (smith:forum) cannot be imported: "
    page = cli("data", "build", "--help")
    text = " ".join(page.out.split())
    assert page.code == 0
    assert "nq320k Build NQ320K from Natural Questions" in text
    assert f"smith-forum {message}" in text
    refused = cli("data", "build", "smith-forum", "example.csv", "-o", "forum")
    assert refused.code == 2
    assert refused.err.startswith(f"ranktilt: {message}")


def test_no_package_takes_the_name_of_a_papers_table(smith: Path, cli: Cli) -> None:
    write(smith / "site" / "smith.py", code_of_the_page().replace('"smith-1"', '"dai-1"'))
    refused = cli("report", "audit.json", "--layout", "dai-1")
    assert refused.err == (
        "ranktilt: layout 'dai-1' of 'smith' has the name of another layout; rename it\n"
    )


def test_a_preset_with_what_there_is_not_is_refused(smith: Path, cli: Cli) -> None:
    cli("data", "build", "smith-forum", "example.csv", "-o", "forum")
    cases = {
        '{"tie": "trec_eval"}': "unknown statistic of a preset 'tie'; did you mean 'ties'?",
        '{}, options={"bm25": {"k9": "1"}}': "unknown option of bm25 in preset 'smith' 'k9'",
    }
    for statistics, message in cases.items():
        code = code_of_the_page().replace('{"ties": "trec_eval", "test": "t"}', statistics)
        write(smith / "site" / "smith.py", code)
        sys.modules.pop("smith", None)
        load_layouts.cache_clear()
        refused = cli("audit", "forum", "-r", "bm25", "--preset", "smith")
        assert message in refused.err
