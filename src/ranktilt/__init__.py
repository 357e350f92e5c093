"""RankTilt: what a ranker favours, how sure you can be, why, and how to correct it.

The *source* of a document is who wrote it, such as people or a language model. A *run* is the
ranked lists that a ranker returned, and a *tilt* is how far it favours one group of documents over
another, such as those of two sources. Twelve functions to begin with::

    load(folder)                 a collection: documents of two sources, queries, judgments
    ranker("bm25")               anything that ranks; ranker(text).rank(collection) is a run
    audit(collection, runs)      whom each run favours, with intervals and tests
    compare(new, old)            whether a tilt grew
    gate(audit, max_tilt=15)     pass or fail, for CI
    explain(collection)          how the texts of the sources differ
    mitigate(collection, ranker) corrections, and what each costs
    audit_sources(collection, rankers)   several sources or temperatures, each with the reference
    pairwise(collection, model)  which of two documents a language model chooses
    check(collection)            whether the comparison is fair
    report(result, "page.html")  a page that opens anywhere
    table(result, "markdown")    tables in other formats
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ranktilt._version import __version__
from ranktilt.extensions import set_paper_modules
from ranktilt.presenter import set_presenter

if TYPE_CHECKING:
    from ranktilt.adapters.ir_measures import as_ir_measures as as_ir_measures
    from ranktilt.adapters.mteb import as_mteb as as_mteb
    from ranktilt.adapters.pyterrier import as_pyterrier as as_pyterrier
    from ranktilt.auditing.audit import audit as audit
    from ranktilt.auditing.comparison.compare import compare as compare
    from ranktilt.auditing.comparison.ranks.result import RunRanks as RunRanks
    from ranktilt.auditing.comparison.result import Comparison as Comparison
    from ranktilt.auditing.controls.controls import controls as controls
    from ranktilt.auditing.gate.gate import gate as gate
    from ranktilt.auditing.gate.result import Gate as Gate
    from ranktilt.auditing.pairwise.audit import pairwise as pairwise
    from ranktilt.auditing.pairwise.result import PairwiseAudit as PairwiseAudit
    from ranktilt.auditing.replay_log.replay_log import replay_log as replay_log
    from ranktilt.auditing.replay_log.result import ReplayedLog as ReplayedLog
    from ranktilt.auditing.replay_log.runs import log_runs as log_runs
    from ranktilt.auditing.result import Audit as Audit
    from ranktilt.auditing.sequential import SequentialAudit as SequentialAudit
    from ranktilt.auditing.sequential import sequential_audit as sequential_audit
    from ranktilt.auditing.sources.source_audits import SourceAudits as SourceAudits
    from ranktilt.auditing.sources.source_audits import audit_sources as audit_sources
    from ranktilt.citing.cite import cite as cite
    from ranktilt.citing.comparison.result import CitationComparison as CitationComparison
    from ranktilt.citing.experiment.experiment import context_experiment as context_experiment
    from ranktilt.citing.experiment.result import ContextExperiment as ContextExperiment
    from ranktilt.citing.explain import explain_citations as explain_citations
    from ranktilt.citing.making.audit import cite_session as cite_session
    from ranktilt.citing.making.make import make_answers as make_answers
    from ranktilt.citing.making.save import save_answers as save_answers
    from ranktilt.citing.making.settings import AnswerMaking as AnswerMaking
    from ranktilt.citing.result import CitationAudit as CitationAudit
    from ranktilt.data.answers import Answers as Answers
    from ranktilt.data.bundled.reader import bundled as bundled
    from ranktilt.data.collection import Collection as Collection
    from ranktilt.data.formats.citations.answer_file import read_answers as read_answers
    from ranktilt.data.labels.labels import labelled as labelled
    from ranktilt.data.loading.load import load as load
    from ranktilt.data.mix import mix as mix
    from ranktilt.data.runs.run import Run as Run
    from ranktilt.data.save import save as save
    from ranktilt.errors import DataError as DataError
    from ranktilt.errors import MissingExtra as MissingExtra
    from ranktilt.errors import UserError as UserError
    from ranktilt.explaining.base import Probe as Probe
    from ranktilt.explaining.base import TextProbe as TextProbe
    from ranktilt.explaining.check import check as check
    from ranktilt.explaining.check_result import CheckResult as CheckResult
    from ranktilt.explaining.explain import explain as explain
    from ranktilt.explaining.explanation import Explanation as Explanation
    from ranktilt.explaining.factors.effects import factor_effects as factor_effects
    from ranktilt.explaining.factors.result import FactorEffects as FactorEffects
    from ranktilt.explaining.properties.gaps import explain_gaps as explain_gaps
    from ranktilt.explaining.properties.result import ExplainedGaps as ExplainedGaps
    from ranktilt.generation.answer.answer import answer as answer
    from ranktilt.generation.answer.save import save_answered as save_answered
    from ranktilt.generation.rewrite.rewrite import rewrite as rewrite
    from ranktilt.generation.rewrite.save import save_rewritten as save_rewritten
    from ranktilt.generation.settings import Answering as Answering
    from ranktilt.generation.settings import Rewriting as Rewriting
    from ranktilt.generation.versions.make import versions as versions
    from ranktilt.generation.versions.options import Crossing as Crossing
    from ranktilt.judging.grading.changed_facts import grade_versions as grade_versions
    from ranktilt.judging.grading.grading import grade as grade
    from ranktilt.judging.grading.settings import Grading as Grading
    from ranktilt.judging.judge import judge as judge
    from ranktilt.judging.result import JudgeAudit as JudgeAudit
    from ranktilt.measures.average_precision import AP as AP
    from ranktilt.measures.base import Estimand as Estimand
    from ranktilt.measures.base import GroupEstimand as GroupEstimand
    from ranktilt.measures.base import Measure as Measure
    from ranktilt.measures.base import estimand as estimand
    from ranktilt.measures.base import measure as measure
    from ranktilt.measures.contrast import relative_delta as relative_delta
    from ranktilt.measures.ndcg import nDCG as nDCG
    from ranktilt.measures.precision import P as P
    from ranktilt.measures.recall import R as R
    from ranktilt.measures.reciprocal_rank import RR as RR
    from ranktilt.measures.twins.base import TwinEstimand as TwinEstimand
    from ranktilt.mitigation.bench import bench as bench
    from ranktilt.mitigation.bench_result import Bench as Bench
    from ranktilt.mitigation.bench_result import Candidate as Candidate
    from ranktilt.mitigation.mitigate import mitigate as mitigate
    from ranktilt.mitigation.options import MitigationOptions as MitigationOptions
    from ranktilt.mitigation.query_split import QuerySplit as QuerySplit
    from ranktilt.mitigation.query_split import split_queries as split_queries
    from ranktilt.parallel.run_on import run_on as run_on
    from ranktilt.rankers.base import Ranker as Ranker
    from ranktilt.registry import ranker as ranker
    from ranktilt.reporting.output import table as table
    from ranktilt.reporting.report import report as report
    from ranktilt.training.cross_encoder import train_cross_encoder as train_cross_encoder
    from ranktilt.training.retriever import train_retriever as train_retriever
    from ranktilt.training.study import training_study as training_study
    from ranktilt.training.study_result import TrainingStudy as TrainingStudy

_NAMES = {
    "AP": "measures.average_precision",
    "AnswerMaking": "citing.making.settings",
    "Answering": "generation.settings",
    "Answers": "data.answers",
    "Audit": "auditing.result",
    "Bench": "mitigation.bench_result",
    "Candidate": "mitigation.bench_result",
    "CheckResult": "explaining.check_result",
    "CitationAudit": "citing.result",
    "CitationComparison": "citing.comparison.result",
    "Collection": "data.collection",
    "Comparison": "auditing.comparison.result",
    "ContextExperiment": "citing.experiment.result",
    "Crossing": "generation.versions.options",
    "DataError": "errors",
    "Estimand": "measures.base",
    "ExplainedGaps": "explaining.properties.result",
    "Explanation": "explaining.explanation",
    "FactorEffects": "explaining.factors.result",
    "Gate": "auditing.gate.result",
    "Grading": "judging.grading.settings",
    "GroupEstimand": "measures.base",
    "JudgeAudit": "judging.result",
    "Measure": "measures.base",
    "MissingExtra": "errors",
    "MitigationOptions": "mitigation.options",
    "P": "measures.precision",
    "PairwiseAudit": "auditing.pairwise.result",
    "Probe": "explaining.base",
    "QuerySplit": "mitigation.query_split",
    "R": "measures.recall",
    "RR": "measures.reciprocal_rank",
    "Ranker": "rankers.base",
    "ReplayedLog": "auditing.replay_log.result",
    "Rewriting": "generation.settings",
    "Run": "data.runs.run",
    "RunRanks": "auditing.comparison.ranks.result",
    "SequentialAudit": "auditing.sequential",
    "SourceAudits": "auditing.sources.source_audits",
    "TextProbe": "explaining.base",
    "TrainingStudy": "training.study_result",
    "TwinEstimand": "measures.twins.base",
    "UserError": "errors",
    "answer": "generation.answer.answer",
    "as_ir_measures": "adapters.ir_measures",
    "as_mteb": "adapters.mteb",
    "as_pyterrier": "adapters.pyterrier",
    "audit": "auditing.audit",
    "audit_sources": "auditing.sources.source_audits",
    "bench": "mitigation.bench",
    "bundled": "data.bundled.reader",
    "check": "explaining.check",
    "cite": "citing.cite",
    "cite_session": "citing.making.audit",
    "compare": "auditing.comparison.compare",
    "context_experiment": "citing.experiment.experiment",
    "controls": "auditing.controls.controls",
    "estimand": "measures.base",
    "explain": "explaining.explain",
    "explain_citations": "citing.explain",
    "explain_gaps": "explaining.properties.gaps",
    "factor_effects": "explaining.factors.effects",
    "gate": "auditing.gate.gate",
    "grade": "judging.grading.grading",
    "grade_versions": "judging.grading.changed_facts",
    "judge": "judging.judge",
    "labelled": "data.labels.labels",
    "load": "data.loading.load",
    "log_runs": "auditing.replay_log.runs",
    "make_answers": "citing.making.make",
    "measure": "measures.base",
    "mitigate": "mitigation.mitigate",
    "mix": "data.mix",
    "nDCG": "measures.ndcg",
    "pairwise": "auditing.pairwise.audit",
    "ranker": "registry",
    "read_answers": "data.formats.citations.answer_file",
    "relative_delta": "measures.contrast",
    "replay_log": "auditing.replay_log.replay_log",
    "report": "reporting.report",
    "rewrite": "generation.rewrite.rewrite",
    "run_on": "parallel.run_on",
    "save": "data.save",
    "save_answered": "generation.answer.save",
    "save_answers": "citing.making.save",
    "save_rewritten": "generation.rewrite.save",
    "sequential_audit": "auditing.sequential",
    "split_queries": "mitigation.query_split",
    "table": "reporting.output",
    "train_cross_encoder": "training.cross_encoder",
    "train_retriever": "training.retriever",
    "training_study": "training.study",
    "versions": "generation.versions.make",
}
"""Module of each public name, without ``ranktilt.``; it is imported when the name is first used."""

__all__ = ["__version__", *_NAMES]


def _presenter() -> Any:
    """Import the module that shows results, when a result is first shown."""
    return import_module("ranktilt.reporting.presenting")


# Two rooms are named here, because files that they import must reach them: results are shown by
# `reporting`, which imports the results, and tables of names include those of `papers`.
set_presenter(_presenter)
set_paper_modules("ranktilt.papers.dai", "ranktilt.papers.wang", "ranktilt.papers.askari")


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import ranktilt` stays quick."""
    if name not in _NAMES:
        raise AttributeError(f"module 'ranktilt' has no attribute {name!r}")
    return getattr(import_module(f"ranktilt.{_NAMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
