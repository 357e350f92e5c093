"""Estimate what the prompts of a design would cost.

A *design* says in which combinations of factors each document is written; a *factor* is a property
of a text that a prompt or a rule changes. A factor's *step* is its place in the order in which
factors are applied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ranktilt.data.collection import Collection
from ranktilt.generation.estimate import CostEstimate, estimate
from ranktilt.generation.rewrite.prepare import prepare_rewrites
from ranktilt.generation.versions.factors import Factor
from ranktilt.generation.versions.options import Crossing
from ranktilt.generation.versions.writer import VersionWriter, collection_of_texts
from ranktilt.llm.base import LLM


@dataclass(frozen=True, kw_only=True)
class PromptPrice:
    """The cost of a prompt, for all texts that it is used with."""

    name: str
    """Name of the factor that the prompt changes; ``judge`` for grades."""
    prompt: str
    """Name or file of the prompt."""
    texts: int
    """Number of texts to ask for, or of pairs of a query and a text to grade."""
    estimate: CostEstimate
    """The cost if each document, as it is now, is asked for once."""
    multiplier: float
    """Number by which `estimate` is multiplied to get the cost of all texts."""

    @property
    def tokens_in(self) -> int:
        """Number of tokens to read, over all texts."""
        return round(self.multiplier * self.estimate.tokens_in)

    @property
    def tokens_out(self) -> int:
        """Number of tokens to write, over all texts."""
        return round(self.multiplier * self.estimate.tokens_out)

    @property
    def price(self) -> float | None:
        """Price of all texts; None where the price of tokens is not given."""
        return None if self.estimate.price is None else self.multiplier * self.estimate.price


def price_versions(
    collection: Collection,
    factors: Sequence[Factor],
    crossing: Crossing,
    llm: LLM,
    **options: Any,
) -> list[PromptPrice]:
    """Estimate the cost of each prompt, without asking the model.

    A later prompt gets texts that an earlier one wrote, whose lengths are not known yet. So every
    prompt is priced with the original texts, once each, and that price is multiplied to the number
    of versions.

    Parameters
    ----------
    collection : Collection
        The collection whose documents get versions.
    factors : sequence of Factor
        The factors of the design; those without a prompt cost nothing.
    crossing : Crossing
        Design, documents and sampling of the model.
    llm : LLM
        The model.
    **options
        Further arguments of `ranktilt.generation.estimate.estimate`, such as ``price``.
    """
    writer = VersionWriter.from_collection(collection, factors, crossing)
    prices = []
    for step, factor in enumerate(writer.order):
        versions = writer.versions_of_step(step)
        if factor.by != "model" or not versions:
            continue
        rows = sorted({row for row, _factors in versions})
        texts = collection_of_texts(writer.texts[row, ()] for row in rows)
        rewriting = crossing.rewriting(prompt=factor.prompt, source=factor.name)
        cost = estimate(prepare_rewrites(texts, llm, rewriting), llm, **options)
        prices.append(
            PromptPrice(
                name=factor.name,
                prompt=factor.prompt,
                texts=len(versions),
                estimate=cost,
                # Documents without a text are not asked for.
                multiplier=len(versions) / max(cost.documents - cost.empty, 1),
            )
        )
    return prices
