"""``ranktilt tools plan``: what an audit of a larger collection would cost."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated

from ranktilt.cli import options
from ranktilt.cli.output import PageOutput, collection_files
from ranktilt.errors import UserError, shorten
from ranktilt.option import Option

_COUNT = re.compile(r"(\d+(?:\.\d+)?)([kKmMgG]?)")
_POWERS = {"": 0, "k": 3, "m": 6, "g": 9}
_LONGEST = 15


@dataclass(frozen=True)
class _Planned(options.OptionGroup):
    """What is planned for, and how it is measured."""

    panel = "Question"

    target_documents: Annotated[
        str | None, Option("Documents to plan for, such as 8.8M (default: those of DIR).", "N")
    ] = None
    target_queries: Annotated[str | None, Option("Queries to plan for, such as 7k (default: those of DIR).", "N")] = (
        None
    )
    seconds: Annotated[float, Option("About how long to measure.", "N", min=1)] = 60.0
    seed: options.Seed = 0


@options.verb(
    "tools plan DIR --target-documents 8.8M --target-queries 7k",
    "tools plan DIR -r bm25 -r dense:minilm --target-documents 8.8M --target-queries 7k",
)
def plan(
    folder: options.AnyCollection,
    *,
    ranker: options.Rankers = None,
    planned: _Planned,
    split: options.Split = None,
    ignore_unknown: options.IgnoreUnknown = False,
    search: options.SearchOptions,
    output: PageOutput,
) -> None:
    """Say what an audit of a larger collection would cost: measured on a sample of this one, and extrapolated."""
    from ranktilt.datasets.load import load
    from ranktilt.planning.plan import plan as run_plan

    output.check(*collection_files(folder))
    rankers = search.rankers(ranker or ["bm25"])
    how = {
        **vars(planned),
        "documents": read_count(planned.target_documents, "--target-documents"),
        "queries": read_count(planned.target_queries, "--target-queries"),
    }
    collection = load(folder, split=split, ignore_unknown=ignore_unknown)
    output.deliver(run_plan(collection, rankers, **how))


def read_count(text: str | None, option: str) -> int | None:
    """Read a number of things, such as ``8.8M``, ``7k`` or ``100000``; None for None."""
    if text is None:
        return None
    match = _COUNT.fullmatch(text.strip())
    number = float(match[1]) * 10 ** _POWERS[match[2].lower()] if match and len(text) <= _LONGEST else 0.0
    if number < 1:
        raise UserError(f"{option}: expected a number of at least 1, such as 100000, 7k or 8.8M; got {shorten(text)}")
    return round(number)
