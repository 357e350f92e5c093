"""What the benchmarks share: fresh processes, clocks, peak memory, tables and their place in
RESULTS.md.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "RESULTS.md"
HEADING = (
    "# Benchmarks\n\nEach script rewrites its own part: `python benchmarks/lexical.py`. "
    "Times are wall-clock seconds.\n"
)
GB = 1e9
ABSENT = "NFCorpus: skipped, its folder is absent (RANKTILT_TEST_DATA says where it is)."
TINY = "a tiny generated collection, to which no target applies"

Measured = dict[str, float]
Contender = Callable[[Path, argparse.Namespace], Measured]


class Watch:
    """Wall time of named parts: ``with watch("search"): …``."""

    def __init__(self) -> None:
        self.parts: Measured = {}

    @contextmanager
    def __call__(self, part: str) -> Iterator[None]:
        """Add the time that the block takes to a part."""
        start = time.perf_counter()
        yield
        self.parts[part] = self.parts.get(part, 0.0) + time.perf_counter() - start


def peak_memory() -> float:
    """Most memory that this process ever held, in bytes."""
    status = Path("/proc/self/status")
    match = (
        re.search(r"VmHWM:\s*(\d+) kB", status.read_text(encoding="utf-8"))
        if status.is_file()
        else None
    )
    if match:  # getrusage counts what the parent held when it started us
        return float(match[1]) * 1024
    scale = 1 if sys.platform == "darwin" else 1024
    return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale)


def arguments(description: str) -> argparse.ArgumentParser:
    """Make the parser with the options that every script has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes, only to see that it works"
    )
    parser.add_argument(
        "--output", type=Path, help="file for the tables (RESULTS.md; with --quick none)"
    )
    parser.add_argument("--contender", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    return parser


def compete(args: argparse.Namespace, contenders: Mapping[str, Contender]) -> None:
    """Run one contender in this process and write what was measured to stdout."""
    measured = contenders[args.contender](args.folder, args)
    print(json.dumps({**measured, "peak": peak_memory()}))


def fresh(script: str, contender: str, folder: Path, *options: str) -> Measured:
    """Run one contender in a process of its own."""
    command = [sys.executable, script, "--contender", contender, "--folder", str(folder), *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return {str(k): float(v) for k, v in json.loads(done.stdout.strip().splitlines()[-1]).items()}


def ranktilt(*words: str) -> float:
    """Seconds of a command as a user types it."""
    command = [sys.executable, "-c", "from ranktilt.cli.main import main; main()", *words]
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def alternating(
    script: str, contenders: Sequence[str], folder: Path, rounds: int
) -> dict[str, Measured]:
    """Run contenders in turn, several rounds; medians of each."""
    measured: dict[str, list[Measured]] = {c: [] for c in contenders}
    for number in range(rounds):
        for contender in contenders:
            say(f"round {number + 1} of {rounds}: {contender}")
            measured[contender].append(fresh(script, contender, folder))
    return {
        c: {part: statistics.median(m[part] for m in all_) for part in all_[0]}
        for c, all_ in measured.items()
    }


@contextmanager
def server_process(variable: str, *arguments: str) -> Iterator[None]:
    """A Python process that serves; the address on its first line goes to the contenders by an
    environment variable.
    """
    with subprocess.Popen(
        [sys.executable, *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        os.environ[variable] = process.stdout.readline().strip()
        try:
            yield
        finally:
            process.terminate()


def say(text: str) -> None:
    """Tell whoever waits what is being done."""
    print(text, file=sys.stderr, flush=True)


def shared(name: str) -> Path | None:
    """Return a folder of the shared data, or None where it is absent."""
    folder = Path(os.environ.get("RANKTILT_TEST_DATA") or ROOT.parent / "shared" / "data") / name
    return folder if folder.is_dir() else None


def nfcorpus() -> Path | None:
    """Return the folder of Cocktail's NFCorpus, or None where it is absent."""
    return shared("cocktail-nfcorpus")


@contextmanager
def nfcorpus_or_tiny(args: argparse.Namespace) -> Iterator[tuple[Path, str, list[str]]]:
    """Give a temporary folder, what is measured in it, and what is to be said where NFCorpus is
    absent.
    """
    absent = nfcorpus() is None and not args.quick
    tiny = args.quick or absent
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / ("quick" if tiny else "full")
        folder.mkdir()
        yield folder, TINY if tiny else "NFCorpus", [ABSENT] if absent else []


def read_folder(folder: Path) -> tuple[dict[str, str], dict[str, str], dict[str, dict[str, int]]]:
    """Documents (title and text), queries and judgments of a BEIR folder by id, as plain Python
    reads them.
    """

    def lines(name: str) -> Iterator[dict[str, Any]]:
        with (folder / name).open(encoding="utf-8") as stream:
            yield from map(json.loads, stream)

    docs = {d["_id"]: f"{d.get('title') or ''} {d['text']}".strip() for d in lines("corpus.jsonl")}
    qrels: dict[str, dict[str, int]] = {}
    for line in (folder / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, doc, grade = line.split("\t")
        qrels.setdefault(query, {})[doc] = int(grade)
    return docs, {q["_id"]: q["text"] for q in lines("queries.jsonl") if q["_id"] in qrels}, qrels


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Make a Markdown table: first column to the left, the others to the right."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def seconds(value: float | None) -> str:
    """Format a time with three digits; a dash for none."""
    if value is None:
        return "–"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 10 else f"{value:.1f}"


def memory(size: float) -> str:
    """Format bytes as gigabytes."""
    return f"{size / GB:.2f} GB"


def target(
    text: str,
    value: float,
    *,
    at_most: float | None = None,
    at_least: float | None = None,
    unit: str,
) -> str:
    """Say in one line what was asked, what came, and whether it was met."""
    if at_most is not None:
        limit, met = f"≤ {at_most:g}{unit}", value <= at_most
    else:
        limit, met = f"≥ {at_least:g}{unit}", value >= (at_least or 0.0)
    return f"- {text}: **{seconds(value)}{unit}** (target {limit}: {'met' if met else 'MISSED'})"


def machine(packages: Sequence[str]) -> str:
    """Say where, with what and when this was measured."""
    info = Path("/proc/cpuinfo")
    name = (
        re.search(r"model name\s*:\s*(.+)", info.read_text(encoding="utf-8"))
        if info.is_file()
        else None
    )
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    versions = []
    for package in packages:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            versions.append(f"{package} (absent)")
    processor = name[1].strip() if name else platform.machine()
    where = f"{processor}, {cores} cores, {pages / GB:.0f} GB, {platform.system()}"
    when = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    return f"*{where}; Python {platform.python_version()}, {', '.join(versions)}; {when}.*"


def publish(section: str, text: str, args: argparse.Namespace) -> None:
    """Print a section, and put it into the file of results in place of its last version."""
    print(text)
    output = args.output or (None if args.quick else RESULTS)
    if output is None:
        return
    old = output.read_text(encoding="utf-8") if output.is_file() else HEADING
    start, end = f"<!-- {section}: start -->", f"<!-- {section}: end -->"
    block = f"{start}\n{text.strip()}\n{end}"
    pattern = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
    new = (
        pattern.sub(lambda _: block, old) if pattern.search(old) else f"{old.rstrip()}\n\n{block}\n"
    )
    output.write_text(new, encoding="utf-8")
