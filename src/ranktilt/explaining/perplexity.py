"""How predictable texts are to a language model: log perplexity (Dai et al., KDD 2024, 4.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.notes.probes import SourceMean
from ranktilt.data.text.ngram import cross_fitted_perplexity
from ranktilt.errors import UserError, unknown
from ranktilt.explaining.base import Distribution, Floats, ProbeResult, TextProbe
from ranktilt.models import checkpoint
from ranktilt.models.likelihood import CLASSES, EVERY, Likelihood
from ranktilt.rankers.base import Ranker

NGRAM = "ngram"
"""Name of the model of trigrams."""
_SAMPLE = 50
"""Number of texts on which two ways of masking are compared (`_masking_error`)."""


class PerplexityProbe(TextProbe):
    """Whether one source is easier to predict than the other.

    The mean of −ln P(token | the rest) over a text's tokens, without its title: what the paper
    calls log perplexity. `lm` is ``ngram``, trigrams learned from the collection's own reference
    texts (no text is scored by a model that saw it or its twin), or a model of transformers, a
    folder or a name on the hub. Of a masked model's tokens one in `every` is masked at once, 0
    being exact; on a sample that is compared with one at a time. With `context` ``origin`` a causal
    model reads the origin first: documents of other sources are scored after their twin, those of
    the reference not at all.
    """

    question = (
        "Are the texts of one source more predictable to a language model than those of the other?"
    )
    citation = "Dai et al., KDD 2024, sec. 4.2 and Fig. 9"

    def __init__(
        self,
        lm: str = NGRAM,
        *,
        kind: str = "auto",
        every: int = EVERY,
        context: str | None = None,
        precision: str = "float32",
        device: str | None = None,
        seed: int = 0,
    ) -> None:
        if context not in (None, "origin"):
            raise UserError(f"perplexity: context must be origin, got {context!r}")
        if kind not in ("auto", *CLASSES):
            raise unknown("kind of language model", kind, ("auto", *CLASSES))
        if lm == NGRAM and (context is not None or kind != "auto"):
            raise UserError(
                "perplexity: context and kind are options of a model of transformers: "
                "perplexity:MODEL(…)"
            )
        self.lm, self.context, self.seed = lm, context, seed
        self.name = "perplexity" if lm == NGRAM else f"perplexity:{lm}"  # type: ignore[misc]
        given_origin = ", given the origin" if context else ""
        unit = "nats per word (trigrams)" if lm == NGRAM else f"nats per token ({lm}{given_origin})"
        self.unit = unit  # type: ignore[misc]
        self._options: dict[str, Any] = {
            "kind": kind,
            "every": every,
            "precision": precision,
            "device": device,
        }
        self._extra_columns: dict[str, float] = {}

    @property
    def options(self) -> dict[str, Any]:
        """Options that make this probe again: ``PerplexityProbe(**options)``."""
        return {"lm": self.lm, **self._options, "context": self.context, "seed": self.seed}

    def model(self) -> Likelihood:
        """Return the language model, after checking that it can be used."""
        folder = checkpoint.find(self.lm, for_=f"perplexity:{self.lm}")
        model = Likelihood(folder=folder, model_name=self.lm, **self._options)
        model.check()
        return model

    def check(self) -> None:
        """Refuse a language model that is missing or cannot be used; it is not loaded yet."""
        if self.lm != NGRAM:
            self.model()

    def measure(self, collection: Collection, reference: str, ranker: Ranker | None) -> Floats:
        docs = collection.docs
        if self.lm == NGRAM:
            return cross_fitted_perplexity(
                docs["text"], docs["origin"], docs["source"].eq_missing(reference).to_numpy()
            )
        label = f"perplexity:{self.lm}"
        model = self.model()
        if self.context:
            values, cut = _given_origin(collection, reference, model, label)
            self._extra_columns = {"origins cut": cut}
            return values
        texts = docs["text"].to_list()
        if model.resolved_kind == "masked" and model.every:
            bias, spread = _masking_error(model, texts, self.seed, label)
            self._extra_columns = {"masking error": bias, "masking error sd": spread}
        return model.score(texts, label=label).perplexity

    def describe(self, collection: Collection, reference: str, measured: Floats) -> ProbeResult:
        """Describe the values of every source, and compare twins.

        With `context`, twins are not compared: the reference's texts are the context, and have no
        values themselves.
        """
        result = super().describe(collection, reference, measured)
        if not self.context:
            return result
        means = tuple(
            SourceMean(
                source=row["source"], mean=row["mean"], unit=self.unit, is_per_document=False
            )
            for row in result.rows
            if row["values"]
        )
        return replace(result, effects=(), findings=means)

    def rows(
        self, collection: Collection, distributions: Mapping[str, Distribution]
    ) -> list[dict[str, Any]]:
        """Make a row for each source; models of transformers add how exact their values are."""
        rows = super().rows(collection, distributions)
        return [{**row, **self._extra_columns} for row in rows]


def _given_origin(
    collection: Collection, reference: str, model: Likelihood, label: str
) -> tuple[Floats, int]:
    """Return the perplexity of each document after its origin, and how many origins were cut.

    The origin is the reference's text of the same origin; the model reads it first, and it is not
    scored. A model with a short input cuts it. The reference's documents have NaN.
    """
    docs = collection.docs.with_row_index("row")
    known = docs.filter(pl.col("source") == reference).select("origin", before="text")
    others = docs.filter(pl.col("source") != reference).join(
        known, on="origin", maintain_order="left"
    )
    values = np.full(docs.height, np.nan)
    scores = model.score(others["text"].to_list(), others["before"].to_list(), label=label)
    values[others["row"].to_numpy()] = scores.perplexity
    pairs = others.select("before", "text").iter_rows()
    cut = sum(not model.reads_whole(before, text) for before, text in pairs)
    return values, cut


def _masking_error(
    model: Likelihood, texts: list[str], seed: int, label: str
) -> tuple[float, float]:
    """Measure the error of masking several tokens together instead of one at a time.

    Returns the mean and the standard deviation of the difference in perplexity over a sample of
    texts; NaN without any text.
    """
    rows = np.random.default_rng(seed).permutation(len(texts))[:_SAMPLE].tolist()
    sample = [texts[row] for row in rows]
    exact = replace(model, every=0)
    at_once = model.score(sample, label=label).perplexity
    one_at_a_time = exact.score(sample, label=f"{label}, exactly").perplexity
    differences = at_once - one_at_a_time
    differences = differences[~np.isnan(differences)]
    if not len(differences):
        return np.nan, np.nan
    return float(differences.mean()), float(differences.std())
