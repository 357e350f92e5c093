"""``data build fair-ranking``: lists of two groups' items for every ranker to order, as a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import orjson

from ranktilt.datasets.builders import CANDIDATES, FOLDER, BuiltCollection
from ranktilt.errors import UserError
from ranktilt.io.files import sha256
from ranktilt.option import Option
from ranktilt.papers.wang.fair_ranking import FairRanking, ListRules, build_fair_ranking, summary
from ranktilt.papers.wang.trec_fair import read_labelled

INITIAL, ABOUT = "initial.trec", "built.json"
_NATURAL = "natural"


def fair_ranking(
    source: Annotated[
        str, Option("A CSV of TREC Fair, or irds:ID, such as irds:trec-fair/2022/train.", "FILE")
    ],
    *,
    protected: Annotated[
        str, Option("Protected group: female, Europe|Asia, or non-Europe.", "GROUP")
    ],
    by: Annotated[
        str | None, Option("Column that groups documents (default: the only one left).", "COLUMN")
    ] = None,
    items: Annotated[int, Option("Items per query.", "N", min=2)] = 200,
    blocks: Annotated[
        str,
        Option(
            "Items that are relevant (unprotected, protected) and irrelevant (the same); or natural shares.",
            "N,N,N,N",
        ),
    ] = _NATURAL,
    min_judged: Annotated[
        int | None, Option("Minimum relevant documents per query (default: --items).", "N", min=1)
    ] = None,
    seed: Annotated[int, Option("Random seed.", "N", min=0, panel="Statistics")] = 0,
) -> BuiltCollection:
    """Build lists of relevant and irrelevant items of two groups, for every ranker to order."""
    rules = ListRules(items=items, blocks=_read_blocks(blocks), min_judged=min_judged, seed=seed)
    group = protected.strip()
    built = build_fair_ranking(read_labelled(source, by), group, rules)
    candidates = f"replay:{FOLDER}/{CANDIDATES}"
    groups = ("--by", str(built.collection.spec["by"]), "--protected", group)
    measures = ("-m", "P@20", "-m", f"ExposureRatio@{built.counts['items']}")
    rankers = ("-r", candidates, "-r", f"{candidates}>>bm25")
    return BuiltCollection(
        collection=built.collection,
        files=_files(built),
        summary=tuple(summary(built, group)),
        notes=tuple(_notes(built)),
        next_command=("audit", FOLDER, *groups, *measures, *rankers),
    )


def _notes(built: FairRanking) -> Iterator[str]:
    yield (
        f"{CANDIDATES}: shuffled, for rankers to order; {INITIAL}: unprotected ones first, the "
        "paper's initial ranking"
    )
    lone = built.counts["queries_with_a_group_below_2"]
    if lone:
        yield (
            f"warning: {lone} lists have fewer than 2 items of a group; their exposure ratio says "
            "little, or nothing"
        )


def _read_blocks(text: str) -> tuple[int, int, int, int] | None:
    if text.strip() == _NATURAL:
        return None
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 4 or not all(
        part.isascii() and part.isdigit() and len(part) < 10 for part in parts
    ):
        raise UserError(
            f"--blocks expects four numbers, such as 50,50,50,50, or {_NATURAL}; got {text!r}"
        )
    a, b, c, d = map(int, parts)
    return a, b, c, d


def _files(built: FairRanking) -> dict[str, bytes]:
    """The candidates in both orders, and what the folder was made from."""
    runs = {
        **built.candidates.contents(Path(CANDIDATES)),
        **built.initial.contents(Path(INITIAL)),
    }
    spec = built.collection.spec
    hashes = {Path(file).name: sha256(Path(file)) for file in spec.get("files", ())}
    layout = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    about = orjson.dumps({**spec, "files": hashes}, option=layout, default=str)
    return {**{str(path): data for path, data in runs.items()}, ABOUT: about}
