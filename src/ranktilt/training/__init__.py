"""Level it: rankers trained on a collection's own judgments."""

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
