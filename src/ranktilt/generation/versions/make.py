"""Make versions by design: every document in combinations of factors, as one collection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.generation.batched_requests import ANSWER_COLUMNS, model_name
from ranktilt.generation.generated import LEFT_OUT, Generated, collection_paths, spec_of
from ranktilt.generation.rewrite.prepare import prepare_rewrites
from ranktilt.generation.versions.checks import ManipulationChecks, check_factors
from ranktilt.generation.versions.factors import Factor, read_factors, require_model
from ranktilt.generation.versions.judgments import carried
from ranktilt.generation.versions.options import Crossing
from ranktilt.generation.versions.writer import VersionWriter, bare_texts
from ranktilt.llm.base import LLM

ANSWERS = pl.Schema(
    {
        "id": pl.String(),
        "source": pl.String(),
        **{name: kind for name, kind in ANSWER_COLUMNS.items() if name != "row"},
    }
)
"""Columns of the answers to prompts."""


@dataclass(frozen=True, eq=False, kw_only=True)
class DesignedVersions(Generated):
    """A designed collection, how its factors changed the texts, and the requests to a model.

    `collection` has a document for each origin and run of the design, with a column ``factor:NAME``
    for each factor, ``low`` (as it is) or ``high``; the original is the document in which all are
    low. Judgments are carried over, except to versions whose factor ``facts`` is high.
    ``collection.spec["design"]`` says how it was made.
    """

    originals: Collection
    """The documents that versions were made of."""
    checks: ManipulationChecks
    """How the factors changed the texts."""

    def unite(self, qrels: pl.DataFrame) -> Collection:
        """Return the same documents under another split's judgments of the originals."""
        docs = self.collection.docs
        return Collection(docs, self.collection.queries, carried(qrels, docs), self.collection.spec)


def versions(
    collection: Collection,
    factors: Sequence[str | Factor],
    crossing: Crossing | None = None,
    *,
    by_rule: bool = False,
    llm: LLM | None = None,
) -> DesignedVersions:
    """Write each document in the combinations of a design's factors, and check what they did.

    Factors are applied in a fixed order: a collection's own rewrites, prompts, then rules. So
    versions that differ by rules share what a model wrote.

    Parameters
    ----------
    collection : Collection
        The collection whose human documents get versions, unless ``crossing.of`` names another
        source.
    factors : sequence of str
        What differs, such as ``length`` or ``facts``; ``MODULE:FUNCTION`` and files with prompts
        are your own.
    crossing : Crossing, optional
        The design, how many versions a document has, the seed; by default all combinations.
    by_rule : bool, optional
        Change texts by rule, without a language model.
    llm : LLM, optional
        The model for factors made by prompt: ``ranktilt.llm.base.llm("openai:NAME")``.

    Returns
    -------
    DesignedVersions
        `collection` has the versions, with columns ``factor:NAME``; `checks` says what each factor
        moved. Repeat the call to ask again for what a model did not answer.

    Raises
    ------
    UserError
        If there is no such factor or design, or a factor needs a model and none is given.
    """
    chosen = [
        read_factors([factor], by_rule=by_rule)[0] if isinstance(factor, str) else factor
        for factor in factors
    ]
    writer = VersionWriter.from_collection(collection, chosen, crossing or Crossing())
    require_model(chosen, has_model=llm is not None)
    changed = {factor.name: writer.apply(step, llm) for step, factor in enumerate(writer.order)}
    written = writer.collection("" if llm is None else model_name(llm))
    design = written.spec["design"]
    originals = writer.originals
    checks = ManipulationChecks(
        spec={**collection_paths(collection), "design": design},
        rows=check_factors(written, originals.docs, originals.qrels, chosen),
        changed=changed,
    )
    spec = {**written.spec, "design": {**design, "failed": list(checks.failed)}}
    designed = Collection(written.docs, written.queries, written.qrels, spec)
    return DesignedVersions(
        collection=designed,
        originals=originals,
        checks=checks,
        left_out=pl.concat([LEFT_OUT.to_frame(), *writer.left_out]),
        answers=pl.concat([ANSWERS.to_frame(), *writer.answers]),
        summaries=tuple(writer.summaries),
        spec=_spec(writer, chosen, llm),
    )


def _spec(writer: VersionWriter, factors: Sequence[Factor], llm: LLM | None) -> dict[str, Any]:
    """Return factors, seed and model, as JSON."""
    return {
        "factors": [factor.to_dict() for factor in factors],
        "seed": writer.crossing.seed,
        **_model_spec(writer, llm),
    }


def _model_spec(writer: VersionWriter, llm: LLM | None) -> dict[str, Any]:
    """Describe the model and the collection for the manifest."""
    prompted = [factor for factor in writer.order if factor.by == "model"]
    if llm is None or not prompted:
        return {"collection": collection_paths(writer.originals)}
    factor = prompted[0]
    rewriting = writer.crossing.rewriting(prompt=factor.prompt, source=factor.name)
    requests = prepare_rewrites(bare_texts(["text"]), llm, rewriting)
    spec = spec_of(llm, requests, writer.originals)
    names = ("llm", "top_p", "max_tokens", "attempts", "inputs", "collection", "ranktilt")
    return {name: spec[name] for name in names}
