"""RankTilt: what a ranker favours, how sure that is, why, and how to level it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ranktilt._version import __version__

if TYPE_CHECKING:
    from ranktilt.auditing.audit import audit
    from ranktilt.auditing.calibrate import calibrate
    from ranktilt.auditing.compare import compare
    from ranktilt.auditing.controls import controls
    from ranktilt.auditing.gate import gate
    from ranktilt.auditing.result import Audit
    from ranktilt.auditing.study import study
    from ranktilt.build.plan import Rewriting
    from ranktilt.build.rewrite import rewrite
    from ranktilt.build.written import save_rewritten
    from ranktilt.collection import Collection
    from ranktilt.data.bundled.reader import bundled
    from ranktilt.data.check import check
    from ranktilt.data.labelled import labelled
    from ranktilt.data.load import load
    from ranktilt.data.mix import mix
    from ranktilt.data.save import save
    from ranktilt.errors import DataError, MissingExtra, UserError
    from ranktilt.explain.validation import validate
    from ranktilt.measures.base import AP, RR, Measure, P, R, measure, nDCG
    from ranktilt.measures.delta import relative_delta
    from ranktilt.rankers.base import Ranker
    from ranktilt.reporting.table import table
    from ranktilt.reports import report
    from ranktilt.run import Run
    from ranktilt.specs import ranker

_NAMES = {
    "AP": "measures.base",
    "Audit": "auditing.result",
    "Collection": "collection",
    "DataError": "errors",
    "Measure": "measures.base",
    "MissingExtra": "errors",
    "P": "measures.base",
    "R": "measures.base",
    "RR": "measures.base",
    "Ranker": "rankers.base",
    "Rewriting": "build.plan",
    "Run": "run",
    "UserError": "errors",
    "audit": "auditing.audit",
    "bundled": "data.bundled.reader",
    "calibrate": "auditing.calibrate",
    "check": "data.check",
    "compare": "auditing.compare",
    "controls": "auditing.controls",
    "gate": "auditing.gate",
    "labelled": "data.labelled",
    "load": "data.load",
    "measure": "measures.base",
    "mix": "data.mix",
    "nDCG": "measures.base",
    "ranker": "specs",
    "relative_delta": "measures.delta",
    "report": "reports",
    "rewrite": "build.rewrite",
    "save": "data.save",
    "save_rewritten": "build.written",
    "study": "auditing.study",
    "table": "reporting.table",
    "validate": "explain.validation",
}

__all__ = [
    "AP", "RR", "Audit", "Collection", "DataError", "Measure", "MissingExtra", "P", "R", "Ranker", "Rewriting", "Run",
    "UserError",
    "__version__", "audit", "bundled", "calibrate", "check", "compare", "controls", "gate", "labelled", "load",
    "measure", "mix", "nDCG", "ranker", "relative_delta", "report", "rewrite", "save", "save_rewritten", "study",
    "table", "validate",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import ranktilt` stays quick."""
    if name not in _NAMES:
        raise AttributeError(f"module 'ranktilt' has no attribute {name!r}")
    return getattr(import_module(f"ranktilt.{_NAMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
