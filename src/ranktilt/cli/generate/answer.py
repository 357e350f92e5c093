"""``ranktilt generate answer``: documents that a language model writes from queries."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, verb
from ranktilt.cli.generate.answer_inputs import load_queries, note_mixing
from ranktilt.cli.generate.answer_request import AnswerModelOptions, AnswerRequest
from ranktilt.cli.generate.options import Attempts, Limit, NewFolder, SourceName, Summary, generate
from ranktilt.cli.generate.requests import check_request, show_estimate
from ranktilt.cli.generate.summaries import INCOMPLETE, conclude
from ranktilt.cli.language_models import ConnectedModel
from ranktilt.cli.notes import note
from ranktilt.generation.settings import Answering


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
    collection = load_queries(queries, split)
    request = AnswerRequest(collection=collection, client=connected.client, answering=answering)
    requests = request.prepare()
    if output is None or model.dry_run:
        show_estimate(requests, connected.client, prices, json)
        return 0
    answered, saved = request.write(output)
    if not conclude(answered, saved, "written", json, max_failures=max_failures or 0.0):
        return INCOMPLETE
    note(
        f"qrels/{saved.splits[0]}.tsv is generated, not judged. Each document counts as "
        "relevant to the query it was written for"
    )
    if os.path.isdir(queries):
        note_mixing(queries, collection, output, split=saved.splits[0] if split else None)
    return 0
