"""Make the pictures of README and docs: a report of the bundled collection, as Chromium shows it.

    python scripts/pictures.py               # docs/images/report.png and docs/images/explorer.png
    python scripts/pictures.py FOLDER        # the same elsewhere, to look at them first

Needs the extras `neural` and `demo`, the Python package playwright, and a Chromium on the path. The
report is made anew, so that the pictures show what it is now.
"""

import argparse
import contextlib
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ranktilt as rt

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
RANKERS = ("tfidf", "bm25", "dense:minilm")
MEASURES = ("nDCG@5", "nDCG@10", "AP@10", "RR@10")
WIDTH = 1280
MARGIN = 16
MOST = 250_000


class Missing(Exception):
    """What the pictures need and cannot have, in one sentence."""


def report(folder: Path) -> Path:
    """Audit the bundled collection, and write the report into a folder."""
    with contextlib.chdir(folder):  # commands on the page name the collection as it is typed here
        rt.save(rt.bundled(), "bundled")
        mixed = rt.load("bundled")
    runs = [rt.ranker(text).rank(mixed) for text in RANKERS]
    result = rt.audit(mixed, runs, MEASURES, card=True)
    return rt.report(result, folder / "report.html", collection=mixed, runs=runs)


def top(page: Any, picture: Path) -> None:
    """Take the head of the page, down to the end of what its first screen says."""
    box = page.locator(".headline").first.bounding_box()
    page.screenshot(path=picture, full_page=True, clip=clip(0, 0, WIDTH, box["y"] + box["height"]))


def pair(page: Any, picture: Path) -> None:
    """Take two texts side by side: the first relevant document of the first query, and its twin."""
    page.locator("#queries").scroll_into_view_if_needed()
    page.locator("[data-query]").first.click()
    page.locator("tr:has(.grade) [data-doc]").first.click()
    page.locator(".explorer article mark").first.wait_for()
    view = page.locator(".explorer :has(> .texts)")
    box, down = view.bounding_box(), page.evaluate("scrollY")
    around = clip(box["x"], box["y"] + down, box["width"], box["height"], margin=MARGIN)
    page.screenshot(path=picture, full_page=True, clip=around)


def clip(
    left: float, top: float, width: float, height: float, *, margin: int = 0
) -> dict[str, float]:
    """Cut a part out of a page."""
    return {
        "x": left - margin,
        "y": top - margin,
        "width": width + 2 * margin,
        "height": height + 2 * margin,
    }


def take(file: Path, folder: Path) -> list[Path]:
    """Take both pictures of a report, in the light theme."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        raise Missing(f"needs Chromium: none of {', '.join(PROGRAMS)} is on the path")
    folder.mkdir(parents=True, exist_ok=True)
    pictures = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(
            viewport={"width": WIDTH, "height": 900}, color_scheme="light", reduced_motion="reduce"
        )
        page.goto(file.as_uri())
        page.locator("html[data-drawn]").wait_for(state="attached")
        for name, make in (("report", top), ("explorer", pair)):
            pictures.append(folder / f"{name}.png")
            make(page, pictures[-1])
        browser.close()
    return pictures


def main(argv: Sequence[str] | None = None) -> int:
    """Make the pictures; exit status 1 where one fails.

    A picture also fails where it is too large for a repository.
    """
    parser = argparse.ArgumentParser(description="Make the pictures of README and docs.")
    parser.add_argument(
        "folder", nargs="?", type=Path, default=IMAGES, help="where to; docs/images by default"
    )
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as directory:
        try:
            pictures = take(report(Path(directory)), args.folder)
        except Missing as missing:
            print(missing, file=sys.stderr)
            return 1
    for picture in pictures:
        print(f"{picture}: {picture.stat().st_size / 1000:.0f} kB")
    return int(any(picture.stat().st_size > MOST for picture in pictures))


if __name__ == "__main__":
    sys.exit(main())
