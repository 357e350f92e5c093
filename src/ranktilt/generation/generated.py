"""The result of a generation: new documents, those left out, and every answer of the model.

A *source* is the author of documents, such as ``human`` or a model at a temperature. A *task* is a
text to put into a prompt; the document of a task is *left out* if no answer passed the checks. A
*flag* is the name of a fault that a check found in an answer. The *spec* of a collection is how it
was made, as data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from ranktilt._version import __version__
from ranktilt.data.collection import Collection
from ranktilt.data.files import sha256
from ranktilt.generation.batched_requests import UNANSWERED, GenerationInputs, RoundOutcome
from ranktilt.llm.base import LLM

LEFT_OUT = pl.Schema(
    {
        "id": pl.String(),
        "source": pl.String(),
        "part": pl.String(),
        "reason": pl.String(),
        "flags": pl.List(pl.String()),
        "attempts": pl.Int64(),
        "message": pl.String(),
    }
)
"""Columns of the documents without a good answer: the fields of `Rejected`, with id and source."""

_SETTINGS = ("top_p", "max_tokens", "seed", "attempts", "first")
"""Fields of `GenerationSettings` that the spec of a result holds."""


@dataclass(frozen=True, kw_only=True)
class SourceSummary:
    """Counts of the documents of a new source."""

    source: str
    """Name of the source."""
    temperature: float
    """Temperature of its answers."""
    documents: int
    """Number of documents to write."""
    rewritten: int
    """Number of documents written, from a text or from a query."""
    rejected: Mapping[str, int]
    """Number of documents without a good answer, by reason."""
    flags: Mapping[str, int]
    """Number of answers with each flag; an answer may have several flags."""
    answers: int
    """Number of answers, good or not."""
    fresh: int
    """Number of answers to requests of this call; the others were in the journal."""
    cut: int
    """Number of documents written from a text that was cut."""
    prompt_tokens: int
    """Number of tokens that the model read, for all answers."""
    completion_tokens: int
    """Number of tokens that the model wrote, in all answers."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Generated:
    """A collection with documents by a language model."""

    collection: Collection
    """The collection."""
    left_out: pl.DataFrame
    """Documents without a good answer, with a row for each document and source; see `LEFT_OUT`."""
    answers: pl.DataFrame
    """Every answer, good or not.

    Columns: ``id`` and ``source`` of its document, and those of `batched_requests.ANSWER_COLUMNS`
    except ``row``.
    """
    summaries: tuple[SourceSummary, ...]
    """Counts for each new source."""
    spec: Mapping[str, Any]
    """How the documents were made: model, prompt, options and inputs, as plain JSON values."""

    @property
    def unanswered(self) -> int:
        """Documents without an answer; the same call again asks only for these."""
        return sum(summary.rejected.get(UNANSWERED, 0) for summary in self.summaries)


def answers_of(outcomes: Mapping[str, RoundOutcome], ids: Mapping[str, pl.Series]) -> pl.DataFrame:
    """List every answer of each source, with its document.

    `ids` holds, by source, the ids of documents in the order of the rows that tasks refer to.
    """
    tables = []
    for source, outcome in outcomes.items():
        records = pl.concat(outcome.records)
        with_ids = records.with_columns(
            ids[source].gather(records["row"]).alias("id"), pl.lit(source).alias("source")
        )
        tables.append(with_ids.select("id", "source", pl.exclude("id", "source", "row")))
    return pl.concat(tables)


def left_out_of(outcomes: Mapping[str, RoundOutcome], ids: Mapping[str, pl.Series]) -> pl.DataFrame:
    """List the documents without a good answer in each source, with the columns of `LEFT_OUT`.

    `ids` holds, by source, the ids of documents in the order of the rows that tasks refer to.
    """
    rows = []
    for source, outcome in outcomes.items():
        for rejected in outcome.rejected:
            row = {
                "id": ids[source][rejected.row],
                "source": source,
                "part": rejected.part,
                "reason": rejected.reason,
                "flags": list(rejected.flags),
                "attempts": rejected.attempts,
                "message": rejected.message,
            }
            rows.append(row)
    return pl.DataFrame(rows, schema=LEFT_OUT, orient="row")


def summaries(
    inputs: GenerationInputs, outcomes: Mapping[str, RoundOutcome]
) -> tuple[SourceSummary, ...]:
    """Count the documents and answers of each source."""
    return tuple(_summary(inputs, source, outcome) for source, outcome in outcomes.items())


def _summary(inputs: GenerationInputs, source: str, outcome: RoundOutcome) -> SourceSummary:
    """Count the documents and answers of a source."""
    records = pl.concat(outcome.records)
    flag_counts = records["flags"].explode(empty_as_null=False).value_counts(sort=True)
    reason_counts = Counter(rejected.reason for rejected in outcome.rejected)
    sums = records.select("fresh", "prompt_tokens", "completion_tokens").sum()
    fresh, prompt_tokens, completion_tokens = sums.row(0)
    written_from_cut_text = outcome.accepted.keys() & outcome.cut_lengths.keys()
    return SourceSummary(
        source=source,
        temperature=inputs.sources[source].temperature,
        documents=inputs.text_count,
        rewritten=len(outcome.accepted),
        rejected=dict(sorted(reason_counts.items())),
        flags=dict(flag_counts.iter_rows()),
        answers=records.height,
        fresh=int(fresh),
        cut=len(written_from_cut_text),
        prompt_tokens=int(prompt_tokens),
        completion_tokens=int(completion_tokens),
    )


def spec_of(llm: LLM, inputs: GenerationInputs, collection: Collection) -> dict[str, Any]:
    """Describe model, prompt, options and collection of the requests, as plain JSON values."""
    prompt = {"name": inputs.template.name, "text": inputs.template.text}
    if inputs.template.path:
        prompt["file"] = inputs.template.path
    files = [Path(str(file)) for file in collection.spec.get("files", ())]
    settings = {name: getattr(inputs.settings, name) for name in _SETTINGS}
    return {
        "llm": llm.spec,
        "prompt": prompt,
        "sources": {name: sampling.temperature for name, sampling in inputs.sources.items()},
        **settings,
        "inputs": {str(file): sha256(file) for file in files if file.is_file()},
        "collection": collection_paths(collection),
        "ranktilt": __version__,
    }


def collection_paths(collection: Collection) -> dict[str, Any]:
    """Return the path and the split that a collection was read from, as far as they are known."""
    return {name: collection.spec[name] for name in ("path", "split") if name in collection.spec}
