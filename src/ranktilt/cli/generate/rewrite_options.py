"""Options of ``ranktilt generate rewrite``: the model, the texts, and the checks of answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, MODEL, SELDOM
from ranktilt.cli.generate.options import Attempts, Limit, Side, Truncate
from ranktilt.cli.generate.pooling import draw_pool
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.generation.pooling import Pool


@Parameter(name="*", group=MODEL)
@dataclass(frozen=True, kw_only=True)
class RewriteModelOptions:
    """The model, what it is asked to write, and the price of asking it."""

    llm: options.LanguageModel = None
    prompt: Annotated[
        str,
        Parameter(
            help="paper (default), paraphrase, summarise, polish, shorten, informal, or a file "
            "with {text}.",
            metavar="NAME|FILE",
        ),
    ] = "paper"
    temperature: Annotated[
        list[Annotated[float, Parameter(validator=options.NOT_NEGATIVE)]] | None,
        Parameter(
            help="Sampling temperature (default: 0.2); each of several makes its own source.",
            metavar="T",
        ),
    ] = None
    titles: Annotated[
        Literal["keep", "rewrite", "drop"],
        Parameter(help="Keep titles (default), rewrite them or drop them."),
    ] = "keep"
    batch: options.Batch = False
    dry_run: options.DryRun = False
    price: options.Price = None


@Parameter(name="*", group=INPUT)
@dataclass(frozen=True, kw_only=True)
class TextsToRewrite:
    """The documents to rewrite."""

    split: options.Split = None
    source_to_rewrite: Side = None
    limit: Limit = None
    pool: Annotated[
        str | None,
        Parameter(
            help="Rewrite only documents that are judged or retrieved by these rankers, such as "
            "bm25,dense:minilm.",
            metavar="SPEC,...",
        ),
    ] = None
    pool_depth: Annotated[
        int | None,
        Parameter(
            help="Documents per query and ranker of the pool (default: 100).",
            metavar="K",
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None

    def check(self) -> None:
        """Refuse a depth that no ranker of a pool would read."""
        if self.pool_depth is not None and self.pool is None:
            raise UserError("--pool-depth needs a pool, such as --pool bm25")

    def draw_pool(self, collection: Collection, source: str) -> Pool | None:
        """Return the documents of a source that --pool picks; None for all of them."""
        if self.pool is None:
            return None
        return draw_pool(collection, self.pool, self.pool_depth, of=source)


@Parameter(name="*", group=SELDOM)
@dataclass(frozen=True, kw_only=True)
class AnswerChecks:
    """How often a model is asked for an answer, and which lengths are flagged."""

    attempts: Attempts = 3
    truncate: Truncate = False
    min_length_ratio: Annotated[
        float | None,
        Parameter(
            help="Flag answers with fewer than X times the words of the text.",
            metavar="X",
            validator=options.NOT_NEGATIVE,
        ),
    ] = None
    max_length_ratio: Annotated[
        float | None,
        Parameter(
            help="Flag answers with more than X times the words of the text.",
            metavar="X",
            validator=options.NOT_NEGATIVE,
        ),
    ] = None
