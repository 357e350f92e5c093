"""Options of the language model that makes grades for ``ranktilt judge``, and its prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import MODEL, OUTPUT, SELDOM
from ranktilt.cli.generate.options import Truncate
from ranktilt.cli.judge.grader import Grader
from ranktilt.cli.language_models import ConnectedModel
from ranktilt.errors import UserError
from ranktilt.judging.grading.settings import Grading

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.data.runs.run import Run


@Parameter(name="*", group=MODEL)
@dataclass(frozen=True, kw_only=True)
class GradingOptions:
    """A language model that grades documents, and its prompt."""

    llm: options.LanguageModel = None
    prompt: Annotated[
        str | None,
        Parameter(
            help="umbrela (default), basic, rubric, or a file with {query} and {passage}.",
            metavar="NAME|FILE",
        ),
    ] = None
    pool: Annotated[
        int | None,
        Parameter(
            help="Grade the top K documents of each run (default: 20).",
            metavar="K",
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None
    limit: Annotated[
        int | None,
        Parameter(
            help="Grade only the first N pairs, for a trial.",
            metavar="N",
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None
    probe_pairs: Annotated[
        int | None,
        Parameter(
            help="Also let the model grade N passages of grade 0 as they are, with added query "
            "words, padding to 2 and 4 times their length, or an instruction.",
            metavar="N",
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None
    save_grades: Annotated[
        Path | None,
        Parameter(help="Save the model's grades as qrels.", metavar="FILE", group=OUTPUT),
    ] = None
    batch: options.Batch = False
    dry_run: options.DryRun = False
    price: options.Price = None
    repeats: Annotated[
        int | None,
        Parameter(
            help="Grade each pair N times and take the median (default: 1).",
            metavar="N",
            group=SELDOM,
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None
    truncate: Truncate = False

    def check(self) -> None:
        """Refuse options of a model where ``--llm`` names none."""
        if self.llm is not None:
            return
        flag = options.first_typed(**{**vars(self), "llm": None})
        if flag is not None:
            raise UserError(f"{flag} needs a model: --llm openai:MODEL")

    def grading(self, sampling: Mapping[str, Any], text: options.Fields | None) -> Grading:
        """Return how the model is asked: as typed, with the library's default elsewhere.

        Parameters
        ----------
        sampling : mapping
            Options in the text of the model that say how an answer is drawn, such as its
            temperature.
        text : str or None
            The part of a document that the model reads.
        """
        grading = Grading(
            prompt=self.prompt or Grading.prompt,
            pool=self.pool or Grading.pool,
            repeats=self.repeats or Grading.repeats,
            text=text or Grading.text,
            truncate=self.truncate,
            first=self.limit,
        )
        return grading.with_sampling(sampling)

    def grader(
        self, collection: Collection, runs: Sequence[Run], text: options.Fields | None
    ) -> Grader:
        """Connect to the model that grades the first documents of each run.

        Without runs it grades the documents that the collection judges. `text` is the part of a
        document that it reads.
        """
        model = ConnectedModel.read(self.llm, batch=self.batch)
        grading = self.grading(model.sampling, text)
        return Grader(collection=collection, client=model.client, grading=grading, runs=runs)
