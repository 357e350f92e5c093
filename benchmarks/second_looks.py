"""Second looks: whole commands whose lists, vectors and facts about texts are in the cache.

Each command is timed as a user types it, start of Python included, after a first run that fills an
empty cache.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path

import generate
from common import arguments, machine, nfcorpus, publish, ranktilt, say, seconds, table, target

import ranktilt as rt

PACKAGES = ("ranktilt", "polars", "numpy", "scipy", "numba")
ROUNDS = 7


@dataclass(frozen=True, kw_only=True)
class Look:
    """A command, and how long it may take when it runs again."""

    name: str
    words: tuple[str, ...]
    at_most: float
    """Most seconds of the second run."""


def looks(collection: str, page: str, *, quick: bool) -> list[Look]:
    """Return the commands to time."""
    lexical = ("audit", collection, "-r", "bm25", "--quiet")
    commands = [
        Look(name="audit -r bm25", words=lexical, at_most=1.5),
        Look(name="audit -r bm25 -o page.html", words=(*lexical, "-o", page), at_most=3.0),
        Look(name="demo", words=("demo", "--quiet"), at_most=2.5),
    ]
    if quick:
        return commands
    dense = ("audit", collection, "-r", "dense:minilm", "--quiet")
    return [*commands, Look(name="audit -r dense:minilm", words=dense, at_most=1.5)]


def section(collection: Path, data_name: str, page: Path, *, quick: bool) -> str:
    """Time every command again and again, in turn; the first run of each is shown apart."""
    commands = looks(str(collection), str(page), quick=quick)
    first = dict[str, float]()
    for look in commands:
        say(f"first {look.name}")
        first[look.name] = ranktilt(*look.words)
    later: dict[str, list[float]] = {look.name: [] for look in commands}
    for _ in range(1 if quick else ROUNDS):
        for look in commands:
            later[look.name].append(ranktilt(*look.words))
    rows, targets = [], []
    for look in commands:
        again = statistics.median(later[look.name])
        rows.append([f"`{look.name}`", seconds(first[look.name]), seconds(again)])
        targets.append(target(f"`{look.name}` again", again, at_most=look.at_most, unit=" s"))
    return "\n".join(
        [
            f"## Second looks: {data_name}",
            "",
            machine(PACKAGES),
            "",
            f"Seconds; the second column is the median of {1 if quick else ROUNDS}:",
            "",
            table(["whole command", "first run", "again"], rows),
            "",
            *targets,
        ]
    )


def main() -> None:
    """Measure and write the section."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    args: argparse.Namespace = arguments(__doc__.splitlines()[0]).parse_args()
    data = None if args.quick else nfcorpus()
    with tempfile.TemporaryDirectory() as temporary:
        os.environ["RANKTILT_CACHE"] = str(Path(temporary) / "cache")
        collection, data_name = data, "NFCorpus, human and rewritten documents"
        if collection is None:
            collection, data_name = Path(temporary) / "collection", "a tiny generated collection"
            small = generate.Size(pairs=12, queries=6, words=30, vocabulary=500)
            rt.save(generate.collection(small), collection)
        page = Path(temporary) / "page.html"
        text = section(collection, data_name, page, quick=data is None)
        publish("second-looks", text, args)


if __name__ == "__main__":
    main()
