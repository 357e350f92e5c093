"""Make versions by design: every document in combinations of factors, as one collection.

A *factor* is a property of a text with two levels: ``low``, the text as it is, and ``high``, the
text changed by a rule, by a language model or by the rewrites of the collection. A *run* is a
combination of one level per factor, and a *design* the set of runs in which documents are written.
An *origin* is the id of the document that versions were made from.
"""

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
from ranktilt.generation.versions.judgments import carry_over
from ranktilt.generation.versions.options import Crossing
from ranktilt.generation.versions.writer import VersionWriter, collection_of_texts
from ranktilt.llm.base import LLM

ANSWERS = pl.Schema(
    {
        "id": pl.String(),
        "source": pl.String(),
        **{name: kind for name, kind in ANSWER_COLUMNS.items() if name != "row"},
    }
)
"""Columns of a table of answers; ``source`` is the name of the factor asked for."""


@dataclass(frozen=True, eq=False, kw_only=True)
class DesignedVersions(Generated):
    """A designed collection, how its factors changed the texts, and a model's answers.

    `collection` has a document for each origin and run of the design. Its column ``factor:NAME``
    for each factor is ``low`` or ``high``; the original is the version in which all factors are
    low. Versions have the judgments of their origin, except those whose factor ``facts`` is high.
    ``collection.spec["design"]`` says how the collection was made.
    """

    originals: Collection
    """The documents that versions were made from."""
    checks: ManipulationChecks
    """How the factors changed the texts."""

    def unite(self, qrels: pl.DataFrame) -> Collection:
        """Return the versions under the judgments of another split; `qrels` judge the originals."""
        docs = self.collection.docs
        return Collection(
            docs, self.collection.queries, carry_over(qrels, docs), self.collection.spec
        )


def versions(
    collection: Collection,
    factors: Sequence[str | Factor],
    crossing: Crossing | None = None,
    *,
    by_rule: bool = False,
    llm: LLM | None = None,
) -> DesignedVersions:
    """Write each document in the combinations of a design's factors, and check what they did.

    Factors are applied in a fixed order: first the collection's own rewrites, then prompts, then
    rules. Versions that differ by rules thus share what a model wrote.

    Parameters
    ----------
    collection : Collection
        The collection whose human documents get versions, unless ``crossing.of`` names another
        source.
    factors : sequence of str or Factor
        The properties that differ, such as ``length`` or ``facts``. A factor of your own is
        ``MODULE:FUNCTION``, or the path of a file with a prompt.
    crossing : Crossing, optional
        The design, how many versions a document has, the seed; by default all combinations.
    by_rule : bool, optional
        Change texts by rule where a factor has both a rule and a prompt.
    llm : LLM, optional
        The model for factors made by prompt: ``ranktilt.llm.base.llm("openai:NAME")``.

    Returns
    -------
    DesignedVersions
        `collection` has the versions, with columns ``factor:NAME``; `checks` says which properties
        of the texts each factor changed. Repeat the call to ask again for texts that the model did
        not answer.

    Raises
    ------
    UserError
        If there is no such factor or design, or a factor needs a model and none is given.
    """
    all_factors = [
        read_factors([factor], by_rule=by_rule)[0] if isinstance(factor, str) else factor
        for factor in factors
    ]
    writer = VersionWriter.from_collection(collection, all_factors, crossing or Crossing())
    require_model(all_factors, has_model=llm is not None)
    changed_shares = {
        factor.name: writer.apply(step, llm) for step, factor in enumerate(writer.order)
    }
    written = writer.collection("" if llm is None else model_name(llm))
    design = written.spec["design"]
    originals = writer.originals
    checks = ManipulationChecks(
        spec={**collection_paths(collection), "design": design},
        rows=check_factors(written, originals.docs, originals.qrels, all_factors),
        changed=changed_shares,
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
        spec=_spec(writer, all_factors, llm),
    )


def _spec(writer: VersionWriter, factors: Sequence[Factor], llm: LLM | None) -> dict[str, Any]:
    """Return factors, seed and model, as JSON."""
    return {
        "factors": [factor.to_dict() for factor in factors],
        "seed": writer.crossing.seed,
        **_model_spec(writer, llm),
    }


def _model_spec(writer: VersionWriter, llm: LLM | None) -> dict[str, Any]:
    """Describe the model, its settings and the collection, as JSON."""
    prompted = [factor for factor in writer.order if factor.by == "model"]
    if llm is None or not prompted:
        return {"collection": collection_paths(writer.originals)}
    # All prompts share model and settings, so a request for any text and any prompt has them.
    factor = prompted[0]
    rewriting = writer.crossing.rewriting(prompt=factor.prompt, source=factor.name)
    requests = prepare_rewrites(collection_of_texts(["text"]), llm, rewriting)
    spec = spec_of(llm, requests, writer.originals)
    names = ("llm", "top_p", "max_tokens", "attempts", "inputs", "collection", "ranktilt")
    return {name: spec[name] for name in names}
