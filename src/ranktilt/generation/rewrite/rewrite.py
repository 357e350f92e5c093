"""Rewrite the documents of a collection with a language model.

A rewrite and its original are *twins*, and share their *origin*: the id of the original. The
*source* of a document is its author: ``human``, or a model at one temperature. A *pool* is a choice
of documents to rewrite. A *task* is a text to ask the model about. An answer that passes the checks
is *accepted*; a text without such an answer is *rejected*. The *journal* is the file that keeps all
answers of a model. A *split*, such as ``test``, has judgments of its own.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import polars as pl

from ranktilt.data.collection import POOL, Collection
from ranktilt.data.mix import mix
from ranktilt.errors import DataWarning
from ranktilt.generation.batched_requests import (
    GenerationTask,
    RoundConfig,
    RoundOutcome,
    ask_until_accepted,
)
from ranktilt.generation.checks import check_text, check_title
from ranktilt.generation.generated import (
    Generated,
    answers_of,
    collection_paths,
    left_out_of,
    spec_of,
    summaries,
)
from ranktilt.generation.rewrite.prepare import RewriteInputs, earlier_pool, prepare_rewrites
from ranktilt.generation.settings import Rewriting
from ranktilt.generation.templates import TITLE, template
from ranktilt.llm.base import LLM
from ranktilt.llm.journal import Journal, journal_of

if TYPE_CHECKING:
    from ranktilt.generation.pooling import Pool

_REWRITE_COLUMNS = ("model", "temperature", "prompt", "cut_to")
"""Columns that only rewrites fill."""
_SETTINGS = ("of", "titles", "truncate")
"""Fields of `Rewriting` alone that the spec of a result holds.

``of`` is the source whose documents are rewritten.
"""


@dataclass(frozen=True, eq=False, kw_only=True)
class Rewritten(Generated):
    """A collection with its rewrites.

    `collection` has all earlier documents and the rewrites. A rewrite has the judgments of its
    original. Its columns ``model``, ``temperature``, ``prompt`` and ``cut_to`` (words that the
    model read, if the text was cut) are null for earlier documents. If only some documents were
    rewritten, the column ``pool`` says which. A document without a good title is left out.
    """

    originals: Collection
    """The collection without the rewrites, with the column ``pool`` if not all was rewritten."""
    added: pl.DataFrame
    """The rewrites. Their ids are those of the originals; `mix` appends the source to them."""

    def unite(self, qrels: pl.DataFrame) -> Collection:
        """Unite the rewrites with the originals under the judgments of another split.

        `qrels` has the ids of the originals.
        """
        originals = self.originals
        judged = Collection(originals.docs, originals.queries, qrels, originals.spec)
        return _unite(judged, self.added, self.spec)


def rewrite(
    collection: Collection,
    llm: LLM,
    rewriting: Rewriting | None = None,
    *,
    only: Pool | Iterable[str] | None = None,
    journal: Journal | None = None,
) -> Rewritten:
    """Rewrite documents and unite the rewrites with the collection.

    Each answer goes into the journal first, so you never pay twice for an interrupted call.
    Wrappers such as "Sure, here is …" are removed. If an answer fails a check, another one is
    requested, up to ``rewriting.attempts``; documents without a good answer are left out and
    listed. A prompt contains the document and nothing else from the collection: no query, no
    judgment. Dai et al. rewrite their test beds in this way (Neural Retrievers are Biased Towards
    LLM-Generated Content, KDD 2024, sec. 2).

    Parameters
    ----------
    collection : Collection
        If no document has a source, all get the source to rewrite (``rewriting.of``).
    llm : LLM
        The model, such as ``ranktilt.llm.base.llm("openai:NAME")``.
    rewriting : Rewriting, optional
        Prompt, temperatures, titles, ….
    only : Pool or iterable of str, optional
        A pool, or ids of the documents to rewrite. By default these are all documents of the
        source, or those of the pool that earlier rewrites were made from.
    journal : Journal, optional
        Earlier answers; by default the model's journal in the cache.

    Returns
    -------
    Rewritten
        `unanswered` is the number of documents that the same call would request again.

    Raises
    ------
    UserError
        If documents cannot be rewritten or new sources cannot be named (see `prepare_rewrites`), or
        if the model cannot be asked. Answers that came before the error are in the journal.
    """
    inputs = prepare_rewrites(collection, llm, rewriting or Rewriting(), only=only)
    llm.check()
    spec = _spec(inputs, llm)
    outcomes = {}
    journal = journal_of(llm) if journal is None else journal
    with journal:  # A closed journal opens again when it is used next.
        for source in inputs.sources:
            outcomes[source] = _rewrite_source(llm, journal, inputs, source)
    added = pl.concat(
        _documents(inputs, source, outcome, model=llm.name) for source, outcome in outcomes.items()
    )
    originals = _with_pool(inputs)
    united = _unite(originals, added, spec)
    # The originals come first in the union, and a task's row is that of its original.
    ids = dict.fromkeys(outcomes, united.ids.head(originals.docs.height).alias("id"))
    return Rewritten(
        collection=united,
        originals=originals,
        added=added,
        left_out=left_out_of(outcomes, ids),
        answers=answers_of(outcomes, ids),
        summaries=summaries(inputs, outcomes),
        spec=spec,
    )


def _rewrite_source(llm: LLM, journal: Journal, inputs: RewriteInputs, source: str) -> RoundOutcome:
    """Ask for all texts of a source, and then for their titles if these are rewritten too."""
    rewriting = inputs.settings
    config = RoundConfig(
        llm=llm,
        journal=journal,
        sampling=inputs.sources[source],
        template=inputs.template,
        check=check_text(inputs.limits),
        attempts=rewriting.attempts,
        truncate=rewriting.truncate,
        label=f"rewriting as {source}",
    )
    outcome = ask_until_accepted(config, inputs.tasks)
    if rewriting.titles == "rewrite":
        title_config = replace(
            config,
            template=template(TITLE),
            check=check_title,
            part="title",
            label=f"titles of {source}",
            truncate=False,
        )
        _add_titles(outcome, title_config, inputs.tasks)
    all_rejected = [*inputs.rejected, *outcome.rejected]
    outcome.rejected = sorted(all_rejected, key=attrgetter("row"))
    return outcome


def _add_titles(
    outcome: RoundOutcome, config: RoundConfig, tasks: Iterable[GenerationTask]
) -> None:
    """Ask for the titles of accepted texts; a text without a good title is rejected."""
    title_tasks = []
    for task in tasks:
        if task.row in outcome.accepted and task.title.strip():
            title_tasks.append(replace(task, text=task.title, title=""))
    titles = ask_until_accepted(config, title_tasks)
    outcome.titles = titles.accepted
    outcome.records += titles.records
    outcome.rejected += titles.rejected
    for rejected in titles.rejected:
        outcome.accepted.pop(rejected.row)


def _documents(
    inputs: RewriteInputs, source: str, outcome: RoundOutcome, *, model: str
) -> pl.DataFrame:
    """Return the rewrites of a source, with all further columns of the originals but raw JSON."""
    rows = sorted(outcome.accepted)
    collection = inputs.collection
    docs = collection.docs.with_columns(id=collection.bare_ids())[rows]
    earlier_columns = [name for name in _REWRITE_COLUMNS if name in docs.columns]
    # Columns of type Binary hold raw JSON (see `Collection`), which stays with the originals.
    docs = docs.select(pl.exclude(pl.Binary)).drop(earlier_columns)
    texts = [outcome.accepted[row] for row in rows]
    words_read = [outcome.cut_lengths.get(row) for row in rows]  # None for a text that was not cut
    temperature = inputs.sources[source].temperature
    columns: dict[str, pl.Expr | pl.Series] = {
        "text": pl.Series(texts, dtype=pl.String),
        "model": pl.lit(model),
        "temperature": pl.lit(temperature, dtype=pl.Float64),
        "prompt": pl.lit(inputs.template.name),
        "cut_to": pl.Series(words_read, dtype=pl.Int64),
        "source": pl.lit(source),
    }
    if inputs.settings.titles == "drop":
        columns["title"] = pl.lit("")
    elif inputs.settings.titles == "rewrite":
        columns["title"] = pl.Series([outcome.titles.get(row, "") for row in rows], dtype=pl.String)
    if inputs.is_partial:  # the documents that are rewritten make up the pool
        columns[POOL] = pl.lit(True)
    return docs.with_columns(**columns)


def _with_pool(inputs: RewriteInputs) -> Collection:
    """Return the collection, with the column ``pool`` if only some documents are rewritten.

    The pool of earlier rewrites stays. A new pool holds the documents that were to be rewritten,
    whether the model answered or not, and all documents of the same origins.
    """
    collection = inputs.collection
    if not inputs.is_partial or earlier_pool(collection, inputs.settings.of) is not None:
        return collection
    rows = [task.row for task in inputs.tasks]
    rows += [rejected.row for rejected in inputs.rejected]
    origins = collection.docs["origin"][rows]
    chosen = collection.docs["origin"].is_in(origins.implode()).alias(POOL)
    return Collection(
        collection.docs.with_columns(chosen), collection.queries, collection.qrels, collection.spec
    )


def _unite(collection: Collection, added: pl.DataFrame, spec: Mapping[str, Any]) -> Collection:
    """Return the collection with the rewrites of each source added."""
    rewrites_by_source = [
        Collection(docs, collection.queries.clear(), collection.qrels.clear())
        for docs in added.partition_by("source", maintain_order=True)
    ]
    with warnings.catch_warnings():
        # `mix` warns of documents without a rewrite. They are in `left_out`, with their reasons.
        warnings.simplefilter("ignore", DataWarning)
        mixed = mix(collection, *rewrites_by_source)
    united_spec = {**collection_paths(collection), "rewrite": dict(spec)}
    return Collection(mixed.docs, mixed.queries, mixed.qrels, united_spec)


def _spec(inputs: RewriteInputs, llm: LLM) -> dict[str, Any]:
    """Return inputs and options, as JSON."""
    spec = spec_of(llm, inputs, inputs.collection)
    for name in _SETTINGS:
        spec[name] = getattr(inputs.settings, name)
    return {
        **spec,
        "limits": asdict(inputs.limits),
        "partial": inputs.is_partial,
        "named_source": inputs.collection.spec.get("named_source"),
        "pool": None if inputs.pool is None else list(inputs.pool.sentences),
    }
