"""What ``ranktilt generate answer`` asks a model: from which queries to write, and how."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import MODEL

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.generation.answer.answer import AnsweredQueries, AnswerInputs
    from ranktilt.generation.output_folder import SavedFolder
    from ranktilt.generation.settings import Answering
    from ranktilt.llm.base import LLM


@Parameter(name="*", group=MODEL)
@dataclass(frozen=True, kw_only=True)
class AnswerModelOptions:
    """The model, what it is asked to write, and the price of asking it."""

    llm: options.LanguageModel = None
    prompt: Annotated[
        str,
        Parameter(
            help="passage (default), question, or a file with {query}.",
            metavar="NAME|FILE",
        ),
    ] = "passage"
    documents_per_query: Annotated[
        int,
        Parameter(
            alias="-n",
            help="Documents per query (default: 1).",
            metavar="N",
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = 1
    batch: options.Batch = False
    dry_run: options.DryRun = False
    price: options.Price = None


@dataclass(frozen=True, kw_only=True)
class AnswerRequest:
    """Queries to write documents from, and the model that writes them."""

    collection: Collection
    """The queries."""
    client: LLM
    """The connection to the model."""
    answering: Answering
    """Settings of the prompt, and how many documents a query gets."""

    def prepare(self) -> AnswerInputs:
        """Return the requests that are still to be sent."""
        from ranktilt.generation.answer.answer import prepare_answers

        return prepare_answers(self.collection, self.client, self.answering)

    def write(self, folder: Path) -> tuple[AnsweredQueries, SavedFolder]:
        """Ask the model, and write its documents into a folder; no other command may write too."""
        from ranktilt.generation.answer.answer import answer
        from ranktilt.generation.answer.save import save_answered
        from ranktilt.generation.output_folder import one_writer

        with one_writer(folder):
            answered = answer(self.collection, self.client, self.answering)
            return answered, save_answered(answered, folder)
