"""``ranktilt generate answer``: documents written from queries, by a language model."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ranktilt.cli import options
from ranktilt.cli.generate.model_options import (
    INCOMPLETE,
    DryRun,
    ModelOptions,
    Summary,
    check_request,
    conclude,
    show_estimate,
)
from ranktilt.cli.notes import note
from ranktilt.errors import UserError
from ranktilt.generation.settings import Answering
from ranktilt.option import Option

if TYPE_CHECKING:
    from ranktilt.collection import Collection


@options.verb(
    "generate answer queries.tsv --llm openai:MODEL --dry-run",
    "generate answer queries.tsv --llm openai:MODEL -o answered",
    panel="Input",
)
def answer(
    queries: Annotated[
        Path,
        typer.Argument(metavar="QUERIES", help="A file (TSV: id, text; or JSONL: _id, text), or a collection."),
    ],
    *,
    model: ModelOptions,
    output: Annotated[
        Path | None, Option("Folder for the documents, as a collection.", "DIR", short="-o", panel="Output")
    ] = None,
    answering: Annotated[dict[str, Any], options.FieldsOf(Answering, panel="Model")],
    split: Annotated[
        str | None, Option("Queries judged in qrels/<split>.tsv; for a file, the split's name.", "SPLIT")
    ] = None,
    max_failures: options.MaxFailures = None,
    dry_run: DryRun = False,
    price: options.Price = None,
    compute: options.Compute,
    json: Summary = None,
) -> int:
    """Write documents from queries with a language model; resumes what was interrupted. Exit 1 if some are missing."""
    from ranktilt.generation.answer.answer import answer, plan_answers
    from ranktilt.generation.answer.save import KIND, save_answered
    from ranktilt.generation.output_folder import one_writer

    check_request(queries, output, json, price, kind=KIND, dry_run=dry_run)
    how = Answering(**answering)
    client = model.client(compute.device)
    collection = _load(queries, split)
    planned = plan_answers(collection, client, how)
    if output is None or dry_run:
        show_estimate(planned, client, price, model, json)
        return 0
    with one_writer(output):
        answered = answer(collection, client, how)
        saved = save_answered(answered, output)
    if not conclude(answered, saved, "written", json, max_failures=max_failures or 0.0):
        return INCOMPLETE
    note(f"qrels/{saved.splits[0]}.tsv is made, not judged: each document is relevant to the query it was written from")
    if os.path.isdir(queries):
        named = ["--split", saved.splits[0]] if split is not None else []
        note(f"Next: {shlex.join(['ranktilt', 'data', 'mix', str(queries), str(output), *named, '-o', 'mixed'])}")
    return 0


def _load(queries: Path, split: str | None) -> Collection:
    """The queries of a collection, under the named or usual judgments where it has any, or those of a file."""
    from ranktilt.datasets.queries import read_queries

    if os.path.isdir(queries) or str(queries).startswith(("hub:", "irds:")):
        return options.load_texts(queries, split)
    if split is not None and Path(split).name != split:
        raise UserError(f"--split expects a name such as train, got {split!r}")
    read = read_queries(queries)
    return read if split is None else replace(read, spec={**read.spec, "split": split})
