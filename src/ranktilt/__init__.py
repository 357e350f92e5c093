"""RankTilt: what a ranker favours, how sure that is, why, and how to level it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ranktilt._version import __version__

if TYPE_CHECKING:
    from ranktilt.auditing.audit import audit
    from ranktilt.auditing.calibration.calibrate import calibrate
    from ranktilt.auditing.compare import compare
    from ranktilt.auditing.controls import controls
    from ranktilt.auditing.gate import gate
    from ranktilt.auditing.result import Audit
    from ranktilt.auditing.study import study
    from ranktilt.collection import Collection
    from ranktilt.datasets.bundled.reader import bundled
    from ranktilt.datasets.check import check
    from ranktilt.datasets.labels import labelled
    from ranktilt.datasets.load import load
    from ranktilt.datasets.mix import mix
    from ranktilt.datasets.save import save
    from ranktilt.errors import DataError, MissingExtra, UserError
    from ranktilt.generation.rewrite.plan import Rewriting
    from ranktilt.generation.rewrite.rewrite import rewrite
    from ranktilt.generation.rewrite.save import save_rewritten
    from ranktilt.measures.average_precision import AP
    from ranktilt.measures.base import Measure, measure
    from ranktilt.measures.contrast import relative_delta
    from ranktilt.measures.ndcg import nDCG
    from ranktilt.measures.precision import P
    from ranktilt.measures.recall import R
    from ranktilt.measures.reciprocal_rank import RR
    from ranktilt.probes.base import Probe, TextProbe
    from ranktilt.probes.explain import explain
    from ranktilt.probes.validation import validate
    from ranktilt.rankers.base import Ranker
    from ranktilt.registry import ranker
    from ranktilt.reporting.output import table
    from ranktilt.reports import report
    from ranktilt.run import Run

_NAMES = {
    "AP": "measures.average_precision",
    "Audit": "auditing.result",
    "Collection": "collection",
    "DataError": "errors",
    "Measure": "measures.base",
    "MissingExtra": "errors",
    "P": "measures.precision",
    "Probe": "probes.base",
    "R": "measures.recall",
    "RR": "measures.reciprocal_rank",
    "Ranker": "rankers.base",
    "Rewriting": "generation.rewrite.plan",
    "Run": "run",
    "TextProbe": "probes.base",
    "UserError": "errors",
    "audit": "auditing.audit",
    "bundled": "datasets.bundled.reader",
    "calibrate": "auditing.calibration.calibrate",
    "check": "datasets.check",
    "compare": "auditing.compare",
    "controls": "auditing.controls",
    "explain": "probes.explain",
    "gate": "auditing.gate",
    "labelled": "datasets.labels",
    "load": "datasets.load",
    "measure": "measures.base",
    "mix": "datasets.mix",
    "nDCG": "measures.ndcg",
    "ranker": "registry",
    "relative_delta": "measures.contrast",
    "report": "reports",
    "rewrite": "generation.rewrite.rewrite",
    "save": "datasets.save",
    "save_rewritten": "generation.rewrite.save",
    "study": "auditing.study",
    "table": "reporting.output",
    "validate": "probes.validation",
}

__all__ = [
    "AP", "RR", "Audit", "Collection", "DataError", "Measure", "MissingExtra", "P", "Probe", "R", "Ranker", "Rewriting",
    "Run", "TextProbe", "UserError",
    "__version__", "audit", "bundled", "calibrate", "check", "compare", "controls", "explain", "gate", "labelled",
    "load", "measure", "mix", "nDCG", "ranker", "relative_delta", "report", "rewrite", "save", "save_rewritten",
    "study", "table", "validate",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import ranktilt` stays quick."""
    if name not in _NAMES:
        raise AttributeError(f"module 'ranktilt' has no attribute {name!r}")
    return getattr(import_module(f"ranktilt.{_NAMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
