"""Rankers trained on a collection's own judgments, and the study that compares trainings.

Start in `options` (what can be chosen), `training_set` (what is learned from) and the trainer of a
kind: `retriever`, `cross_encoder`, `lora`. `losses.DebiasedLoss` is Dai et al.'s constraint,
`evaluator` audits after each epoch; `study` trains on either side and compares (`study_result`).
May import explaining, auditing, rankers and below. A new argument is a field of `options`, set by
``--set``. Tests: tests/training.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ranktilt.training.evaluator import SourceBiasEvaluator
    from ranktilt.training.losses import DebiasedLoss

__all__ = ["DebiasedLoss", "SourceBiasEvaluator"]

_NAMES = {"DebiasedLoss": "losses", "SourceBiasEvaluator": "evaluator"}


def __getattr__(name: str) -> Any:
    """Import what subclasses a class of torch or sentence-transformers when it is first used."""
    if name not in _NAMES:
        raise AttributeError(f"module 'ranktilt.training' has no attribute {name!r}")
    return getattr(import_module(f"ranktilt.training.{_NAMES[name]}"), name)
