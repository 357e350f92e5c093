"""Options of ``ranktilt cite --llm``: the model that answers, and the documents that it reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from ranktilt.citing.making.settings import AnswerMaking
from ranktilt.cli import options
from ranktilt.cli.app import MODEL, OUTPUT, QUESTION, SELDOM
from ranktilt.cli.statistics_options import statistics_settings
from ranktilt.errors import UserError

_ShownLabel = Literal["none", "true", "swapped"]
"""The author that a prompt names for a document: none, its own, or that of the other side."""


@Parameter(name="*", group=MODEL)
@dataclass(frozen=True, kw_only=True)
class AnswerOptions:
    """A language model that answers queries, and the documents that its prompts show."""

    llm: options.LanguageModel = None
    prompt: Annotated[
        str | None,
        Parameter(
            help="numbered (default), or a file with {documents} and {query}.",
            metavar="NAME|FILE",
        ),
    ] = None
    context: Annotated[
        int | None,
        Parameter(
            help="Documents in each prompt, the first of the run (default: 10).",
            metavar="K",
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None
    order: Annotated[
        Literal["shuffled", "ranked"] | None,
        Parameter(help="Order of these documents (default: shuffled, anew for each repeat)."),
    ] = None
    repeats: Annotated[
        int | None,
        Parameter(
            help="Ask for each query N times (default: 1).",
            metavar="N",
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None
    twins: Annotated[
        bool,
        Parameter(
            help="Show both versions of each document, and ask again with their positions "
            "exchanged: which version is cited?",
            group=QUESTION,
        ),
    ] = False
    by_factor: Annotated[
        bool,
        Parameter(
            help="Of versions by design (generate versions): what each factor does to being cited, "
            "and cited first. With --llm, each prompt shows one version of a document, drawn anew "
            "for each repeat.",
            group=QUESTION,
        ),
    ] = False
    show_label: Annotated[
        list[_ShownLabel] | None,
        Parameter(
            help="Show each document's author: its own, or that of the other side. Give it twice, "
            "true and swapped, to tell the effect of the label from that of the text.",
            metavar="LABEL",
            group=QUESTION,
        ),
    ] = None
    limit: Annotated[
        int | None,
        Parameter(
            help="Ask only the first N queries, for a trial.",
            metavar="N",
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None
    text: options.Text = None
    save_answers: Annotated[
        Path | None,
        Parameter(
            help="Save the answers as JSON lines, which cite reads.", metavar="FILE", group=OUTPUT
        ),
    ] = None
    batch: options.Batch = False
    dry_run: options.DryRun = False
    price: options.Price = None
    split: Annotated[options.Split, Parameter(group=SELDOM)] = None

    def check(self) -> None:
        """Refuse options of a model where ``--llm`` names none; stored answers have factors too."""
        if self.llm is not None:
            return
        flag = options.first_typed(**{**vars(self), "llm": None, "by_factor": False})
        if flag is not None:
            raise UserError(f"{flag} needs a model: --llm openai:MODEL")

    def making(self, sampling: Mapping[str, Any]) -> AnswerMaking:
        """Return how the model is asked: as typed, with the library's default elsewhere.

        `sampling` has the options in the text of the model that say how an answer is drawn, such as
        its temperature.
        """
        shown_labels = AnswerMaking.shown_labels if self.show_label is None else self.show_label
        making = AnswerMaking(
            prompt=self.prompt or AnswerMaking.prompt,
            context=self.context or AnswerMaking.context,
            order=self.order or AnswerMaking.order,
            repeats=self.repeats or AnswerMaking.repeats,
            has_twins=self.twins,
            draws_versions=self.by_factor,
            shown_labels=tuple(shown_labels),
            order_seed=statistics_settings().seed,
            text=self.text or AnswerMaking.text,
            first=self.limit,
        )
        return making.with_sampling(sampling)
