"""``ranktilt pairwise``: which of two documents a language model chooses, in both orders.

A *choice* is the document of a pair that the model calls more relevant. A pair has a document of
either side: the protected group, and all other groups. Choices come from a model or from a file of
stored ones. A *candidate* is a document that may be in a pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from ranktilt.cli import options
from ranktilt.cli.app import (
    INPUT,
    MODEL,
    OUTPUT,
    QUESTION,
    SELDOM,
    STATISTICS,
    UNDERSTAND,
    points,
    verb,
)
from ranktilt.cli.language_models import language_model_text
from ranktilt.cli.notes import note
from ranktilt.cli.output import PageOutput, collection_files, print_lines
from ranktilt.cli.rankers import read_rankers
from ranktilt.cli.statistics_options import margin_of_shares, statistics_settings
from ranktilt.errors import UserError, counted

if TYPE_CHECKING:
    from ranktilt.auditing.pairwise.decisions import Decisions
    from ranktilt.auditing.pairwise.pairs import DrawnPairs, TwoGroups
    from ranktilt.auditing.pairwise.result import PairwiseAudit
    from ranktilt.data.collection import Collection
    from ranktilt.data.runs.run import Run
    from ranktilt.rankers.llm.pairwise import Pairwise

_PROMPT = "pairwise-neutral"
"""Name of the default prompt."""
_PAIRS = 20
"""Pairs per query and kind by default; the kinds are relevant and not relevant documents."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ChoiceOptions:
    """The model that chooses, and the pairs that it is asked about; or a file of stored choices."""

    llm: options.LanguageModel = None
    prompt: Annotated[
        str | None,
        Parameter(
            help="pairwise-neutral, pairwise-sensitive, choice, or a file (default: the first).",
            metavar="NAME|FILE",
            group=MODEL,
        ),
    ] = None
    attribute: Annotated[
        str | None,
        Parameter(
            help="Text for {attribute} in the prompt, such as female.", metavar="TEXT", group=MODEL
        ),
    ] = None
    text: options.Text = None
    max_failures: options.MaxFailures = None
    dry_run: options.DryRun = False
    price: options.Price = None
    pairs: Annotated[
        int | None,
        Parameter(
            help="Pairs per query and kind (default: 20).",
            metavar="N",
            group=INPUT,
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None
    queries: Annotated[
        Path | None,
        Parameter(
            help="File of query ids to ask about, such as ADAPTER/held-out.txt (default: all).",
            metavar="FILE",
            group=INPUT,
        ),
    ] = None
    candidates: Annotated[
        Path | None,
        Parameter(
            help="Run whose documents to pair (default: DIR/candidates.trec, or all documents).",
            metavar="RUN",
            group=INPUT,
        ),
    ] = None
    score_order: options.ScoreOrder = None
    decisions: Annotated[
        Path | None,
        Parameter(
            help="Stored choices to use instead of a model (JSON lines).",
            metavar="FILE",
            group=INPUT,
        ),
    ] = None
    save_decisions: Annotated[
        Path | None,
        Parameter(help="Save all choices as JSON lines.", metavar="FILE", group=OUTPUT),
    ] = None

    def files(self, folder: Path) -> list[Path]:
        """Return the files that are read; `folder` is that of the collection."""
        files = (self.decisions, self._candidates_file(folder), self.queries)
        return [*collection_files(folder), *(file for file in files if file is not None)]

    def check(self, preset: str | None) -> None:
        """Refuse options that do not go together; `preset` is the value of ``--preset``."""
        if (self.llm is None) == (self.decisions is None):
            raise UserError(
                "name either a model (--llm openai:MODEL) or stored choices (--decisions FILE)"
            )
        option_of_model = options.first_typed(
            pairs=self.pairs,
            prompt=self.prompt,
            attribute=self.attribute,
            text=self.text,
            candidates=self.candidates,
            score_order=self.score_order,
            max_failures=self.max_failures,
            save_decisions=self.save_decisions,
            dry_run=self.dry_run,
            price=self.price,
            preset=preset,
        )
        if self.decisions is not None and option_of_model is not None:
            raise UserError(f"{option_of_model} asks a model; omit it with --decisions")
        if self.prompt == "pairwise-sensitive" and not self.attribute:
            raise UserError(
                "--prompt pairwise-sensitive needs an attribute, such as --attribute female"
            )

    def ranker(self, preset: str | None) -> Pairwise | None:
        """Return the ranker that asks the model; None where choices are stored.

        `preset` names a paper, whose prompt is used where none is typed.
        """
        from ranktilt.presets import preset as preset_named
        from ranktilt.rankers.llm.pairwise import Pairwise

        if self.llm is None:
            return None
        preset_options = preset_named(preset).options.get("pairwise", {}) if preset else {}
        ranker = read_rankers(
            [f"pairwise:{_without_answer_length(self.llm)}"],
            preset,
            prompt=self.prompt or preset_options.get("prompt", _PROMPT),
            attribute=self.attribute,
            text=self.text,
            max_failures=self.max_failures,
        )[0]
        # With >> the text would name several rankers, and with @ a number of documents to rank.
        if not isinstance(ranker, Pairwise) or ranker.k is not None:
            raise UserError(f"--llm expects one model, such as openai:MODEL, got {self.llm!r}")
        if not self.dry_run:
            ranker.check()
        return ranker

    def read_query_ids(self, collection: Collection) -> list[str] | None:
        """Read the queries of ``--queries``; None for all."""
        from ranktilt.data.queries import read_query_ids

        return None if self.queries is None else read_query_ids(self.queries, collection)

    def draw_pairs(
        self,
        folder: Path,
        collection: Collection,
        sides: TwoGroups,
        query_ids: Sequence[str] | None,
    ) -> DrawnPairs:
        """Draw the pairs to ask about, at random.

        Parameters
        ----------
        folder : Path
            The folder of the collection, which may hold a run of candidates.
        collection : Collection
            Queries, documents and judgments.
        sides : TwoGroups
            The group of each document.
        query_ids : sequence of str or None
            Queries to draw pairs for; None for all.
        """
        from ranktilt.auditing.pairwise.pairs import draw_pairs

        return draw_pairs(
            collection,
            sides,
            pairs=self.pairs or _PAIRS,
            seed=statistics_settings().seed,
            candidates=self._read_candidates(folder),
            queries=query_ids,
        )

    def _read_candidates(self, folder: Path) -> Run | None:
        """Return the run whose documents are paired; None for all documents."""
        from ranktilt.data.runs.run import Run

        file = self._candidates_file(folder)
        if file is None and self.score_order is not None:
            raise UserError("--score-order needs a run: --candidates RUN")
        return None if file is None else Run.load(file, score_order=self.score_order)

    def _candidates_file(self, folder: Path) -> Path | None:
        """Return the file of this run: that of ``--candidates``, or the collection's."""
        from ranktilt.data.builders import CANDIDATES

        if self.candidates is None and (folder / CANDIDATES).is_file():
            return folder / CANDIDATES
        return self.candidates


@Parameter(name="*", group=QUESTION)
@dataclass(frozen=True, kw_only=True)
class PairwiseQuestion:
    """The two groups of documents, and how choices between them are counted."""

    by: Annotated[
        str,
        Parameter(
            help="Column to group documents by (default: source).",
            metavar="COLUMN",
        ),
    ] = "source"
    protected: options.Protected = None
    count_rule: Annotated[
        Literal["both-agree", "each"],
        Parameter(
            help="Count pairs on which both orders agree (default), or each answer.", group=SELDOM
        ),
    ] = "both-agree"
    margin: Annotated[
        float | None,
        Parameter(
            help="Shares within this many points of 50 % count as level (default: 5).",
            metavar="X",
            group=STATISTICS,
            validator=Number(lte=50),
            converter=points,
        ),
    ] = None

    def audit(
        self, collection: Collection, decisions: Decisions, query_ids: Sequence[str] | None
    ) -> PairwiseAudit:
        """Compute which group is chosen more often.

        Parameters
        ----------
        collection : Collection
            Queries and documents.
        decisions : Decisions
            The choice for each pair, in both orders.
        query_ids : sequence of str or None
            Queries to count; None for all.
        """
        from ranktilt.auditing.pairwise.audit import pairwise

        statistics = statistics_settings()
        return pairwise(
            collection,
            decisions,
            queries=query_ids,
            count_rule=self.count_rule,
            margin=margin_of_shares(self.margin),
            resamples=statistics.resamples,
            seed=statistics.seed,
            correction=statistics.correction,
        )


@dataclass(frozen=True, kw_only=True)
class PairRequest:
    """Pairs of documents, and the language model that chooses one document of each."""

    collection: Collection
    """Queries and documents."""
    drawn: DrawnPairs
    """Pairs of documents, each with its query."""
    ranker: Pairwise
    """The ranker that asks the model."""

    def show_estimate(self, price: tuple[float, float] | None) -> None:
        """Show what the requests would cost.

        `price` holds the prices of a million input tokens and of a million output tokens.
        """
        from ranktilt.auditing.pairwise.ask import ask_pairs
        from ranktilt.llm.estimate import Rehearsal

        # A rehearsal counts the requests in place of sending them.
        rehearsal = Rehearsal(self.ranker.model())
        ask_pairs(self.collection, self.drawn, self.ranker, asker=rehearsal)
        print_lines(rehearsal.lines(price))

    def ask(self) -> Decisions:
        """Say how many prompts there are, and ask the model about every pair in both orders."""
        from ranktilt.auditing.pairwise.ask import ask_pairs

        frame = self.drawn.frame
        pairs = counted(frame.height, "pair", "pairs")
        queries = counted(frame["query"].n_unique(), "query", "queries")
        note(f"{pairs} of {queries}: {2 * frame.height:,} prompts")
        return ask_pairs(self.collection, self.drawn, self.ranker)


@verb(
    "pairwise",
    "pairwise DIR --llm openai:MODEL --save-decisions choices.jsonl",
    "pairwise DIR --decisions choices.jsonl --by group --protected female",
    arguments="DIR",
    panel=UNDERSTAND,
)
def pairwise(
    folder: options.Folder,
    /,
    *,
    choices: ChoiceOptions = ChoiceOptions(),
    question: PairwiseQuestion = PairwiseQuestion(),
    split: options.Split = None,
    preset: options.Preset = None,
    output: PageOutput = PageOutput(),
) -> None:
    """Show which group a language model prefers between two documents.

    It asks the model which document of a pair is more relevant, in both orders.
    """
    from ranktilt.auditing.pairwise.decision_file import read_decisions
    from ranktilt.auditing.pairwise.pairs import two_groups

    choices.check(preset)
    prices = options.read_price(choices.price, dry_run=choices.dry_run)
    output.check(*choices.files(folder), also={"--save-decisions": choices.save_decisions})
    ranker = choices.ranker(preset)
    collection = options.load_texts(folder, split)
    sides = two_groups(collection, question.by, question.protected)
    query_ids = choices.read_query_ids(collection)
    if ranker is None:
        decisions = read_decisions(str(choices.decisions), collection, sides)
    else:
        drawn = choices.draw_pairs(folder, collection, sides, query_ids)
        request = PairRequest(collection=collection, drawn=drawn, ranker=ranker)
        if choices.dry_run:
            request.show_estimate(prices)
            return
        decisions = request.ask()
    result = question.audit(collection, decisions, query_ids)
    output.deliver(result, {choices.save_decisions: decisions.contents})


def _without_answer_length(llm: str) -> str:
    """Return the text of a model without its option ``max_tokens``, the largest answer.

    The answer is a choice, whose length is known. A typed ``max_tokens`` is refused. In a section
    of ranktilt.toml, which other commands read too, it is left out with a note.
    """
    from ranktilt.spec import parse_stages

    reason = "pairwise allows as many tokens as a choice takes"
    if any("max_tokens" in stage.options for stage in parse_stages(llm)):
        raise UserError(f"--llm {llm}: omit max_tokens: {reason}")
    text = language_model_text(llm)
    (model, *later_stages) = parse_stages(text)
    if "max_tokens" not in model.options:
        return text
    note(f"--llm {llm}: max_tokens of [llm.{llm.partition('(')[0]}] is not used: {reason}")
    options_left = {name: value for name, value in model.options.items() if name != "max_tokens"}
    return ">>".join(map(str, [replace(model, options=options_left), *later_stages]))
