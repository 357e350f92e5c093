"""``ranktilt generate rewrite``: documents that a language model rewrites."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, MODEL, SELDOM, verb
from ranktilt.cli.generate.options import (
    Attempts,
    Limit,
    Made,
    Side,
    SourceName,
    Summary,
    Truncate,
    generate,
)
from ranktilt.cli.generate.pooling import draw_pool
from ranktilt.cli.generate.requests import check_request, load_side, note_side, show_estimate
from ranktilt.cli.generate.rewrite_request import RewriteRequest
from ranktilt.cli.generate.summaries import INCOMPLETE, conclude
from ranktilt.cli.language_models import ConnectedModel
from ranktilt.cli.notes import note
from ranktilt.errors import UserError
from ranktilt.generation.settings import Rewriting
from ranktilt.spec import parse_stages

_Ratio = Parameter(metavar="X", group=SELDOM, validator=options.NOT_NEGATIVE)


@verb(
    "rewrite",
    "generate rewrite DIR --llm openai:MODEL --dry-run",
    "generate rewrite DIR --llm openai:MODEL -o rewritten",
    arguments="DIR",
    parent=generate,
)
def rewrite(
    folder: options.Folder,
    /,
    *,
    llm: options.LanguageModel = None,
    prompt: Annotated[
        str,
        Parameter(
            help="paper (default), paraphrase, summarise, polish, shorten, informal, or a file "
            "with {text}.",
            metavar="NAME|FILE",
            group=MODEL,
        ),
    ] = "paper",
    temperature: Annotated[
        list[Annotated[float, Parameter(validator=options.NOT_NEGATIVE)]] | None,
        Parameter(
            help="Sampling temperature (default: 0.2); several make one source each.",
            metavar="T",
            group=MODEL,
        ),
    ] = None,
    titles: Annotated[
        Literal["keep", "rewrite", "drop"],
        Parameter(help="Keep titles (default), rewrite them or drop them.", group=MODEL),
    ] = "keep",
    batch: options.Batch = False,
    dry_run: options.DryRun = False,
    price: options.Price = None,
    split: options.Split = None,
    source_to_rewrite: Side = None,
    limit: Limit = None,
    pool: Annotated[
        str | None,
        Parameter(
            help="Rewrite only documents that are judged or retrieved by these rankers, such as "
            "bm25,dense:minilm.",
            metavar="SPEC,...",
            group=INPUT,
        ),
    ] = None,
    pool_depth: Annotated[
        int | None,
        Parameter(
            help="Documents per query and ranker of the pool (default: 100).",
            metavar="K",
            group=INPUT,
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None,
    output: Made = None,
    source_name: SourceName = None,
    json: Summary = None,
    rows_per_file: options.RowsPerFile = None,
    attempts: Attempts = 3,
    truncate: Truncate = False,
    min_length_ratio: Annotated[
        float | None,
        _Ratio,
        Parameter(help="Flag answers below this ratio of words, rewrite to text."),
    ] = None,
    max_length_ratio: Annotated[
        float | None,
        _Ratio,
        Parameter(help="Flag answers above this ratio of words, rewrite to text."),
    ] = None,
) -> int:
    """Rewrite documents with a language model.

    Exit 1 if some got no answer. The same command again resumes what was interrupted, and asks only
    for what is missing.
    """
    prices = options.read_price(price, dry_run=dry_run)
    check_request(folder, output, json, kind="rewrites", dry_run=dry_run)
    if pool_depth is not None and pool is None:
        raise UserError("--pool-depth needs a pool, such as --pool bm25")
    model = ConnectedModel.read(llm, batch=batch)
    rewriting = Rewriting(
        prompt=prompt,
        titles=titles,
        of=source_to_rewrite or Rewriting.of,
        source=source_name,
        first=limit,
        attempts=attempts,
        truncate=truncate,
        shortest=min_length_ratio,
        longest=max_length_ratio,
    ).with_sampling(model.sampling)
    rewriting = _with_temperatures(rewriting, model, str(llm), temperature)
    if not dry_run:
        model.client.check()
    collection = load_side(folder, split, rewriting.of)
    request = RewriteRequest(
        collection=collection,
        client=model.client,
        rewriting=rewriting,
        pool=None if pool is None else draw_pool(collection, pool, pool_depth, of=rewriting.of),
    )
    if output is None or dry_run:
        show_estimate(request.prepare(), model.client, prices, json)
        note_side(collection, rewriting.of)
        return 0
    rewritten, saved = request.write(output, rows_per_file=rows_per_file)
    is_complete = conclude(rewritten, saved, "rewritten", json)
    note_side(collection, rewriting.of)
    if not is_complete:
        return INCOMPLETE
    split_words = ["--split", str(split)] if split is not None and len(saved.splits) > 1 else []
    note(f"Next: {shlex.join(['ranktilt', 'check', str(output), *split_words])}")
    return 0


def _with_temperatures(
    rewriting: Rewriting, model: ConnectedModel, text: str, temperatures: Sequence[float] | None
) -> Rewriting:
    """Return the settings with the temperatures of the option, which win over one of ranktilt.toml.

    The text of the model, as it was typed, may not name another.
    """
    if not temperatures:
        return rewriting
    if "temperature" in parse_stages(text)[0].options:
        raise UserError(
            f"--temperature and temperature={model.sampling['temperature']:g} of {model.name}: "
            "keep one of them"
        )
    return replace(rewriting, temperatures=tuple(temperatures))
