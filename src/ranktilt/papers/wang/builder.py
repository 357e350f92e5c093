"""``data build fair-ranking``: a folder of lists of two groups' items, for rankers to order.

An *item* is a document of a query's list. One group of documents is *protected*, such as female
authors, and is compared with all others. A *block* is the items of a list with the same relevance
and the same group.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson

from ranktilt.data.builders import CANDIDATES, FOLDER, BuiltCollection
from ranktilt.data.files import sha256
from ranktilt.data.notes.base import Remark
from ranktilt.errors import UserError
from ranktilt.field_checks import require_seed
from ranktilt.papers.wang.fair_ranking import FairRanking, ListRules, build_fair_ranking, summary
from ranktilt.papers.wang.trec_fair import read_labelled

INITIAL, ABOUT = "initial.trec", "built.json"
"""Names of two files: the paper's initial ranking, and the inputs and options of the folder."""
_NATURAL = "natural"
"""Option that leaves the groups' shares as they are."""


def fair_ranking(
    source: str,
    *,
    protected: str,
    by: str | None = None,
    items: int = 200,
    blocks: str = _NATURAL,
    seed: int = 0,
) -> BuiltCollection:
    """Build lists of relevant and irrelevant items from two groups, for any ranker to order.

    Parameters
    ----------
    source : str
        A CSV file of TREC Fair, or irds:ID, such as irds:trec-fair/2022/train.
    protected : str
        Protected group: female, Europe|Asia, or non-Europe.
    by : str, optional
        Column to group documents by (default: the only one left).
    items : int
        Items per query.
    blocks : str
        Numbers of relevant items (unprotected, protected) and of irrelevant ones (in the same
        order), such as 50,50,50,50; or natural, for natural shares.
    seed : int
        Random seed of the items.
    """
    require_seed(seed)
    rules = ListRules(items=items, blocks=_read_blocks(blocks), seed=seed)
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


def _notes(built: FairRanking) -> Iterator[Remark]:
    """Yield remarks on the lists: their order, and lists with fewer than 2 items of a group."""
    order = (
        f"{CANDIDATES}: shuffled, for rankers to order; {INITIAL}: unprotected ones first, the "
        "paper's initial ranking"
    )
    yield Remark(text=order)
    small_group_count = built.counts["queries_with_a_group_below_2"]
    if small_group_count:
        words = (
            f"{small_group_count} lists have fewer than 2 items of a group; their exposure ratio "
            "says little, or nothing"
        )
        yield Remark(severity="warning", text=words)


def _read_blocks(text: str) -> tuple[int, int, int, int] | None:
    """Read the sizes of the four blocks, in the order of `BLOCKS`; None for natural shares."""
    if text.strip() == _NATURAL:
        return None
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 4 or not all(map(_is_small_number, parts)):
        raise UserError(
            f"--blocks expects four numbers, such as 50,50,50,50, or {_NATURAL}; got {text!r}"
        )
    relevant_unprotected, relevant_protected, unprotected, protected = map(int, parts)
    return relevant_unprotected, relevant_protected, unprotected, protected


def _is_small_number(text: str) -> bool:
    """Tell whether a text is a whole number of less than ten digits."""
    return text.isascii() and text.isdigit() and len(text) < 10


def _files(built: FairRanking) -> dict[str, bytes]:
    """Return the candidates in both orders, and the record of inputs and options."""
    runs = {
        **built.candidates.contents(Path(CANDIDATES)),
        **built.initial.contents(Path(INITIAL)),
    }
    spec = built.collection.spec
    hashes = {Path(file).name: sha256(Path(file)) for file in spec.get("files", ())}
    layout = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    about = orjson.dumps({**spec, "files": hashes}, option=layout, default=str)
    files = {str(path): data for path, data in runs.items()}
    return {**files, ABOUT: about}
