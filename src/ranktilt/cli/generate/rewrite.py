"""``ranktilt generate rewrite``: documents that a language model rewrites.

Only the documents of one source are rewritten. With ``--pool``, these are only the documents that
are worth the price: the *pool* holds those that are judged, and those that rankers retrieve.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, MODEL, SELDOM, verb
from ranktilt.cli.generate.options import (
    Attempts,
    Limit,
    NewFolder,
    Side,
    SourceName,
    Summary,
    Truncate,
    generate,
)
from ranktilt.cli.generate.requests import check_request, load_side, note_side, show_estimate
from ranktilt.cli.generate.summaries import INCOMPLETE, report_texts
from ranktilt.cli.language_models import ConnectedModel
from ranktilt.cli.notes import note
from ranktilt.cli.rankers import read_rankers
from ranktilt.errors import UserError
from ranktilt.generation.settings import Rewriting
from ranktilt.spec import parse_stages

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.generation.batched_requests import GenerationInputs
    from ranktilt.generation.generated import Generated
    from ranktilt.generation.output_folder import SavedFolder
    from ranktilt.generation.pooling import Pool
    from ranktilt.llm.base import LLM

_QUOTED = r'"(?:[^"\\]|\\.)*"'
"""A text in double quotes."""
_RANKER_IN_LIST = re.compile(rf'(?:{_QUOTED}|\((?:{_QUOTED}|[^()"])*\)|[^,])+')
"""A ranker of ``--pool``: it ends at a comma that is in neither quotes nor parentheses."""


@Parameter(name="*", group=MODEL)
@dataclass(frozen=True, kw_only=True)
class RewriteModelOptions:
    """The model, what it is asked to write, and the price of asking it."""

    llm: options.LanguageModel = None
    prompt: Annotated[
        str,
        Parameter(
            help="paper (default), paraphrase, summarise, polish, shorten, informal, or a file "
            "with {text}.",
            metavar="NAME|FILE",
        ),
    ] = "paper"
    temperature: Annotated[
        list[Annotated[float, Parameter(validator=options.NOT_NEGATIVE)]] | None,
        Parameter(
            help="Sampling temperature (default: 0.2); each of several makes its own source.",
            metavar="T",
        ),
    ] = None
    titles: Annotated[
        Literal["keep", "rewrite", "drop"],
        Parameter(help="Keep titles (default), rewrite them or drop them."),
    ] = "keep"
    batch: options.Batch = False
    dry_run: options.DryRun = False
    price: options.Price = None


@Parameter(name="*", group=INPUT)
@dataclass(frozen=True, kw_only=True)
class TextsToRewrite:
    """The documents to rewrite."""

    split: options.Split = None
    source_to_rewrite: Side = None
    limit: Limit = None
    pool: Annotated[
        str | None,
        Parameter(
            help="Rewrite only documents that are judged or retrieved by these rankers, such as "
            "bm25,dense:minilm.",
            metavar="SPEC,...",
        ),
    ] = None
    pool_depth: Annotated[
        int | None,
        Parameter(
            help="Documents per query and ranker of the pool (default: 100).",
            metavar="K",
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None

    def check(self) -> None:
        """Refuse a depth that no ranker of a pool would read."""
        if self.pool_depth is not None and self.pool is None:
            raise UserError("--pool-depth needs a pool, such as --pool bm25")

    def draw_pool(self, collection: Collection, source: str) -> Pool | None:
        """Return the documents of a source that ``--pool`` chooses, and note how many they are.

        None stands for all documents.
        """
        if self.pool is None:
            return None
        from ranktilt.generation.pooling import USUAL_DEPTH, pool

        rankers = read_rankers(_split_rankers(self.pool))
        chosen = pool(collection, rankers, depth=self.pool_depth or USUAL_DEPTH, of=source)
        for sentence in chosen.sentences:
            note(sentence)
        return chosen


@Parameter(name="*", group=SELDOM)
@dataclass(frozen=True, kw_only=True)
class AnswerChecks:
    """How often a model is asked for an answer, and which lengths are flagged."""

    attempts: Attempts = 3
    truncate: Truncate = False
    min_length_ratio: Annotated[
        float | None,
        Parameter(
            help="Flag answers with fewer than X times the words of the text.",
            metavar="X",
            validator=options.NOT_NEGATIVE,
        ),
    ] = None
    max_length_ratio: Annotated[
        float | None,
        Parameter(
            help="Flag answers with more than X times the words of the text.",
            metavar="X",
            validator=options.NOT_NEGATIVE,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class RewriteRequest:
    """The documents to rewrite, and the model that rewrites them."""

    collection: Collection
    """The documents."""
    client: LLM
    """The connection to the model."""
    rewriting: Rewriting
    """Settings of the prompt, and the source to rewrite."""
    pool: Pool | None
    """The documents to rewrite; None for all documents of the source."""

    def prepare(self) -> GenerationInputs:
        """Return the requests that are still to be sent."""
        from ranktilt.generation.rewrite.prepare import prepare_rewrites

        return prepare_rewrites(self.collection, self.client, self.rewriting, only=self.pool)

    def write(self, folder: Path, *, rows_per_file: int | None) -> tuple[Generated, SavedFolder]:
        """Ask the model, and write the collection with its rewrites into a folder."""
        from ranktilt.generation.output_folder import one_writer
        from ranktilt.generation.rewrite.rewrite import rewrite
        from ranktilt.generation.rewrite.save import save_rewritten

        with one_writer(folder):
            rewritten = rewrite(self.collection, self.client, self.rewriting, only=self.pool)
            return rewritten, save_rewritten(rewritten, folder, rows_per_file=rows_per_file)


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
    is_complete = report_texts(rewritten, saved, "rewritten", json)
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


def _split_rankers(text: str) -> list[str]:
    """Split a list of rankers at its commas, but not within quotes or a ranker's options."""
    specs = [match.strip() for match in _RANKER_IN_LIST.findall(text)]
    return [spec for spec in specs if spec]
