"""``ranktilt data build fair-ranking``: lists of equal length for a group audit, from documents with labels."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ranktilt.cli import options
from ranktilt.cli.notes import note
from ranktilt.cli.output import check_paths, print_lines
from ranktilt.errors import UserError
from ranktilt.option import Option

if TYPE_CHECKING:
    from ranktilt.generation.fair_ranking import FairRanking, ListRules

CANDIDATES, INITIAL, ABOUT = "candidates.trec", "initial.trec", "built.json"
_NATURAL = "natural"


@dataclass(frozen=True)
class GroupOptions(options.OptionGroup):
    """Which documents are of which group."""

    panel = "Question"

    protected: Annotated[str, Option("Protected group: female, Europe|Asia, or non-Europe.", "GROUP")]
    by: Annotated[str | None, Option("Column that groups documents (default: the only one left).", "COLUMN")] = None


@dataclass(frozen=True)
class DrawingOptions(options.OptionGroup):
    """How each query's items are drawn."""

    panel = "Question"

    items: Annotated[int, Option("Items per query.", "N", min=2)] = 200
    blocks: Annotated[
        str,
        Option(
            "Items that are relevant (unprotected, protected) and irrelevant (the same); or natural shares.",
            "N,N,N,N",
        ),
    ] = _NATURAL
    min_judged: Annotated[
        int | None, Option("Minimum relevant documents per query (default: --items).", "N", min=1)
    ] = None
    seed: options.Seed = 0

    def read(self) -> ListRules:
        from ranktilt.generation.fair_ranking import ListRules

        blocks = _read_blocks(self.blocks)
        return ListRules(items=self.items, blocks=blocks, min_judged=self.min_judged, seed=self.seed)


def _read_blocks(text: str) -> tuple[int, int, int, int] | None:
    if text.strip() == _NATURAL:
        return None
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 4 or not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise UserError(f"--blocks expects four numbers, such as 50,50,50,50, or {_NATURAL}; got {text!r}")
    a, b, c, d = map(int, parts)
    return a, b, c, d


@options.verb(
    "data build fair-ranking irds:trec-fair/2022/train --protected female --by gender -o DIR",
    'data build fair-ranking labelled.csv --protected "Europe|Asia" --items 100 -o DIR',
)
def fair_ranking(
    source: Annotated[
        str, typer.Argument(metavar="FILE", help="A CSV of TREC Fair, or irds:ID, such as irds:trec-fair/2022/train.")
    ],
    output: options.Destination,
    *,
    groups: GroupOptions,
    drawing: DrawingOptions,
) -> None:
    """Build lists of relevant and irrelevant items of two groups, for every ranker to order."""
    from ranktilt.datasets.save import save
    from ranktilt.datasets.trec_fair import read_labelled
    from ranktilt.generation.fair_ranking import build_fair_ranking, summary

    check_paths({"--output": output / CANDIDATES})
    rules, protected = drawing.read(), groups.protected.strip()
    built = build_fair_ranking(read_labelled(source, groups.by), protected, rules)
    save(built.collection, output, beside=_beside(built))
    print_lines(summary(built, protected))
    note(f"{output}: {built.collection!r}")
    note(
        f"{CANDIDATES}: shuffled, for rankers to order; {INITIAL}: unprotected ones first, the paper's initial ranking"
    )
    lone = built.counts["queries_with_a_group_below_2"]
    if lone:
        note(f"warning: {lone} lists have fewer than 2 items of a group; their exposure ratio says little, or nothing")
    _note_next(built, output, protected)


def _beside(built: FairRanking) -> dict[str, bytes]:
    """The candidates in both orders, and what the folder was made from."""
    import orjson

    from ranktilt.io.files import sha256

    made = {**built.candidates.contents(Path(CANDIDATES)), **built.initial.contents(Path(INITIAL))}
    spec = built.collection.spec
    about = {**spec, "files": {Path(file).name: sha256(Path(file)) for file in spec.get("files", ())}}
    written = orjson.dumps(about, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE, default=str)
    return {**{str(path): data for path, data in made.items()}, ABOUT: written}


def _note_next(built: FairRanking, output: Path, protected: str) -> None:
    by = str(built.collection.spec["by"])
    candidates = f"replay:{output / CANDIDATES}"
    measures = ["-m", "P@20", "-m", f"ExposureRatio@{built.counts['items']}"]
    command = ["ranktilt", "audit", str(output), "--by", by, "--protected", protected, *measures]
    note(f"Next: {shlex.join([*command, '-r', candidates, '-r', f'{candidates}>>bm25'])}")
