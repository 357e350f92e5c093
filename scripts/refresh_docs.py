"""Run README and the pages of docs/ from top to bottom, and bring the output that they show up to date.

    python scripts/refresh_docs.py                        # every page
    python scripts/refresh_docs.py docs/measures/ndcg.md  # these

The blocks of a page run in order in one empty folder: `python` blocks as programs of their own, the
`$` lines of `console` blocks in a shell. What they print is compared with what the page shows: the
lines below a command, and a `text` block right below a `python` block. A line `...` stands for any
lines; where nothing is shown, nothing is compared. A command must succeed unless its line ends in a
comment such as `# exit 1`. Not run are blocks with `<!-- no-test: reason -->` above and lines that
end in `# planned`. `../shared/data` is the folder of shared data sets; lines that name it are not
run where it is absent.
"""

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHARED = "../shared/data"
DATA = Path(os.environ.get("RANKTILT_TEST_DATA") or ROOT / SHARED)
GAP = "..."
WIDTH = 116
FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)
NO_TEST = re.compile(r"<!--\s*no-test:\s*(.+?)\s*-->\s*\Z")
EXIT = re.compile(r"#.*\bexit (\d+)\s*\Z")
NUMBER = re.compile(r"[+−-]?\d*[.,]?\d+(?:[.,]\d+)*")
SECONDS = 300
ALIKE = 0.6


class Mistake(Exception):
    """A page that does not hold what it says, in one message with its place."""


@dataclass(frozen=True)
class Block:
    """One fenced block: where it starts, its language, its text.

    A block that is not run says why; the reason of others is empty.
    """

    location: str
    language: str
    text: str
    untested: str
    start: int = 0
    """Where its text begins on the page."""


@dataclass(frozen=True)
class Step:
    """Something to run, and the part of the page that shows what it printed."""

    location: str
    argv: tuple[str, ...]
    code: int
    """Exit status that the page states."""
    output: slice
    """Empty where the page shows nothing."""


def blocks(text: str, file: str) -> list[Block]:
    """List the fenced blocks of a page."""
    blocks_of_text = []
    for match in FENCE.finditer(text):
        before = text[: match.start()]
        reason = NO_TEST.search(before)
        location = f"{file}:{before.count(chr(10)) + 1}"
        blocks_of_text.append(
            Block(location, match[1], match[2], reason[1] if reason else "", match.start(2))
        )
    return blocks_of_text


def steps(text: str, file: str) -> Iterator[Step]:
    """List what a page runs, in order."""
    blocks_of_text = blocks(text, file)
    for block, after in zip(blocks_of_text, [*blocks_of_text, None][1:], strict=True):
        end = block.start + len(block.text)
        if block.untested:
            continue
        if block.language == "python":
            printed = slice(end, end)
            if (
                after
                and after.language == "text"
                and not text[end : after.start].replace("```text", "").strip("`\n")
            ):
                printed = slice(after.start, after.start + len(after.text))
            yield Step(
                block.location, (sys.executable, "-W", "error", "-c", block.text), 0, printed
            )
        elif block.language == "console":
            yield from _commands(block)


def _commands(block: Block) -> Iterator[Step]:
    lines = block.text.splitlines(keepends=True)
    starts = list(accumulate(map(len, lines), initial=block.start))
    numbers = [i for i, line in enumerate(lines) if line.startswith("$ ")]
    first_line = int(block.location.rpartition(":")[2])
    code = 0
    for number, following in zip(numbers, [*numbers[1:], len(lines)], strict=True):
        last = number
        while lines[last].endswith("\\\n"):
            last += 1
        command = "".join(lines[number : last + 1])[2:].rstrip("\n")
        if command.endswith("# planned") or (SHARED in command and not DATA.is_dir()):
            continue
        before, code = code, int(stated[1]) if (stated := EXIT.search(command)) else 0
        location = f"{block.location.rpartition(':')[0]}:{first_line + 1 + number}"
        # A subshell first, so that `$?` is the status of the command above.
        argv = ("/bin/sh", "-c", f"(exit {before})\n{command}")
        yield Step(location, argv, code, slice(starts[last + 1], starts[following]))


def refreshed(text: str, file: str, folder: Path) -> str:
    """Run a page in an empty folder below `folder`, and return it with what it prints now.

    Raises
    ------
    Mistake
        If something ends with another exit status than stated, or prints lines of another kind than
        shown.
    """
    parts, done = [], 0
    here = folder / "page"
    here.mkdir(exist_ok=True)
    if SHARED in text and DATA.is_dir():
        (folder / "shared").mkdir()
        (folder / "shared" / "data").symlink_to(DATA.resolve(), target_is_directory=True)
    for step in steps(text, file):
        printed = output(step, here)
        page_text = text[step.output]
        if page_text.strip():
            parts += [text[done : step.output.start], brought_up(page_text, printed, step.location)]
            done = step.output.stop
    return "".join([*parts, text[done:]])


def output(step: Step, folder: Path) -> list[str]:
    """Run one step, and return the lines that it prints.

    Stderr only where it ends with 2, an error.
    """
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    env = {**os.environ, "PATH": path, "PYTHONUTF8": "1", "NO_COLOR": "1", "HF_HUB_OFFLINE": "1"}
    ended = subprocess.run(
        step.argv,
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        encoding="utf-8",
        timeout=SECONDS,
    )
    if ended.returncode != step.code:
        difference = f"expected exit {step.code}, got {ended.returncode}"
        raise Mistake(f"{step.location}: {difference}\n{ended.stdout}{ended.stderr}")
    return (ended.stdout + (ended.stderr if step.code == 2 else "")).splitlines()


def brought_up(page_text: str, printed: Sequence[str], location: str) -> str:
    """Put what was printed in place of what is shown.

    What is shown may leave out lines and hold other numbers.
    """
    out, at = [], 0
    pieces = _pieces(page_text.splitlines())
    for number, piece in enumerate(pieces):
        if piece == [GAP]:
            out.append(GAP)
            continue
        anchored = number == 0, number == len(pieces) - 1
        match = _find(piece, printed, at, anchored)
        if match is None:
            lines = "\n".join(piece)
            everything = "\n".join(printed)
            raise Mistake(
                f"{location}: shows lines that are not printed:\n{lines}\nprinted is:\n{everything}"
            )
        out += [line for printed_line in printed[match] for line in _wrapped(printed_line)]
        at = match.stop
    return "\n".join(_trimmed(out)) + "\n"


def _pieces(lines: Sequence[str]) -> list[list[str]]:
    """Runs of lines, and `[GAP]` between them; blank lines around all of it do not count."""
    pieces: list[list[str]] = []
    for line in _trimmed(lines):
        if line.strip() == GAP or not pieces or pieces[-1] == [GAP]:
            pieces.append([])
        pieces[-1].append(line.strip() if line.strip() == GAP else line)
    return pieces


def _trimmed(lines: Sequence[str]) -> list[str]:
    full = [i for i, line in enumerate(lines) if line.strip()]
    return list(lines[full[0] : full[-1] + 1]) if full else []


def _find(
    piece: Sequence[str], printed: Sequence[str], at: int, anchored: tuple[bool, bool]
) -> slice | None:
    """Lines that read as a piece does, with any numbers; the same numbers before others."""
    first, last = anchored
    for words in (str.split, _without_numbers):
        wanted_words = words(" ".join(piece))
        for start in range(at, len(printed)):
            above = printed[at:start]
            if first and any(line.strip() for line in above):
                break
            if not printed[start].strip():
                continue
            for stop in range(start + 1, len(printed) + 1):
                printed_words = words(" ".join(printed[start:stop]))
                if printed_words == wanted_words and not (
                    last and any(line.strip() for line in printed[stop:])
                ):
                    return slice(start, stop)
                if len(printed_words) > len(wanted_words):
                    break
    return _closest(piece, printed, at, anchored)


def _closest(
    piece: Sequence[str], printed: Sequence[str], at: int, anchored: tuple[bool, bool]
) -> slice | None:
    """As many lines that read much like a piece, where its words have changed.

    All to the end that it stands at.
    """
    full = [i for i in range(at, len(printed)) if printed[i].strip()]
    starts, stops = full, [i + 1 for i in full]
    if anchored[0]:
        starts = starts[:1]
    if anchored[1]:
        stops = stops[-1:]
    wanted_words = _without_numbers(" ".join(piece))
    spans = {
        _likeness(wanted_words, printed[start:stop]): slice(start, stop)
        for start in starts
        for stop in stops
        if start < stop and (anchored != (False, False) or stop <= start + len(piece))
    }
    best = max(spans, default=0.0)
    return spans[best] if best >= ALIKE else None


def _likeness(wanted_words: Sequence[str], lines: Sequence[str]) -> float:
    return difflib.SequenceMatcher(
        None, wanted_words, _without_numbers(" ".join(lines)), autojunk=False
    ).ratio()


def _without_numbers(text: str) -> list[str]:
    return NUMBER.sub("#", text).replace("= #", "#").replace("< #", "#").split()


def _wrapped(line: str) -> list[str]:
    """Break a long sentence over lines; a row of a table stays whole."""
    sentence = line.lstrip(" ")
    indent = line[: len(line) - len(sentence)]
    if (
        len(line) <= WIDTH
        or "  " in sentence
        or sentence.startswith("|")
        or len(indent) > WIDTH // 4
    ):
        return [line]
    joined = sentence.replace(" %", "\N{NO-BREAK SPACE}%")
    lines = textwrap.wrap(
        joined,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [text.replace("\N{NO-BREAK SPACE}", " ") for text in lines]


def pages() -> list[Path]:
    """List README and the pages of docs/, without those that the site makes of ``--help``."""
    docs = ROOT / "docs"
    of_docs = (page for page in docs.rglob("*.md") if page.parent != docs / "reference" / "cli")
    return [ROOT / "README.md", *sorted(of_docs)]


def main(argv: Sequence[str] | None = None) -> int:
    """Refresh pages in place; exit status 1 where one cannot be."""
    parser = argparse.ArgumentParser(
        description="Bring the output that README and the pages of docs/ show up to date."
    )
    parser.add_argument(
        "pages", nargs="*", type=Path, help="pages; README and all of docs/ by default"
    )
    wrong = 0
    for page in parser.parse_args(argv).pages or pages():
        text = page.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            try:
                new = refreshed(text, os.path.relpath(page, ROOT), Path(folder))
            except Mistake as mistake:
                wrong += 1
                print(f"{mistake}\n", file=sys.stderr)
                continue
        if new != text:
            page.write_text(new, encoding="utf-8")
            print(f"refreshed {page}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
