"""Requests that the language models of rankers would get, and their price.

A *rehearsal* ranks without asking the model, and counts the requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ranktilt.cli.output import print_result
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.rankers.base import Ranker


def print_estimates(
    rankers: Sequence[Ranker], collection: Collection, price: tuple[float, float] | None
) -> None:
    """Print how many requests each ranker would send to its language model, and their price.

    `price` holds the prices of a million input tokens and of a million output tokens.
    """
    estimates: list[str] = []
    for ranker in rankers:
        estimates += _estimates(ranker, collection, price)
    if not estimates:
        raise UserError("--dry-run needs a ranker that asks a language model")
    print_result("\n".join(estimates))


def _estimates(
    ranker: Ranker, collection: Collection, price: tuple[float, float] | None
) -> Iterator[str]:
    """Yield a block of lines for each stage that asks a model; the other stages rank for it."""
    from ranktilt.rankers.base import stages_of
    from ranktilt.rankers.llm.base import LLMRanker

    stages = stages_of(ranker)
    llm_indices = [index for index, stage in enumerate(stages) if isinstance(stage, LLMRanker)]
    stages_to_run = stages[: llm_indices[-1] + 1] if llm_indices else ()
    # The requests of a stage are certain unless they depend on answers to an earlier stage.
    run, is_certain = None, True
    for number, stage in enumerate(stages_to_run, start=1):
        if not isinstance(stage, LLMRanker):
            run = stage.rank(collection, run)
            continue
        run, rehearsal = stage.rehearse(collection, run, certain=is_certain)
        is_certain = rehearsal.certain
        lines = [f"  {name:<10}  {text}\n" for name, text in rehearsal.lines(price)]
        yield ">>".join(map(repr, stages[:number])) + "\n" + "".join(lines)
