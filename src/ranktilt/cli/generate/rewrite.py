"""``ranktilt generate rewrite``: documents that a language model rewrites."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace

from ranktilt.cli import options
from ranktilt.cli.app import verb
from ranktilt.cli.generate.options import NewFolder, SourceName, Summary, generate
from ranktilt.cli.generate.requests import check_request, load_side, note_side, show_estimate
from ranktilt.cli.generate.rewrite_options import AnswerChecks, RewriteModelOptions, TextsToRewrite
from ranktilt.cli.generate.rewrite_request import RewriteRequest
from ranktilt.cli.generate.summaries import INCOMPLETE, conclude
from ranktilt.cli.language_models import ConnectedModel
from ranktilt.cli.notes import note
from ranktilt.errors import UserError
from ranktilt.generation.settings import Rewriting
from ranktilt.spec import parse_stages


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
    asking: RewriteModelOptions = RewriteModelOptions(),
    texts: TextsToRewrite = TextsToRewrite(),
    output: NewFolder = None,
    source_name: SourceName = None,
    json: Summary = None,
    rows_per_file: options.RowsPerFile = None,
    checks: AnswerChecks = AnswerChecks(),
) -> int:
    """Rewrite documents with a language model.

    Exit 1 if some got no answer. Run the command again to resume; it asks only for those.
    """
    prices = options.read_price(asking.price, dry_run=asking.dry_run)
    check_request(folder, output, json, kind="rewrites", dry_run=asking.dry_run)
    texts.check()
    model = ConnectedModel.read(asking.llm, batch=asking.batch)
    rewriting = _rewriting(asking, texts, checks, source=source_name)
    rewriting = rewriting.with_sampling(model.sampling)
    rewriting = _with_temperatures(rewriting, model, str(asking.llm), asking.temperature)
    if not asking.dry_run:
        model.client.check()
    collection = load_side(folder, texts.split, rewriting.of)
    request = RewriteRequest(
        collection=collection,
        client=model.client,
        rewriting=rewriting,
        pool=texts.draw_pool(collection, rewriting.of),
    )
    if output is None or asking.dry_run:
        show_estimate(request.prepare(), model.client, prices, json)
        note_side(collection, rewriting.of)
        return 0
    rewritten, saved = request.write(output, rows_per_file=rows_per_file)
    is_complete = conclude(rewritten, saved, "rewritten", json)
    note_side(collection, rewriting.of)
    if not is_complete:
        return INCOMPLETE
    is_split_needed = texts.split is not None and len(saved.splits) > 1
    split_words = ["--split", str(texts.split)] if is_split_needed else []
    note(f"Next: {shlex.join(['ranktilt', 'check', str(output), *split_words])}")
    return 0


def _rewriting(
    asking: RewriteModelOptions, texts: TextsToRewrite, checks: AnswerChecks, *, source: str | None
) -> Rewriting:
    """Return the settings of the rewriting; `source` is the name of the new source."""
    return Rewriting(
        prompt=asking.prompt,
        titles=asking.titles,
        of=texts.source_to_rewrite or Rewriting.of,
        source=source,
        first=texts.limit,
        attempts=checks.attempts,
        truncate=checks.truncate,
        shortest=checks.min_length_ratio,
        longest=checks.max_length_ratio,
    )


def _with_temperatures(
    rewriting: Rewriting, model: ConnectedModel, text: str, temperatures: Sequence[float] | None
) -> Rewriting:
    """Return the settings with the temperatures of ``--temperature``.

    They win over the temperature in a section [llm.NAME]; a temperature in the typed `text` of the
    model is refused beside them.
    """
    if not temperatures:
        return rewriting
    if "temperature" in parse_stages(text)[0].options:
        raise UserError(
            f"--temperature and temperature={model.sampling['temperature']:g} of {model.name}: "
            "keep one of them"
        )
    return replace(rewriting, temperatures=tuple(temperatures))
