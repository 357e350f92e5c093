"""Change the numeric core in a hundred small ways, and count the changes that the tests notice.

    python scripts/mutants.py                                           # this checkout
    python scripts/mutants.py --checkout OLDER --results older.jsonl    # another one, to compare
    python scripts/mutants.py --count 30 --tests tests/measures --jobs 1

A mutant is one operator, number or return value of `measures/`, `statistics/`, `auditing/` or `io/`
that is replaced; which ones, the seed says. Work happens in a copy. First the tests run once with
coverage, to know which test reaches which line and how long it takes; then each mutant meets the
tests that reach its line, nearest and quickest first, as many as take half a minute (`--seconds`);
where they take four times as long it has hung. Results are kept line by line, so that an
interrupted pass goes on where it stopped. A mutant that no test reaches has survived; one that
hangs is killed. Survivors are listed. Those that turned out to change nothing that anyone could
notice are in `equivalent_mutants.txt`, each with its reason, and stand apart; the others are tests
to be written.
"""

import argparse
import ast
import concurrent.futures
import itertools
import json
import os
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("measures", "statistics", "auditing", "data")
EQUIVALENT = ROOT / "scripts" / "equivalent_mutants.txt"
KINDS = ("comparison", "boundary", "arithmetic", "constant", "return")
SECONDS = 30.0
# times as long as in the unchanged copy: one that hangs is told from one that the machine delays
SLOWED = 4
START = 40  # seconds that pytest needs before its first test, at most
LEFT_OUT = shutil.ignore_patterns(
    ".git",
    ".venv",
    "__pycache__",
    ".*_cache",
    ".hypothesis",
    "build",
    "dist",
    "htmlcov",
    ".coverage*",
)
_BOUNDARY = {ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">")}
_COMPARISON = {
    ast.Lt: ("<", ">"),
    ast.LtE: ("<=", ">="),
    ast.Gt: (">", "<"),
    ast.GtE: (">=", "<="),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
_ARITHMETIC = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
}
_TEXT = ast.JoinedStr | ast.List | ast.Tuple


@dataclass(frozen=True)
class Mutant:
    """One replacement: a file of the checkout, the bytes that go, what comes instead.

    Its statement and line say where a reader finds it.
    """

    file: str
    kind: str
    statement: int
    """First line of the statement that it is in."""
    line: int
    start: int
    stop: int
    old: str
    new: str

    @property
    def name(self) -> str:
        """Tell it from all others of its file."""
        return f"{self.file}:{self.line}:{self.start} {self.kind}: {self.old!r} -> {self.new!r}"

    def applied(self, source: bytes) -> bytes:
        """Return the file with the replacement; every line keeps its number."""
        return source[: self.start] + self.new.encode() + source[self.stop :]


# --------------------------------------------------------------------------------------------------
# finding mutants


class _Finder:
    """Lists every mutant of one file."""

    def __init__(self, file: str, source: bytes) -> None:
        self.file, self.source = file, source
        lengths = [len(line) for line in source.splitlines(keepends=True)]
        self.starts = [sum(lengths[:i]) for i in range(len(lengths) + 1)]
        self.statement = 1
        self.found_mutants: list[Mutant] = []

    def span(self, node: Any) -> tuple[int, int]:
        """Return where a node starts and stops, in bytes of the file."""
        return self.starts[node.lineno - 1] + node.col_offset, self.starts[
            node.end_lineno - 1
        ] + node.end_col_offset

    def add(self, kind: str, span: tuple[int, int], new: str) -> None:
        """Note a mutant; what comes has as many lines as what goes."""
        old = self.source[slice(*span)].decode()
        line = self.source.count(b"\n", 0, span[0]) + 1
        new += "\n" * (old.count("\n") - new.count("\n"))
        self.found_mutants.append(Mutant(self.file, kind, self.statement, line, *span, old, new))

    def operator(self, kind: str, sides: tuple[ast.AST, ast.AST], change: tuple[str, str]) -> None:
        """Note the mutant of an operator between two nodes, if it stands there once."""
        low, high = self.span(sides[0])[1], self.span(sides[1])[0]
        between = self.source[low:high].decode()
        pattern = (
            rf"\b{change[0]}\b".replace(" ", r"\s+")
            if change[0].isidentifier()
            else re.escape(change[0])
        )
        matches = list(
            re.finditer(
                pattern.replace(r"\ ", r"\s+"), re.sub(r"#.*", lambda m: " " * len(m[0]), between)
            )
        )
        if len(matches) == 1:
            start = low + len(between[: matches[0].start()].encode())
            self.add(kind, (start, start + len(matches[0][0].encode())), change[1])

    def visit(self, node: ast.AST) -> None:
        """Note the mutants of a node and of all below it.

        Annotations, messages and decorators have none.
        """
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for op, pair in zip(node.ops, itertools.pairwise(sides), strict=True):
                for kind, changes in (("boundary", _BOUNDARY), ("comparison", _COMPARISON)):
                    if type(op) in changes:
                        self.operator(kind, pair, changes[type(op)])  # type: ignore[index]
        elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            if not any(_is_text(side) for side in (node.left, node.right)):
                replacement = _ARITHMETIC[type(node.op)]  # type: ignore[index]
                self.operator("arithmetic", (node.left, node.right), replacement)
        elif (
            isinstance(node, ast.AugAssign)
            and type(node.op) in _ARITHMETIC
            and not _is_text(node.value)
        ):
            old, new = _ARITHMETIC[type(node.op)]  # type: ignore[index]
            self.operator("arithmetic", (node.target, node.value), (f"{old}=", f"{new}="))
        elif isinstance(node, ast.Constant):
            self.constant(node)
        elif isinstance(node, ast.Return) and not _is_none(node.value):
            self.returned(node.value)
        above = self.statement
        for child in _below(node):
            self.statement = child.lineno if isinstance(child, ast.stmt) else above
            self.visit(child)
        self.statement = above

    def constant(self, node: ast.Constant) -> None:
        """Note another number or truth value."""
        value = node.value
        if isinstance(value, bool):
            self.add("constant", self.span(node), repr(not value))
        elif isinstance(value, int):
            self.add("constant", self.span(node), repr(value + 1))
        elif isinstance(value, float):
            self.add("constant", self.span(node), repr(2 * value if value else 1.0))

    def returned(self, value: Any) -> None:
        """Note the opposite of what is returned, or nothing."""
        start, stop = self.span(value)
        opposite = isinstance(value, ast.Compare | ast.BoolOp) or (
            isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not)
        )
        text = self.source[start:stop].decode()
        self.add(
            "return",
            (start, stop),
            f"not ({text})" if opposite else f"({'None':s}" + "\n" * text.count("\n") + ")",
        )


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, _TEXT) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _is_none(node: ast.AST | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value is None)


def _below(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.JoinedStr | ast.Raise):
        return
    if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
        return
    if (
        isinstance(node, ast.keyword) and node.arg == "strict"
    ):  # of zip: two lists that are equally long
        return
    if (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "report"
    ):  # progress
        return
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "decorator_list"):
            yield from (
                child
                for child in (value if isinstance(value, list) else [value])
                if isinstance(child, ast.AST)
            )


def mutants(package: Path, rooms: Sequence[str], root: Path) -> list[Mutant]:
    """List every mutant of some rooms (folders or files of the package).

    Those that do not exist are left out.
    """
    paths = []
    for room in rooms:
        for path in (
            [package / room] if room.endswith(".py") else sorted((package / room).rglob("*.py"))
        ):
            source = path.read_bytes()
            finder = _Finder(path.relative_to(root).as_posix(), source)
            finder.visit(ast.parse(source))
            for mutant in finder.found_mutants:
                with suppress(SyntaxError):
                    ast.parse(mutant.applied(source))
                    paths.append(mutant)
    return paths


def drawn(every: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """Draw mutants, the same number of each kind as far as there are enough."""
    chance = random.Random(seed)
    piles = {kind: [mutant for mutant in every if mutant.kind == kind] for kind in KINDS}
    for pile in piles.values():
        chance.shuffle(pile)
    mutants: list[Mutant] = []
    while len(mutants) < count and any(piles.values()):
        mutants += [pile.pop() for pile in piles.values() if pile]
    return mutants[:count]


# ------------------------------------------------------------------------------------------- which
# test reaches what


@dataclass
class Reached:
    """What the tests do in the unchanged copy.

    It holds the seconds of each that passes, and the tests that reach each line.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    lines: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    def tests(self, mutant: Mutant, cap: float) -> list[str]:
        """List the tests for a mutant.

        Those of its own room come first, then quick ones, within so many seconds.
        """
        lines = self.lines.get(mutant.file, {})
        ran = [
            lines[str(line)]
            for line in range(mutant.statement, mutant.line + 1)
            if str(line) in lines
        ]
        if ran and not any(ran):  # runs on import: whatever uses the module at all
            ran = list(lines.values())
        names = sorted({name for group in ran for name in group})
        room, stem = Path(mutant.file).parent.name, Path(mutant.file).stem
        near = {name: (f"test_{stem}" not in name, f"/{room}/" not in name) for name in names}
        left, chosen_tests = cap, []
        for name in sorted(names, key=lambda name: (near[name], self.seconds.get(name, cap))):
            if name in self.seconds and self.seconds[name] <= left:
                left -= self.seconds[name]
                chosen_tests.append(name)
        return chosen_tests


def pytest_runtest_logreport(report: Any) -> None:
    """Note a test's outcome, when this file is pytest's plugin (`-p mutants`)."""
    file = os.environ.get("MUTANTS_OUTCOMES")
    if file and "PYTEST_XDIST_WORKER" not in os.environ:
        row = {
            "test": report.nodeid,
            "when": report.when,
            "outcome": report.outcome,
            "seconds": report.duration,
        }
        with open(file, "a", encoding="utf-8") as out:
            out.write(json.dumps(row) + "\n")


@dataclass(frozen=True)
class Copy:
    """A copy of a checkout in which tests run."""

    root: Path
    package: str

    def pytest(self, *arguments: str, seconds: float, **variables: str) -> int | None:
        """Run pytest; return its exit code, or None if it had to be stopped."""
        # Without xdist's variables: this may itself run in a worker.
        environment = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith("PYTEST_XDIST_")
            },
            "PYTHONPATH": os.pathsep.join([str(self.root / "src"), str(Path(__file__).parent)]),
            "HF_HUB_OFFLINE": "1",
            "CI": "1",
            **variables,
        }
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
        process = subprocess.Popen(
            command,
            cwd=self.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def reached(copy: Copy, tests: Sequence[str], jobs: int) -> Reached:
    """Run the tests once with coverage, and return which of them reach which line."""
    outcomes, settings = copy.root / "mutants-outcomes.jsonl", copy.root / "mutants-coverage.ini"
    settings.write_text(
        f"[run]\nsource = {copy.package}\nconcurrency = multiprocessing,thread\nparallel = false\n"
    )
    copy.pytest(
        *tests,
        "-m",
        "not long",
        "-n",
        str(jobs if jobs > 1 else 0),
        "-p",
        "mutants",
        "--cov",
        "--cov-context=test",
        "--cov-report=",
        f"--cov-config={settings}",
        "--cov-fail-under=0",
        f"--basetemp={copy.root / 'tmp'}",
        seconds=7200,
        MUTANTS_OUTCOMES=str(outcomes),
        COVERAGE_FILE=str(copy.root / ".coverage"),
    )
    from coverage import CoverageData

    outcome, bad = Reached(), set()
    for line in outcomes.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["outcome"] != "passed":
            bad.add(row["test"])
        outcome.seconds[row["test"]] = outcome.seconds.get(row["test"], 0.0) + row["seconds"]
    outcome.seconds = {
        name: seconds for name, seconds in outcome.seconds.items() if name not in bad
    }
    data = CoverageData(str(copy.root / ".coverage"))
    data.read()
    for file in data.measured_files():
        lines = data.contexts_by_lineno(file)
        outcome.lines[Path(file).relative_to(copy.root).as_posix()] = {
            str(number): sorted({name.rpartition("|")[0] for name in names if "|" in name})
            for number, names in lines.items()
        }
    return outcome


# --------------------------------------------------------------------------------------------------
# running


def judged(copy: Copy, mutant: Mutant, tests: Sequence[str], limit: float) -> str:
    """Run tests against a mutant.

    Killed, survived, hung (after `limit` seconds), or unreached by any test.
    """
    if not tests:
        return "unreached"
    path = copy.root / mutant.file
    source = path.read_bytes()
    listed = copy.root / "mutants-tests.txt"
    listed.write_text("\n".join(tests), encoding="utf-8")
    try:
        _write(path, mutant.applied(source))
        code = copy.pytest(
            "-x",
            "-n",
            "0",
            "--no-cov",
            f"--basetemp={copy.root / 'tmp'}",
            f"@{listed}",
            seconds=limit,
        )
    finally:
        _write(path, source)
    if code is None:
        return "hung"
    return "survived" if code == 0 else "killed"


def _write(path: Path, source: bytes) -> None:
    """Write a module so that no compiled file of its older text is used."""
    path.write_bytes(source)
    for stale in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        stale.unlink()


def done(results: Path) -> dict[str, dict[str, Any]]:
    """Read what an earlier pass found, by mutant."""
    lines = results.read_text(encoding="utf-8").splitlines() if results.exists() else []
    return {row["name"]: row for row in map(json.loads, lines)}


def run(
    chosen: Sequence[Mutant], copies: Sequence[Copy], known: Reached, options: argparse.Namespace
) -> None:
    """Judge the mutants that have no result yet, until the time is over.

    Each copy judges one at a time.
    """
    results = options.results
    free: queue.Queue[Copy] = queue.Queue()
    for copy in copies:
        free.put(copy)
    end = time.monotonic() + 60 * options.minutes
    before = done(results)

    def judge(mutant: Mutant) -> None:
        if mutant.name in before or time.monotonic() > end:
            return
        copy, started = free.get(), time.monotonic()
        try:
            tests = known.tests(mutant, options.seconds)
            limit = START + SLOWED * sum(known.seconds[name] for name in tests)
            status = judged(copy, mutant, tests, limit)
        finally:
            free.put(copy)
        row = {"name": mutant.name, "status": status, "tests": len(tests), **asdict(mutant)}
        with results.open("a", encoding="utf-8") as out:
            out.write(json.dumps({**row, "seconds": round(time.monotonic() - started, 1)}) + "\n")

    with concurrent.futures.ThreadPoolExecutor(len(copies)) as pool:
        for future in [pool.submit(judge, mutant) for mutant in chosen]:
            future.result()


def changed_line(mutant: Mutant, source: bytes) -> str:
    """Say what a mutant makes of its line.

    ``FILE: LINE``, as the list of equivalent mutants names it.
    """
    return f"{mutant.file}: {mutant.applied(source).splitlines()[mutant.line - 1].decode().strip()}"


def equivalent(chosen: Sequence[Mutant], checkout: Path, listed: str) -> set[str]:
    """Name the mutants that the list says to change nothing.

    Its lines are those of `changed_line`, and comments.
    """
    known = {line for line in listed.splitlines() if line and not line.startswith("#")}
    return {
        mutant.name
        for mutant in chosen
        if changed_line(mutant, (checkout / mutant.file).read_bytes()) in known
    }


def report(rows: Iterable[dict[str, Any]], total: int, equals: Container[str] = ()) -> str:
    """Say how many mutants the tests kill, by kind.

    The survivors that are not known to be equivalent are listed.
    """
    rows = list(rows)
    killed = [row for row in rows if row["status"] in ("killed", "hung")]
    left = [row for row in rows if row not in killed and row["name"] not in equals]
    share = f"{100 * len(killed) / len(rows):.0f} %" if rows else "none"
    lines = [
        f"{len(killed)} of {len(rows)} mutants killed ({share}); {total - len(rows)} not judged yet"
    ]
    for kind in KINDS:
        of_kind = [row for row in rows if row["kind"] == kind]
        lines.append(f"  {kind}: {sum(row in killed for row in of_kind)} of {len(of_kind)}")
    if len(rows) > len(killed) + len(left):
        share = f"{100 * len(killed) / (len(killed) + len(left)):.0f} %"
        lines.append(
            f"{len(rows) - len(killed) - len(left)} change nothing; of the others {share} are "
            "killed"
        )
    lines += [f"{row['status']}: {row['name']} ({row['tests']} tests)" for row in left]
    return "\n".join(lines) + "\n"


def prepared(options: argparse.Namespace, folder: Path) -> tuple[list[Copy], Reached]:
    """Copy the checkout, once a job, and learn which test reaches what.

    What the results' folder knows is not learned again.
    """
    copies = [Copy(folder / str(number), options.package) for number in range(options.jobs)]
    for copy in copies:
        shutil.copytree(options.checkout, copy.root, ignore=LEFT_OUT, symlinks=True)
    kept_file = options.results.with_suffix(".reached.json")
    if kept_file.exists():
        return copies, Reached(**json.loads(kept_file.read_text(encoding="utf-8")))
    known = reached(copies[0], options.tests.split(","), options.jobs)
    kept_file.write_text(json.dumps(asdict(known)), encoding="utf-8")
    return copies, known


def main(argv: Sequence[str] | None = None) -> int:
    """Draw, judge and report."""
    parser = argparse.ArgumentParser(
        description="Count the small changes of the numeric core that tests notice."
    )
    parser.add_argument(
        "--checkout", type=Path, default=ROOT, help="what is measured; it is not touched"
    )
    parser.add_argument(
        "--results", type=Path, default=Path("mutants.jsonl"), help="kept here; resumed from here"
    )
    parser.add_argument(
        "--package", default="src/ranktilt", help="the package's folder in the checkout"
    )
    parser.add_argument("--rooms", default=",".join(ROOMS), help="folders or files of the package")
    parser.add_argument("--tests", default="tests", help="tests to choose from")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="of tests that a mutant meets, at most"
    )
    parser.add_argument(
        "--minutes", type=float, default=60, help="stop after; the next run goes on"
    )
    options = parser.parse_args(argv)
    options.checkout = options.checkout.resolve()
    if "RANKTILT_TEST_DATA" not in os.environ:
        os.environ["RANKTILT_TEST_DATA"] = str(options.checkout.parent / "shared" / "data")
    package = options.checkout / options.package
    chosen = drawn(
        mutants(package, options.rooms.split(","), options.checkout), options.count, options.seed
    )
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies, known = prepared(options, Path(folder).resolve())
        options.minutes -= (time.monotonic() - started) / 60
        run(chosen, copies, known, options)
    rows = done(options.results)
    equals = equivalent(chosen, options.checkout, EQUIVALENT.read_text(encoding="utf-8"))
    sys.stdout.write(
        report([rows[mutant.name] for mutant in chosen if mutant.name in rows], len(chosen), equals)
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
