"""RankTilt: what a ranker favours, how sure that is, why, and how to level it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ranktilt._version import __version__

if TYPE_CHECKING:
    from ranktilt.auditing.answer.gate import Gate, gate
    from ranktilt.auditing.audit import audit
    from ranktilt.auditing.calibration.calibrate import Calibration, calibrate
    from ranktilt.auditing.comparison.compare import Comparison, compare
    from ranktilt.auditing.controls import controls
    from ranktilt.auditing.pairwise.choices import pairwise
    from ranktilt.auditing.pairwise.result import PairwiseAudit
    from ranktilt.auditing.replay_log import ReplayedLog, log_runs, replay_log
    from ranktilt.auditing.result import Audit
    from ranktilt.auditing.sequential import SequentialAudit, audit_until
    from ranktilt.auditing.study import Study, study
    from ranktilt.collection import Collection
    from ranktilt.datasets.bundled.reader import bundled
    from ranktilt.datasets.check import CheckResult, check
    from ranktilt.datasets.labels import labelled
    from ranktilt.datasets.load import load
    from ranktilt.datasets.mix import mix
    from ranktilt.datasets.save import save
    from ranktilt.errors import DataError, MissingExtra, UserError
    from ranktilt.executing.run_on import run_on
    from ranktilt.experiments.level import Levelling, level
    from ranktilt.experiments.query_split import QuerySplit, split_queries
    from ranktilt.experiments.spiral import spiral
    from ranktilt.experiments.spiral_result import Spiral
    from ranktilt.experiments.tradeoff import bench
    from ranktilt.experiments.tradeoff_result import Bench
    from ranktilt.experiments.training_plan import training_study
    from ranktilt.experiments.training_result import TrainingStudy
    from ranktilt.generation.answer.answer import Answering, answer
    from ranktilt.generation.answer.save import save_answered
    from ranktilt.generation.rewrite.plan import Rewriting
    from ranktilt.generation.rewrite.rewrite import rewrite
    from ranktilt.generation.rewrite.save import save_rewritten
    from ranktilt.measures.average_precision import AP
    from ranktilt.measures.base import Estimand, GroupEstimand, Measure, estimand, measure
    from ranktilt.measures.contrast import relative_delta
    from ranktilt.measures.ndcg import nDCG
    from ranktilt.measures.precision import P
    from ranktilt.measures.recall import R
    from ranktilt.measures.reciprocal_rank import RR
    from ranktilt.measures.twins.base import TwinEstimand
    from ranktilt.planning.plan import CostPlan, plan
    from ranktilt.probes.base import Probe, TextProbe
    from ranktilt.probes.explain import Explanation, explain
    from ranktilt.probes.validation import Validation, validate
    from ranktilt.rankers.base import Ranker
    from ranktilt.registry import ranker
    from ranktilt.reporting.output import table
    from ranktilt.reporting.report import report
    from ranktilt.run import Run
    from ranktilt.training.cross_encoder import train_cross_encoder
    from ranktilt.training.retriever import train_retriever

_NAMES = {
    "AP": "measures.average_precision",
    "Answering": "generation.answer.answer",
    "Audit": "auditing.result",
    "Bench": "experiments.tradeoff_result",
    "Calibration": "auditing.calibration.calibrate",
    "CheckResult": "datasets.check",
    "Collection": "collection",
    "Comparison": "auditing.comparison.compare",
    "CostPlan": "planning.plan",
    "DataError": "errors",
    "Estimand": "measures.base",
    "Explanation": "probes.explain",
    "Gate": "auditing.answer.gate",
    "GroupEstimand": "measures.base",
    "Levelling": "experiments.level",
    "Measure": "measures.base",
    "MissingExtra": "errors",
    "P": "measures.precision",
    "PairwiseAudit": "auditing.pairwise.result",
    "Probe": "probes.base",
    "QuerySplit": "experiments.query_split",
    "R": "measures.recall",
    "RR": "measures.reciprocal_rank",
    "Ranker": "rankers.base",
    "ReplayedLog": "auditing.replay_log",
    "Rewriting": "generation.rewrite.plan",
    "Run": "run",
    "SequentialAudit": "auditing.sequential",
    "Spiral": "experiments.spiral_result",
    "Study": "auditing.study",
    "TextProbe": "probes.base",
    "TrainingStudy": "experiments.training_result",
    "TwinEstimand": "measures.twins.base",
    "UserError": "errors",
    "Validation": "probes.validation",
    "answer": "generation.answer.answer",
    "audit": "auditing.audit",
    "audit_until": "auditing.sequential",
    "bench": "experiments.tradeoff",
    "bundled": "datasets.bundled.reader",
    "calibrate": "auditing.calibration.calibrate",
    "check": "datasets.check",
    "compare": "auditing.comparison.compare",
    "controls": "auditing.controls",
    "estimand": "measures.base",
    "explain": "probes.explain",
    "gate": "auditing.answer.gate",
    "labelled": "datasets.labels",
    "level": "experiments.level",
    "load": "datasets.load",
    "log_runs": "auditing.replay_log",
    "measure": "measures.base",
    "mix": "datasets.mix",
    "nDCG": "measures.ndcg",
    "pairwise": "auditing.pairwise.choices",
    "plan": "planning.plan",
    "ranker": "registry",
    "relative_delta": "measures.contrast",
    "replay_log": "auditing.replay_log",
    "report": "reporting.report",
    "rewrite": "generation.rewrite.rewrite",
    "run_on": "executing.run_on",
    "save": "datasets.save",
    "save_answered": "generation.answer.save",
    "save_rewritten": "generation.rewrite.save",
    "spiral": "experiments.spiral",
    "split_queries": "experiments.query_split",
    "study": "auditing.study",
    "table": "reporting.output",
    "train_cross_encoder": "training.cross_encoder",
    "train_retriever": "training.retriever",
    "training_study": "experiments.training_plan",
    "validate": "probes.validation",
}

__all__ = [
    "AP",
    "RR",
    "Answering",
    "Audit",
    "Bench",
    "Calibration",
    "CheckResult",
    "Collection",
    "Comparison",
    "CostPlan",
    "DataError",
    "Estimand",
    "Explanation",
    "Gate",
    "GroupEstimand",
    "Levelling",
    "Measure",
    "MissingExtra",
    "P",
    "PairwiseAudit",
    "Probe",
    "QuerySplit",
    "R",
    "Ranker",
    "ReplayedLog",
    "Rewriting",
    "Run",
    "SequentialAudit",
    "Spiral",
    "Study",
    "TextProbe",
    "TrainingStudy",
    "TwinEstimand",
    "UserError",
    "Validation",
    "__version__",
    "answer",
    "audit",
    "audit_until",
    "bench",
    "bundled",
    "calibrate",
    "check",
    "compare",
    "controls",
    "estimand",
    "explain",
    "gate",
    "labelled",
    "level",
    "load",
    "log_runs",
    "measure",
    "mix",
    "nDCG",
    "pairwise",
    "plan",
    "ranker",
    "relative_delta",
    "replay_log",
    "report",
    "rewrite",
    "run_on",
    "save",
    "save_answered",
    "save_rewritten",
    "spiral",
    "split_queries",
    "study",
    "table",
    "train_cross_encoder",
    "train_retriever",
    "training_study",
    "validate",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import ranktilt` stays quick."""
    if name not in _NAMES:
        raise AttributeError(f"module 'ranktilt' has no attribute {name!r}")
    return getattr(import_module(f"ranktilt.{_NAMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
