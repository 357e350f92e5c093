"""Estimate what the prompts of a design would cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ranktilt.data.collection import Collection
from ranktilt.generation.estimate import CostEstimate, estimate
from ranktilt.generation.rewrite.prepare import prepare_rewrites
from ranktilt.generation.versions.factors import Factor
from ranktilt.generation.versions.options import Crossing
from ranktilt.generation.versions.writer import VersionWriter, bare_texts
from ranktilt.llm.base import LLM


@dataclass(frozen=True, kw_only=True)
class PromptPrice:
    """The cost of a prompt."""

    name: str
    """The factor; ``judge`` for grades."""
    prompt: str
    """Name or file of the prompt."""
    texts: int
    """Number of texts, or of pairs of a query and a text, that it is asked for."""
    estimate: CostEstimate
    """The cost for the documents as they are."""
    times: float
    """Factor from that estimate to all texts."""

    @property
    def tokens_in(self) -> int:
        """Tokens read, over all texts."""
        return round(self.times * self.estimate.tokens_in)

    @property
    def tokens_out(self) -> int:
        """Tokens written, over all texts."""
        return round(self.times * self.estimate.tokens_out)

    @property
    def price(self) -> float | None:
        """Price of all texts; None where the price of tokens is not given."""
        return None if self.estimate.price is None else self.times * self.estimate.price


def price_versions(
    collection: Collection,
    factors: Sequence[Factor],
    crossing: Crossing,
    llm: LLM,
    **options: Any,
) -> list[PromptPrice]:
    """Estimate the cost of each prompt, without asking the model.

    The documents as they are are priced, once each, and multiplied by the number of versions: what
    an earlier prompt would make of them is not known yet. `options` are those of `estimate`.
    """
    writer = VersionWriter.from_collection(collection, factors, crossing)
    prices = []
    for step, factor in enumerate(writer.order):
        if factor.by != "model":
            continue
        versions = writer.versions_of_step(step)
        rows = sorted({row for row, _ in versions})
        texts = bare_texts(writer.texts[row, ()] for row in rows)
        rewriting = crossing.rewriting(prompt=factor.prompt, source=factor.name)
        cost = estimate(prepare_rewrites(texts, llm, rewriting), llm, **options)
        prices.append(
            PromptPrice(
                name=factor.name,
                prompt=factor.prompt,
                texts=len(versions),
                estimate=cost,
                times=len(versions) / max(cost.documents - cost.empty, 1),
            )
        )
    return prices
