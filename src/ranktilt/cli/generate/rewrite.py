"""``ranktilt generate rewrite``: a machine-written twin for each document, by a language model."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from ranktilt.generation.settings import Rewriting
from ranktilt.option import Option

if TYPE_CHECKING:
    from ranktilt.collection import Collection
    from ranktilt.generation.pooling import Pool

_COMMA = re.compile(r",(?![^(]*\))")
"""Between rankers, not within their brackets."""


@options.verb(
    "generate rewrite DIR --llm openai:MODEL --dry-run --price 0.15,0.60",
    "generate rewrite DIR --llm openai:MODEL -o rewritten",
    panel="Input",
)
def rewrite(
    folder: options.Folder,
    *,
    model: ModelOptions,
    output: Annotated[
        Path | None, Option("Folder for the collection with its rewrites.", "DIR", short="-o", panel="Output")
    ] = None,
    rewriting: Annotated[dict[str, Any], options.FieldsOf(Rewriting, panel="Model")],
    pool: Annotated[
        str | None,
        Option(
            "Rewrite only documents that are judged or retrieved by these rankers, such as bm25,dense:minilm.",
            "SPEC,...",
        ),
    ] = None,
    pool_depth: Annotated[
        int | None, Option("Pool depth: documents per query and ranker (default: 100).", "K", min=1)
    ] = None,
    split: options.Split = None,
    rows_per_file: options.RowsPerFile = None,
    dry_run: DryRun = False,
    price: options.Price = None,
    compute: options.Compute,
    json: Summary = None,
) -> int:
    """Rewrite documents with a language model; resumes what was interrupted. Exit 1 if some got no answer."""
    check_request(folder, output, json, price, kind="rewrites", dry_run=dry_run)
    if pool_depth is not None and pool is None:
        raise UserError("--pool-depth is about a pool; name its rankers, such as --pool bm25")
    how = Rewriting(**rewriting)
    device = compute.device
    client = model.client(device if model.llm.startswith("transformers:") or pool is None else None)
    if not dry_run:
        client.check()
    collection = options.load_texts(folder, split)
    chosen = None if pool is None else _pool(collection, pool, pool_depth, how, device)
    if output is None or dry_run:
        from ranktilt.generation.rewrite.plan import plan

        show_estimate(plan(collection, client, how, only=chosen), client, price, model, json)
        return 0
    from ranktilt.generation.output_folder import one_writer
    from ranktilt.generation.rewrite.rewrite import rewrite as run_rewrite
    from ranktilt.generation.rewrite.save import save_rewritten

    with one_writer(output):
        rewritten = run_rewrite(collection, client, how, only=chosen)
        saved = save_rewritten(rewritten, output, rows_per_file=rows_per_file)
    if not conclude(rewritten, saved, "rewritten", json):
        return INCOMPLETE
    named = ["--split", str(split)] if split is not None and len(saved.splits) > 1 else []
    note(f"Next: {shlex.join(['ranktilt', 'check', str(output), *named])}")
    return 0


def _pool(collection: Collection, specs: str, depth: int | None, how: Rewriting, device: str | None) -> Pool:
    from ranktilt.generation.pooling import USUAL_DEPTH, pool

    rankers = options.read_rankers([one.strip() for one in _COMMA.split(specs) if one.strip()], device=device)
    found = pool(collection, rankers, depth=depth or USUAL_DEPTH, of=how.of)
    for sentence in found.sentences:
        note(sentence)
    return found
