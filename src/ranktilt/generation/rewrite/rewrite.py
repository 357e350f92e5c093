"""Rewrite the documents of a collection with a language model: each document of a side gets a machine-written twin."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from ranktilt.data.collection import POOL, Collection
from ranktilt.data.mix import mix
from ranktilt.data.stated_sources import with_named_side
from ranktilt.errors import DataWarning
from ranktilt.generation.batched_requests import RoundConfig, RoundOutcome, ask_until_accepted
from ranktilt.generation.checks import check_text, check_title
from ranktilt.generation.generated import Generated, answers_of, left_out_of, spec_of, summaries
from ranktilt.generation.rewrite.prepare import RewriteInputs, earlier_pool, prepare_rewrites
from ranktilt.generation.settings import Rewriting
from ranktilt.generation.templates import TITLE, template
from ranktilt.llm.base import LLM
from ranktilt.llm.journal import Journal, journal_of

if TYPE_CHECKING:
    from ranktilt.generation.pooling import Pool

_MADE = ("model", "temperature", "prompt", "cut_to")
_PLAIN = ("of", "titles", "truncate")


@dataclass(frozen=True, eq=False, kw_only=True)
class Rewritten(Generated):
    """A collection with its rewrites.

    `collection` has all documents that were there, and the new ones: `source` named after model and
    temperature, `origin` that of the document they were made of, judgments carried over, and
    columns ``model``, ``temperature``, ``prompt`` (null for the others), ``cut_to`` (words that the
    model was given, where a text was cut) and, for a pool, ``pool``. One may be left out for its
    title.
    """

    given: Collection
    """What was rewritten, with the column ``pool`` where not all of it was."""
    added: pl.DataFrame
    """The new documents, under the ids of the given ones without their source."""

    def united(self, qrels: pl.DataFrame) -> Collection:
        """Unite the rewrites with the documents under another split's judgments, by the ids that they had before."""
        given = self.given
        return _united(
            Collection(given.docs, given.queries, qrels, given.spec), self.added, self.spec
        )


def rewrite(
    collection: Collection,
    llm: LLM,
    rewriting: Rewriting | None = None,
    *,
    only: Pool | Iterable[str] | None = None,
    journal: Journal | None = None,
) -> Rewritten:
    """Rewrite documents and unite the rewrites with the collection.

    Where no document has a source, all are of the one to rewrite (``rewriting.of``), and are so in
    what comes back.

    Each answer is in the journal before it counts, so that an interrupted call costs nothing twice.
    Wrappers such as "Sure, here is …" are removed; an answer that fails a check is asked for again,
    up to ``rewriting.attempts``, and a document without a good one is left out and listed. A prompt
    holds the document and nothing else of the collection: no query, no judgment.

    `only` names documents by id (all of the source by default), `journal` holds what was answered
    before (by default the model's own, in the cache), and `unanswered` of the result says for how
    many documents the same call would ask again. `UserError` as of `prepare_rewrites`, or if the model cannot
    be asked; what was answered until then is kept.

    Dai et al., Neural Retrievers are Biased Towards LLM-Generated Content, KDD 2024, sec. 2.
    """
    rewriting = rewriting or Rewriting()
    collection = with_named_side(collection, rewriting.of)
    inputs = prepare_rewrites(collection, llm, rewriting, only=only)
    llm.check()
    spec = _spec(collection, llm, inputs)
    with journal_of(llm) if journal is None else journal as kept:
        found = {name: _rewrite_source(llm, kept, inputs, name) for name in inputs.sources}
    added = pl.concat(_documents(collection, llm, inputs, name, found[name]) for name in found)
    marked = _marked(collection, inputs)
    united = _united(marked, added, spec)
    ids = dict.fromkeys(found, united.ids.head(collection.docs.height).alias("id"))
    return Rewritten(
        collection=united,
        given=marked,
        added=added,
        left_out=left_out_of(found, ids),
        answers=answers_of(found, ids),
        made=summaries(inputs, found),
        spec=spec,
    )


def _rewrite_source(llm: LLM, journal: Journal, inputs: RewriteInputs, source: str) -> RoundOutcome:
    """All texts of one source, and then their titles where these are rewritten too."""
    rewriting, sampling = inputs.settings, inputs.sources[source]
    config = RoundConfig(
        llm,
        journal,
        sampling,
        inputs.template,
        check_text(inputs.limits),
        rewriting.attempts,
        truncate=rewriting.truncate,
        label=f"rewriting as {source}",
    )
    outcome = ask_until_accepted(config, inputs.tasks)
    if rewriting.titles == "rewrite":
        tasks = [
            o._replace(text=o.title, title="") for o in inputs.tasks if o.row in outcome.accepted
        ]
        config = replace(
            config,
            template=template(TITLE),
            check=check_title,
            part="title",
            label=f"titles of {source}",
            truncate=False,
        )
        titles = ask_until_accepted(config, [o for o in tasks if o.text.strip()])
        outcome.titles = titles.accepted
        outcome.records += titles.records
        outcome.rejected += titles.rejected
        for one in titles.rejected:
            outcome.accepted.pop(one.row)
    outcome.rejected = sorted([*inputs.rejected, *outcome.rejected])
    return outcome


def _documents(
    collection: Collection, llm: LLM, inputs: RewriteInputs, source: str, outcome: RoundOutcome
) -> pl.DataFrame:
    """The new documents: what else is known of the one they were made of is true of them too."""
    rows = sorted(outcome.accepted)
    docs = collection.docs.with_columns(id=collection.bare_ids())[rows]
    docs = docs.select(pl.exclude(pl.Binary)).drop([name for name in _MADE if name in docs.columns])
    made: dict[str, pl.Expr | pl.Series] = {
        "text": pl.Series([outcome.accepted[row] for row in rows], dtype=pl.String),
        "model": pl.lit(llm.name),
        "temperature": pl.lit(inputs.sources[source].temperature, dtype=pl.Float64),
        "prompt": pl.lit(inputs.template.name),
        "cut_to": pl.Series([outcome.words.get(row) for row in rows], dtype=pl.Int64),
        "source": pl.lit(source),
    }
    if inputs.settings.titles == "drop":
        made["title"] = pl.lit("")
    elif inputs.settings.titles == "rewrite":
        made["title"] = pl.Series([outcome.titles.get(row, "") for row in rows], dtype=pl.String)
    if inputs.only:
        made[POOL] = pl.lit(True)
    return docs.with_columns(**made)


def _marked(collection: Collection, inputs: RewriteInputs) -> Collection:
    """The collection with a column that says which documents were chosen, where not all were."""
    if not inputs.only or earlier_pool(collection, inputs.settings.of) is not None:
        return collection
    rows = [*(o.row for o in inputs.tasks), *(one.row for one in inputs.rejected)]
    origins = collection.docs["origin"][rows]
    chosen = collection.docs["origin"].is_in(origins.implode()).alias(POOL)
    return Collection(
        collection.docs.with_columns(chosen), collection.queries, collection.qrels, collection.spec
    )


def _united(collection: Collection, added: pl.DataFrame, spec: Mapping[str, Any]) -> Collection:
    parts = [
        Collection(docs, collection.queries.clear(), collection.qrels.clear())
        for docs in added.partition_by("source", maintain_order=True)
    ]
    with (
        warnings.catch_warnings()
    ):  # documents without a rewrite are listed elsewhere, each with its reason
        warnings.simplefilter("ignore", DataWarning)
        mixed = mix(collection, *parts)
    kept = {name: collection.spec[name] for name in ("path", "split") if name in collection.spec}
    return Collection(mixed.docs, mixed.queries, mixed.qrels, {**kept, "rewrite": dict(spec)})


def _spec(collection: Collection, llm: LLM, inputs: RewriteInputs) -> dict[str, Any]:
    return {
        **spec_of(llm, inputs, collection),
        **{name: getattr(inputs.settings, name) for name in _PLAIN},
        "limits": asdict(inputs.limits),
        "partial": inputs.only,
        "named_source": collection.spec.get("named_source"),
        "pool": None if inputs.pool is None else list(inputs.pool.sentences),
    }
