"""How predictable texts are to a language model: log perplexity (Dai et al., KDD 2024, 4.2).

It is measured by *trigrams* (how often three words follow each other in other texts), or by a model
of transformers: a *causal* one predicts each token from those before it, a *masked* one from those
around it. Its unit, the *nat*, is a factor of e. The *reference* is the source (author) that the
others are compared with; twins are two documents of the same *origin* by different sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.notes.probes import SourceMean
from ranktilt.data.text.ngram import cross_fitted_perplexity
from ranktilt.errors import UserError, unknown_name
from ranktilt.explaining.base import Distribution, Floats, ProbeResult, TextProbe
from ranktilt.models import checkpoint
from ranktilt.models.likelihood import CLASSES, EVERY, Likelihood
from ranktilt.rankers.base import Ranker

NGRAM = "ngram"
"""Name of the model of trigrams."""
_SAMPLE_SIZE = 50
"""Number of texts on which masking several tokens at once is compared with exact masking."""


class PerplexityProbe(TextProbe):
    """Whether one source is easier to predict than the other.

    The value of a text is the mean of −ln P(token | the rest) over its tokens, without its title.
    The paper calls this log perplexity.

    Parameters
    ----------
    lm : str, optional
        Language model. ``ngram`` stands for trigrams that are learned from the reference's texts in
        the collection; no text is scored by trigrams that were learned from it or its twin.
        Otherwise it is a folder or a name on the hub, of a model of transformers.
    kind : str, optional
        Kind of the model: ``causal``, ``masked`` or ``auto``, as its configuration says.
    every : int, optional
        For a masked model, mask each `every`-th token at once; 0 masks one token at a time, which
        is exact. The result says how far the two differ on a sample.
    context : str, optional
        With ``origin``, a causal model reads the reference's text before it scores a twin of it.
        The reference's own texts then have no values.
    precision : str, optional
        Arithmetic precision.
    device : str, optional
        Device, such as ``cuda``.
    seed : int, optional
        Random seed of the sample.
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
            raise unknown_name("kind of language model", kind, ("auto", *CLASSES))
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
        """Options with which the same probe can be made again: ``PerplexityProbe(**options)``."""
        return {"lm": self.lm, **self._options, "context": self.context, "seed": self.seed}

    def model(self) -> Likelihood:
        """Return the language model, after checking that it can be used."""
        folder = checkpoint.find(self.lm, for_=f"perplexity:{self.lm}")
        model = Likelihood(folder=folder, model_name=self.lm, **self._options)
        model.check()
        return model

    def check(self) -> None:
        """Raise an error if the language model is missing or cannot be used, without loading it."""
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
            values, cut_count = _given_origin(collection, reference, model, label)
            self._extra_columns = {"origins cut": cut_count}
            return values
        texts = docs["text"].to_list()
        if model.resolved_kind == "masked" and model.every:
            error, error_deviation = _masking_error(model, texts, self.seed, label)
            self._extra_columns = {"masking error": error, "masking error sd": error_deviation}
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
    """Return the perplexity of each document after its original, and how many originals were cut.

    The original is the reference's document of the same origin. The model reads it first, without
    scoring it, and cuts it if the two are longer than its input. The reference's documents have
    NaN.
    """
    docs = collection.docs.with_row_index("row")
    originals = docs.filter(pl.col("source") == reference).select("origin", original="text")
    versions = docs.filter(pl.col("source") != reference).join(
        originals, on="origin", maintain_order="left"
    )
    values = np.full(docs.height, np.nan)
    scores = model.score(versions["text"].to_list(), versions["original"].to_list(), label=label)
    values[versions["row"].to_numpy()] = scores.perplexity
    pairs = versions.select("original", "text").iter_rows()
    cut_count = sum(not model.reads_whole(original, text) for original, text in pairs)
    return values, cut_count


def _masking_error(
    model: Likelihood, texts: list[str], seed: int, label: str
) -> tuple[float, float]:
    """Measure the error of masking several tokens together instead of one at a time.

    Returns the mean and the standard deviation of the difference in perplexity over a sample of
    texts; NaN without any text.
    """
    rows = np.random.default_rng(seed).permutation(len(texts))[:_SAMPLE_SIZE].tolist()
    sample = [texts[row] for row in rows]
    exact_model = replace(model, every=0)
    approximate = model.score(sample, label=label).perplexity
    exact = exact_model.score(sample, label=f"{label}, exactly").perplexity
    differences = approximate - exact
    differences = differences[~np.isnan(differences)]
    if not len(differences):
        return np.nan, np.nan
    return float(differences.mean()), float(differences.std())
