"""What became of the texts that a language model was asked for: kept, left out, and every answer as it came."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

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
"""Columns of the documents without a good answer."""

_PLAIN = ("top_p", "max_tokens", "seed", "attempts", "first")


class SourceSummary(NamedTuple):
    """What became of the documents in one source."""

    source: str
    temperature: float
    documents: int
    """That were to be written."""
    rewritten: int
    """Documents that were written, from a text or from a query."""
    rejected: Mapping[str, int]
    """Documents without a good answer, by reason."""
    flags: Mapping[str, int]
    """Answers by flag, among all answers; one answer may have several."""
    answers: int
    fresh: int
    """Answers that were asked for by this run; the others were in the journal."""
    cut: int
    """Rewrites of a text that was cut."""
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Generated:
    """A collection with what a language model wrote."""

    collection: Collection
    left_out: pl.DataFrame
    """Documents without a good answer, a row each and source; see `LEFT_OUT`."""
    answers: pl.DataFrame
    """Every answer, with ``id`` and ``source`` of its document and the columns of `batched_requests.RECORD`."""
    made: tuple[SourceSummary, ...]
    spec: Mapping[str, Any]
    """How it was made; plain JSON values."""

    @property
    def unanswered(self) -> int:
        """Documents that the model did not answer for; the same call again asks only these."""
        return sum(one.rejected.get(UNANSWERED, 0) for one in self.made)


def answers_of(outcomes: Mapping[str, RoundOutcome], ids: Mapping[str, pl.Series]) -> pl.DataFrame:
    """List every answer of each source, by the ids that its tasks' rows have there."""
    tables = []
    for source, one in outcomes.items():
        records = pl.concat(one.records)
        named = records.with_columns(
            ids[source].gather(records["row"]).alias("id"), pl.lit(source).alias("source")
        )
        tables.append(named.select("id", "source", pl.exclude("id", "source", "row")))
    return pl.concat(tables)


def left_out_of(outcomes: Mapping[str, RoundOutcome], ids: Mapping[str, pl.Series]) -> pl.DataFrame:
    """List what has no good answer in each source, as `LEFT_OUT`."""
    rows = [
        (
            ids[source][one.row],
            source,
            one.part,
            one.reason,
            list(one.flags),
            one.attempts,
            one.message,
        )
        for source, outcome in outcomes.items()
        for one in outcome.rejected
    ]
    return pl.DataFrame(rows, schema=LEFT_OUT, orient="row")


def summaries(
    inputs: GenerationInputs, outcomes: Mapping[str, RoundOutcome]
) -> tuple[SourceSummary, ...]:
    """Count what became of each source."""
    return tuple(_summary(inputs, source, one) for source, one in outcomes.items())


def _summary(inputs: GenerationInputs, source: str, outcome: RoundOutcome) -> SourceSummary:
    records = pl.concat(outcome.records)
    flags = records["flags"].explode(empty_as_null=False).value_counts(sort=True)
    return SourceSummary(
        source=source,
        temperature=inputs.sources[source].temperature,
        documents=inputs.chosen,
        rewritten=len(outcome.accepted),
        rejected=dict(sorted(Counter(one.reason for one in outcome.rejected).items())),
        flags=dict(flags.iter_rows()),
        answers=records.height,
        fresh=int(records["fresh"].sum()),
        cut=sum(row in outcome.accepted for row in outcome.words),
        prompt_tokens=int(records["prompt_tokens"].sum()),
        completion_tokens=int(records["completion_tokens"].sum()),
    )


def spec_of(llm: LLM, inputs: GenerationInputs, collection: Collection) -> dict[str, Any]:
    """Say how texts were asked for, and of which collection."""
    prompt = inputs.template
    files = [Path(str(file)) for file in collection.spec.get("files", ())]
    return {
        "llm": llm.spec,
        "prompt": {
            "name": prompt.name,
            "text": prompt.text,
            **({"file": prompt.place} if prompt.place else {}),
        },
        "sources": {name: sampling.temperature for name, sampling in inputs.sources.items()},
        **{name: getattr(inputs.settings, name) for name in _PLAIN},
        "inputs": {str(file): sha256(file) for file in files if file.is_file()},
        "collection": {
            name: collection.spec[name] for name in ("path", "split") if name in collection.spec
        },
        "ranktilt": __version__,
    }
