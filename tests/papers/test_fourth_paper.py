"""A fourth paper, installed as pip would leave it: its builder, table and preset are found by their names."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ranktilt.reporting.layouts.layout import layouts
from tests.cli.conftest import Cli, cli
from tests.house import tree
from tests.toy import write

__all__ = ["cli"]  # a fixture that runs the command
PAGE = tree.ROOT / "docs" / "reference" / "extending.md"
FORUM = "question,human,llm\nwhy is the sky blue?,Air scatters blue light most.,The sky is blue.\n"
POINTS = """[ranktilt.builders]
smith-forum = smith:forum
[ranktilt.layouts]
smith = smith:LAYOUTS
[ranktilt.presets]
smith = smith:SMITH
"""


def code_of_the_page() -> str:
    """Put the page's blocks of the paper together: what stands before each is run."""
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    builder, _, layout, preset = blocks[:4]
    parts = builder.split('Path("forum.csv")'), layout.split("audit = rt"), preset.split("print(")
    return "\n".join(part[0] for part in parts)


@pytest.fixture
def smith(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Install the package of the page, and go to the folder of its files."""
    site = tmp_path / "site"
    info = site / "smith-1.0.dist-info"
    write(site / "smith.py", code_of_the_page())
    write(info / "METADATA", "Metadata-Version: 2.1\nName: smith\nVersion: 1.0\n")
    write(info / "entry_points.txt", POINTS)
    write(tmp_path / "forum.csv", FORUM)
    monkeypatch.syspath_prepend(site)
    monkeypatch.chdir(tmp_path)
    layouts.cache_clear()
    yield tmp_path
    layouts.cache_clear()
    sys.modules.pop("smith", None)


def test_builder_table_and_preset_of_the_page_are_found(smith: Path, cli: Cli) -> None:
    built = cli("data", "build", "smith-forum", "forum.csv", "-o", "forum", "--least-words", "2")
    assert (built.code, built.out) == (0, "answers  2\n")
    assert built.err.splitlines()[-1] == "Next: ranktilt audit forum -r bm25"
    audited = cli("audit", "forum", "--preset", "smith", "-r", "bm25", "--json", "audit.json")
    assert audited.code == 0, audited.err
    assert "bm25(text=text,k1=0.9,b=0.4)" in audited.out
    printed = cli("report", "audit.json", "--layout", "smith-1").out
    assert "*Layout: Table 1 of Smith et al. 2026.*" in printed
    assert "| Model | Answers | NDCG@3 | Recall@5 |" in printed


def test_mistyped_names_list_those_there_are(smith: Path, cli: Cli) -> None:
    cases = {
        "data build smith-forun": "unknown builder 'smith-forun'; did you mean 'smith-forum'?",
        "report audit.json --layout smith-2": "unknown layout 'smith-2'; did you mean 'smith-1'?",
        "audit forum -r bm25 --preset smit": "unknown preset 'smit'; did you mean 'smith'?",
    }
    cli("data", "build", "smith-forum", "forum.csv", "-o", "forum")
    for line, message in cases.items():
        refused = cli(*line.split())
        assert refused.code == 2
        assert message in refused.err


def test_objects_of_another_kind_are_refused_in_one_line(smith: Path, cli: Cli) -> None:
    points = POINTS.replace("smith:LAYOUTS", "smith:SMITH").replace("smith:forum", "smith:SMITH")
    write(smith / "site" / "smith-1.0.dist-info" / "entry_points.txt", points)
    layouts.cache_clear()
    refused = cli("data", "build", "smith-forum", "forum.csv", "-o", "forum")
    message = "builder 'smith-forum' of smith 1.0 (smith:SMITH) is no function\n"
    assert (refused.code, refused.err) == (2, f"ranktilt: {message}")
    refused = cli("report", "audit.json", "--layout", "smith-1")
    message = (
        "layout 'smith' of smith 1.0 (smith:SMITH) is neither a Layout nor a tuple of Layouts\n"
    )
    assert (refused.code, refused.err) == (2, f"ranktilt: {message}")
