"""Prices of the prompts of ``ranktilt generate versions``, for ``--dry-run``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ranktilt.cli.generate.summaries import write_summary
from ranktilt.cli.output import print_lines
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.generation.versions.prices import PromptPrice


@dataclass(frozen=True, kw_only=True)
class VersionsPrice:
    """The price of each prompt: those of factors, and that of the judge."""

    prompts: Sequence[PromptPrice]
    """Price of each factor's prompt."""
    judge: PromptPrice | None
    """Price of grading."""

    @property
    def rows(self) -> list[PromptPrice]:
        """Prices of all prompts, that of the judge last."""
        return [*self.prompts, *([] if self.judge is None else [self.judge])]

    @property
    def total(self) -> float | None:
        """The sum of all prices; None where no price is known."""
        prices = [row.price for row in self.rows if row.price is not None]
        return sum(prices) if prices else None

    def to_dict(self) -> dict[str, Any]:
        """Return the content of the summary, which is saved as JSON."""
        factors = [{"factor": prompt.name, **_price_content(prompt)} for prompt in self.prompts]
        content: dict[str, Any] = {"factors": factors, "price": self.total}
        if self.judge is not None:
            content["judge"] = _price_content(self.judge)
        return content

    def deliver(self, json: str | None) -> None:
        """Print the price of each prompt and their sum, and write the summary into `json`."""
        if not self.rows:
            raise UserError("nothing to price: rules make every factor")
        write_summary(self.to_dict(), json)
        if json != "-":
            hint = "give one with --price IN,OUT per million tokens"
            total = hint if self.total is None else f"{self.total:,.2f}"
            print_lines([*map(_price_line, self.rows), ("price", total)])


def _price_content(row: PromptPrice) -> dict[str, Any]:
    """Return the content of the summary about one prompt."""
    return {
        "prompt": row.prompt,
        "texts": row.texts,
        "tokens_in": row.tokens_in,
        "tokens_out": row.tokens_out,
        "price": row.price,
        "documents": row.estimate.to_dict(),
    }


def _price_line(row: PromptPrice) -> tuple[str, str]:
    """Return the name of a prompt, and a line with its texts, tokens and price."""
    unit = "pairs" if row.estimate.noun == "pair" else "texts"
    tokens = f"{row.tokens_in:,} tokens in, {row.tokens_out:,} out"
    price = "" if row.price is None else f", price {row.price:,.2f}"
    return row.name, f"{row.texts:,} {unit}, {tokens}{price}"
