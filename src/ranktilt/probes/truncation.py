"""How much of each document a model leaves unread."""

from __future__ import annotations

import numpy as np

from ranktilt.collection import Collection
from ranktilt.errors import UserError
from ranktilt.probes.base import Floats, TextProbe
from ranktilt.rankers.base import Ranker


class TruncationProbe(TextProbe):
    """The share of a document's tokens, special ones included, beyond what an encoder reads, in %."""

    name = "truncation"
    question = "Does the model cut off more of one source than of the other?"
    what = "% of tokens unread"
    needs_encoder = True

    def measure(self, collection: Collection, reference: str, ranker: Ranker | None) -> Floats:
        """Count the tokens of every document as the ranker reads it."""
        tokens = getattr(getattr(ranker, "encoder", None), "tokens", None)
        if tokens is None or not tokens.readable:
            raise UserError("truncation needs an encoder on this machine, such as -r dense:minilm (ranker=)")
        texts = collection.texts(getattr(ranker, "text", "text")).to_list()
        counts = tokens.counts(texts, f"{ranker!r}: counting tokens").astype(np.float64)
        limit = np.inf if tokens.limit is None else float(tokens.limit)
        return np.asarray(100 * np.maximum(1 - limit / counts, 0.0), dtype=np.float64)
