"""``ranktilt generate answer``: documents that a language model writes from queries."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, MODEL, verb
from ranktilt.cli.generate.answer_inputs import load_queries, note_mixing
from ranktilt.cli.generate.options import Attempts, Limit, Made, SourceName, Summary, generate
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
    llm: options.LanguageModel = None,
    prompt: Annotated[
        str,
        Parameter(
            help="passage (default), question, or a file with {query}.",
            metavar="NAME|FILE",
            group=MODEL,
        ),
    ] = "passage",
    documents_per_query: Annotated[
        int,
        Parameter(
            alias="-n",
            help="Documents per query (default: 1).",
            metavar="N",
            group=MODEL,
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = 1,
    batch: options.Batch = False,
    dry_run: options.DryRun = False,
    price: options.Price = None,
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
    output: Made = None,
    source_name: SourceName = None,
    json: Summary = None,
    attempts: Attempts = 3,
) -> int:
    """Write documents from queries with a language model.

    Exit 1 if some are missing. The same command again resumes what was interrupted, and asks only
    for what is missing.
    """
    from ranktilt.generation.answer.answer import answer, prepare_answers
    from ranktilt.generation.answer.save import KIND, save_answered
    from ranktilt.generation.output_folder import one_writer

    prices = options.read_price(price, dry_run=dry_run)
    check_request(queries, output, json, kind=KIND, dry_run=dry_run, source_type="file or folder")
    model = ConnectedModel.read(llm, batch=batch)
    # With several documents a query, a temperature of 0 in the model's text is refused.
    answering = Answering(
        prompt=prompt,
        n=documents_per_query,
        source=source_name,
        first=limit,
        attempts=attempts,
    ).with_sampling(model.sampling)
    collection = load_queries(queries, split)
    inputs = prepare_answers(collection, model.client, answering)
    if output is None or dry_run:
        show_estimate(inputs, model.client, prices, json)
        return 0
    with one_writer(output):
        answered = answer(collection, model.client, answering)
        saved = save_answered(answered, output)
    if not conclude(answered, saved, "written", json, max_failures=max_failures or 0.0):
        return INCOMPLETE
    note(
        f"qrels/{saved.splits[0]}.tsv is generated, not judged: each document counts as relevant "
        "to the query it was written for"
    )
    if os.path.isdir(queries):
        note_mixing(queries, collection, output, split=saved.splits[0] if split else None)
    return 0
