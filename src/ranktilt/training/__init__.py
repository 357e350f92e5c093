"""Rankers trained on a collection's own judgments, and the study that compares trainings.

A training learns that a query's positives, its relevant documents, come before its negatives. A
*twin* is an LLM's version of a positive; the debiased constraint keeps it from scoring above the
positive. A *body* is the encoder that a training starts from.

Start in `options` (the choices), `training_set` (the material) and the command of a kind:
`cross_encoder`, `retriever` (with `mining`, its negatives), and `lora` (with `pair_examples`, its
prompts). `batches` draws the rows of each epoch, `trainer` runs and resumes a training.
`losses.DebiasedLoss` is Dai et al.'s constraint, `evaluator` audits after each epoch. `study`
trains on either side, and its parts are called `study_…`: options, collections, rankers, rankings,
evaluation, comparison, and the stored result. May import explaining, auditing, rankers and below. A
new argument is a field of `options`, set by ``--set``. Tests: tests/training.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ranktilt.training.evaluator import SourceBiasEvaluator
    from ranktilt.training.losses import DebiasedLoss

__all__ = ["DebiasedLoss", "SourceBiasEvaluator"]

_NAMES = {"DebiasedLoss": "losses", "SourceBiasEvaluator": "evaluator"}
"""Module of each name; these need torch, and are imported when a name is first used."""


def __getattr__(name: str) -> Any:
    """Import a class that needs torch or sentence-transformers when it is first used."""
    if name not in _NAMES:
        raise AttributeError(f"module 'ranktilt.training' has no attribute {name!r}")
    return getattr(import_module(f"ranktilt.training.{_NAMES[name]}"), name)
