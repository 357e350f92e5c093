"""The script that makes the pictures of README and docs shows what it says, and the pictures are there."""

import struct
from pathlib import Path

import pytest

from scripts import pictures
from tests.house import tree
from tests.reporting.browser import program

IMAGES = tree.ROOT / "docs" / "images"


def size(picture: Path) -> tuple[int, int]:
    """Width and height of a PNG, from its header."""
    start = picture.read_bytes()[:24]
    assert start.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", start[16:])
    return width, height


@pytest.mark.parametrize("name", ["report", "explorer"])
def test_a_picture_is_there_and_small(name: str) -> None:
    picture = IMAGES / f"{name}.png"
    width, height = size(picture)
    assert 1000 <= width <= 1280
    assert 300 <= height <= 1600
    assert picture.stat().st_size <= 250_000


def test_every_picture_is_shown() -> None:
    pages = [tree.ROOT / "README.md", *(tree.ROOT / "docs").rglob("*.md")]
    said = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert [picture.name for picture in IMAGES.iterdir() if f"images/{picture.name}" not in said] == []


@pytest.mark.long
@pytest.mark.neural
def test_both_pictures_are_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program()
    pytest.importorskip("playwright", reason="needs Playwright, which is not installed")
    assert pictures.main([str(tmp_path / "new")]) == 0
    made = sorted((tmp_path / "new").iterdir())
    assert [picture.name for picture in made] == ["explorer.png", "report.png"]
    assert size(made[1])[0] == 1280
    assert capsys.readouterr().out.count(" kB\n") == 2


def test_without_a_browser_it_says_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("playwright", reason="needs Playwright, which is not installed")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(pictures, "report", lambda folder: folder / "report.html")
    assert pictures.main([str(tmp_path / "new")]) == 1
    assert "needs Chromium" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
