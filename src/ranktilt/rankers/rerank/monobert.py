"""monoBERT: BERT with two labels, not relevant and relevant (Nogueira et al., 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ranktilt.errors import UserError, counted
from ranktilt.models.pairs import Limits
from ranktilt.models.scorer import Scorer, require_model
from ranktilt.rankers.rerank.base import ReRanker
from ranktilt.rankers.rerank.cross_encoder import Classifier, head_of, pair_limit


@dataclass(frozen=True)
class MonoBERT(ReRanker):
    """Ranks by the probability that a BERT with two labels gives to the relevant one.

    See `ReRanker` for the options.
    """

    name: ClassVar[str] = "monobert"

    def scorer_of(self, folder: Path, query: int | None, document: int | None, precision: str) -> Scorer:
        """Read the model's configuration; see `ReRanker.scorer_of`."""
        config = require_model(folder, self.name)
        head = head_of(folder, config, self.name)
        if config.get("model_type") != "bert" or head.labels != 2:
            got = f"{config.get('model_type')!r} with {counted(head.labels, 'label', 'labels')}"
            raise UserError(
                f"{folder}: expected a BERT with 2 labels for monobert, got {got}; cross-encoder:{folder} takes it"
            )
        limits = Limits(query, document, pair_limit(folder, config))
        return Classifier(folder, self.name, limits, precision, self.device, outputs=2, head=head)
