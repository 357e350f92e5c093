"""The report: NFCorpus with four rankers, from the command to the first paint.

Commands are timed whole, start of Python included; what a page costs within a process that has just
audited is timed inside it. The browser is Debian's Chromium without a window, a fresh profile each
time.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

import generate
from common import (
    ABSENT,
    TINY,
    Contender,
    Measured,
    Watch,
    alternating,
    arguments,
    compete,
    machine,
    memory,
    nfcorpus,
    publish,
    ranktilt,
    say,
    seconds,
    table,
    target,
)

PACKAGES = ("ranktilt", "jinja2", "polars", "numpy")
RANKERS = ("tfidf", "bm25", "bm25(k1=0.9,b=0.4)", "dense:minilm")
QUICK_RANKERS = RANKERS[:2]
ROUNDS = 5
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PAINT = (
    "performance.getEntriesByType('paint').find(one => one.name === "
    "'first-contentful-paint')?.startTime ?? null"
)
DRAWN = (
    "new Promise(done => { const look = () => document.documentElement.dataset.drawn ? "
    "done(performance.now()) : "
    "requestAnimationFrame(look); look(); })"
)
LISTED = (
    "new Promise(done => { const start = performance.now(); "
    "document.querySelector('.explorer').scrollIntoView(); "
    "const look = () => document.querySelector('.explorer button.open') ? done(performance.now() - "
    "start) : "
    "requestAnimationFrame(look); look(); })"
)


def rankers(args: argparse.Namespace) -> list[str]:
    """The options that name the rankers."""
    return [part for name in (QUICK_RANKERS if args.quick else RANKERS) for part in ("-r", name)]


def after_audit(folder: Path, args: argparse.Namespace) -> Measured:
    """Make the page in a process that has just loaded, ranked and audited."""
    import ranktilt as rt
    from ranktilt.reporting.reload import LoadedAudit
    from ranktilt.reporting.report import report_page

    collection = rt.load(folder / "data" if (folder / "data").is_dir() else nfcorpus() or folder)
    specs = QUICK_RANKERS if (folder / "data").is_dir() else RANKERS
    runs = tuple(rt.ranker(spec).rank(collection) for spec in specs)
    result = rt.audit(collection, runs, card=True)
    watch = Watch()
    with watch("page"):
        page = report_page([LoadedAudit(result, collection, runs)]).encode()
    with watch("again"):
        report_page([LoadedAudit(result, collection, runs)])
    return {**watch.parts, "size": len(page)}


def from_file(folder: Path, args: argparse.Namespace) -> Measured:
    """Make the page from what ``--save`` wrote: read, open again, check, write."""
    from ranktilt.reporting.report import opened, report_page

    watch = Watch()
    with watch("open"):
        results = opened([folder / "saved" / "audit.json"])
    with watch("page"):
        page = report_page(results).encode()
    return {**watch.parts, "size": len(page)}


CONTENDERS: dict[str, Contender] = {"after-audit": after_audit, "from-file": from_file}


def commands(folder: Path, data: Path, args: argparse.Namespace) -> dict[str, float]:
    """Median seconds of each command, in turn."""
    audit = ["audit", str(data), *rankers(args), "--card", "--quiet"]
    saved, page = folder / "saved", str(folder / "report.html")
    parts: dict[str, Callable[[], float]] = {
        "audit": lambda: ranktilt(*audit, "--save", str(saved)),
        "audit -o": lambda: ranktilt(*audit, "--save", str(saved), "-o", page),
        "report": lambda: ranktilt("report", str(saved / "audit.json"), "-o", page, "--quiet"),
        "report --no-texts": lambda: ranktilt(
            "report",
            str(saved / "audit.json"),
            "-o",
            str(folder / "bare.html"),
            "--no-texts",
            "--quiet",
        ),
    }
    parts["audit"]()  # fills the caches, which both kinds of audit then use
    shutil.copy(saved / "audit.json", folder / "audit.json")
    parts["report, runs not saved"] = lambda: ranktilt(
        "report", str(folder / "audit.json"), "-o", page, "--quiet"
    )
    times_of_parts: dict[str, list[float]] = {name: [] for name in parts}
    for number in range(rounds := 1 if args.quick else ROUNDS):
        for name, part in parts.items():
            say(f"round {number + 1} of {rounds}: {name}")
            times_of_parts[name].append(part())
    return {name: statistics.median(times) for name, times in times_of_parts.items()}


def painted(page: Path, times: int) -> Measured | None:
    """Median milliseconds until the page is painted, until its figures are drawn, and until its
    queries are listed.
    """
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    if program is None:
        return None
    times_in_browser: dict[str, list[float]] = {"paint": [], "drawn": [], "listed": []}
    with sync_playwright() as driver:
        for number in range(times + 1):
            say(f"browser: {number} of {times}")
            browser = driver.chromium.launch(
                executable_path=program, args=["--no-sandbox", "--disable-gpu"]
            )
            window = browser.new_page(viewport={"width": 1280, "height": 900})
            window.goto(page.as_uri())
            drawn = window.evaluate(DRAWN)
            if number:  # the first start reads the program from disk
                times_in_browser["paint"].append(window.evaluate(PAINT) or float("nan"))
                times_in_browser["drawn"].append(drawn)
                times_in_browser["listed"].append(window.evaluate(LISTED))
            browser.close()
    return {name: statistics.median(values) for name, values in times_in_browser.items()}


def section(args: argparse.Namespace) -> str:
    """Measure everything."""
    data = nfcorpus()
    if data is None and not args.quick:
        return ABSENT
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if args.quick or data is None:
            import ranktilt as rt

            data = folder / "data"
            rt.save(generate.collection(generate.QUICK), data)
        command_times = commands(folder, data, args)
        inside = alternating(__file__, list(CONTENDERS), folder, 1 if args.quick else 3)
        seen = painted(folder / "report.html", 1 if args.quick else ROUNDS)
        sizes = {page: (folder / page).stat().st_size for page in ("report.html", "bare.html")}
    return _sentences(args, command_times, inside, seen, sizes)


def _sentences(
    args: argparse.Namespace,
    command_times: dict[str, float],
    inside: dict[str, Measured],
    seen: Measured | None,
    sizes: dict[str, int],
) -> str:
    where = (
        TINY
        if args.quick
        else f"NFCorpus, {', '.join(RANKERS)}, 323 queries, 6 measures and the card"
    )
    after, file = inside["after-audit"], inside["from-file"]
    added = command_times["audit -o"] - command_times["audit"]
    lines = [
        f"## The report: {where}",
        "",
        machine(PACKAGES),
        "",
        table(
            ["whole command", "seconds"],
            [[f"`{name}`", seconds(value)] for name, value in command_times.items()],
        ),
        "",
        table(
            ["within a process", "seconds", "peak memory"],
            [
                ["the page, after an audit", seconds(after["page"]), memory(after["peak"])],
                ["the same once more", seconds(after["again"]), ""],
                [
                    "audit and saved runs opened again and checked",
                    seconds(file["open"]),
                    memory(file["peak"]),
                ],
                ["the page from them", seconds(file["page"]), ""],
            ],
        ),
        "",
        (
            f"Size: {sizes['report.html'] / 1e6:.2f} MB, without texts "
            f"{sizes['bare.html'] / 1e6:.2f} "
            "MB."
        ),
        "",
        target("report, whole command", command_times["report"], at_most=3, unit=" s"),
        target("what `-o` adds to an audit", added, at_most=3, unit=" s"),
        target("size", sizes["report.html"] / 1e6, at_most=8, unit=" MB"),
    ]
    if seen is None:
        return "\n".join(
            [*lines, "- in the browser: not measured, Chromium or Playwright is absent"]
        )
    return "\n".join(
        [
            *lines,
            target("first paint in Chromium", seen["paint"] / 1000, at_most=1, unit=" s"),
            f"- figures drawn after {seen['drawn'] / 1000:.2f} s; queries listed "
            f"{seen['listed'] / 1000:.2f} s after "
            "the reader comes to them",
        ]
    )


def main() -> None:
    """Run it."""
    args = arguments("The report: time, size, first paint.").parse_args()
    if args.contender:
        compete(args, CONTENDERS)
        return
    publish("report", section(args), args)


if __name__ == "__main__":
    main()
