"""``ranktilt generate answer``: documents that a language model writes from queries.

The queries come from a file or a collection. The documents become a collection too; a later command
*mixes* (merges) it with the collection of the queries.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, MODEL, verb
from ranktilt.cli.generate.options import Attempts, Limit, NewFolder, SourceName, Summary, generate
from ranktilt.cli.generate.requests import check_request, show_estimate
from ranktilt.cli.generate.summaries import INCOMPLETE, report_texts
from ranktilt.cli.language_models import ConnectedModel
from ranktilt.cli.notes import note
from ranktilt.errors import UserError, counted
from ranktilt.generation.settings import Answering

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.generation.answer.answer import AnsweredQueries, AnswerInputs
    from ranktilt.generation.output_folder import SavedFolder
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
    """The queries to write documents from, and the model that writes them."""

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


@verb(
    "answer",
    "generate answer queries.tsv --llm openai:MODEL --dry-run",
    "generate answer queries.tsv --llm openai:MODEL -o answered",
    arguments="QUERIES",
    parent=generate,
)
def answer(
    queries: Annotated[
        Path,
        Parameter(
            name="QUERIES",
            help="A file (TSV: id, text; or JSONL: _id, text), or a collection.",
        ),
    ],
    /,
    *,
    model: AnswerModelOptions = AnswerModelOptions(),
    max_failures: options.MaxFailures = None,
    split: Annotated[
        str | None,
        Parameter(
            help="Queries judged in qrels/<split>.tsv; for a file, the split's name.",
            metavar="SPLIT",
            group=INPUT,
        ),
    ] = None,
    limit: Limit = None,
    output: NewFolder = None,
    source_name: SourceName = None,
    json: Summary = None,
    attempts: Attempts = 3,
) -> int:
    """Write documents from queries with a language model.

    Exit 1 if some are missing. Run the command again to resume; it asks only for those.
    """
    from ranktilt.generation.answer.save import KIND

    prices = options.read_price(model.price, dry_run=model.dry_run)
    check_request(
        queries, output, json, kind=KIND, dry_run=model.dry_run, source_type="file or folder"
    )
    connected = ConnectedModel.read(model.llm, batch=model.batch)
    # With several documents a query, a temperature of 0 in the model's text is refused.
    answering = Answering(
        prompt=model.prompt,
        n=model.documents_per_query,
        source=source_name,
        first=limit,
        attempts=attempts,
    ).with_sampling(connected.sampling)
    collection = _load_queries(queries, split)
    request = AnswerRequest(collection=collection, client=connected.client, answering=answering)
    if output is None or model.dry_run:
        show_estimate(request.prepare(), connected.client, prices, json)
        return 0
    answered, saved = request.write(output)
    if not report_texts(answered, saved, "written", json, max_failures=max_failures or 0.0):
        return INCOMPLETE
    note(
        f"qrels/{saved.splits[0]}.tsv is generated, not judged. Each document counts as "
        "relevant to the query it was written for"
    )
    if os.path.isdir(queries):
        _note_mixing(queries, collection, output, split=saved.splits[0] if split else None)
    return 0


def _load_queries(queries: Path, split: str | None) -> Collection:
    """Return the queries of a file or a collection.

    For a collection, `split` names the judgments whose queries are taken; for a file, it is only
    recorded as the name of the split.
    """
    from ranktilt.data.queries import read_queries

    if os.path.isdir(queries) or str(queries).startswith(("hub:", "irds:")):
        return options.load_texts(queries, split)
    if split is not None and Path(split).name != split:
        raise UserError(f"--split expects a name such as train, got {split!r}")
    collection = read_queries(queries)
    if split is None:
        return collection
    return replace(collection, spec={**collection.spec, "split": split})


def _note_mixing(
    folder: Path, collection: Collection, answered: Path, *, split: str | None
) -> None:
    """Print the commands that merge a collection with the documents that were written for it.

    Parameters
    ----------
    folder : Path
        The folder of the collection.
    collection : Collection
        The collection.
    answered : Path
        The folder of the written documents.
    split : str or None
        The split whose queries were answered; None for the default.
    """
    from ranktilt.data.labels.stated_sources import ORIGINALS

    if collection.sourceless:
        documents = counted(collection.sourceless, "document has", "documents have")
        command = ["ranktilt", "data", "load", str(folder), "--source", ORIGINALS, "-o", "NEW"]
        note(
            f"{folder}: {documents} no source, so they will be in no group; name it before you "
            f"mix: {shlex.join(command)}"
        )
    split_words = [] if split is None else ["--split", split]
    command = ["ranktilt", "data", "mix", str(folder), str(answered), *split_words, "-o", "mixed"]
    note(f"Next: {shlex.join(command)}")
