"""Cells of the papers' tables out of audits, checks, studies and explanations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ranktilt.auditing.comparison.compare import Comparison
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import ALL
from ranktilt.auditing.pairwise.result import PairwiseAudit
from ranktilt.auditing.result import Audit
from ranktilt.auditing.source_audits import SourceAudits
from ranktilt.errors import UserError
from ranktilt.experiments.tradeoff_result import Bench
from ranktilt.experiments.training_result import BASELINE, Kind, TrainingStudy
from ranktilt.probes.check import CheckResult
from ranktilt.probes.explain import Explanation
from ranktilt.rankers.spec import Stage, parse_stages
from ranktilt.reporting.papers.cells import PaperCell
from ranktilt.reporting.papers.layouts import (
    KINDS,
    LAYOUTS,
    first_stage,
    generator,
    is_reranked,
    of_gpt,
    system_names,
    temperature,
)
from ranktilt.reporting.provenance import folder
from ranktilt.reporting.views.compare import BEFORE_AND_AFTER, choices_of, ratios

_HUMAN, _LLM = "human", "llm"
_ASKED = ("attribute", "prompt", "query_template")
"""Options of a stage that say what it is asked for: conditions of one system."""
_LISTWISE, _WINDOWS = "listwise", ("window", "step")
_EXPOSURE = "ExposureRatio"
_BY_MODEL = (("dai-3", "dai-4", "dai-9"), KINDS["alone"])
"""Tables of one kind: of the usual models, of GPT, and of other temperatures."""
_USUAL = ("", "0.2")
"""Temperatures of the papers' main tables."""
_TRAINED: dict[str, tuple[Kind, ...]] = {
    "askari-2": ("supervised", "zero-shot"),
    "askari-3": ("supervised",),
    "askari-4": ("first stage",),
    "askari-5": ("seen",),
}
"""What a training study tests, by the table in which it stands."""
_SPLITS = {"dev": "validation"}
"""What Askari et al. call a split."""
Result = (
    Audit
    | CheckResult
    | SourceAudits
    | Explanation
    | PairwiseAudit
    | Comparison
    | Bench
    | TrainingStudy
)


def cells_of(result: Result, table: str) -> list[PaperCell]:
    """Find the cells of one table in a result."""
    scale = LAYOUTS[table].scale
    return [
        replace(cell, value=scale * cell.value) for cell in READERS[type(result)](result, table)
    ]


def tables_of(result: Result) -> list[str]:
    """Name the tables that a result is laid out as where nobody names one: those of its own kind."""
    if isinstance(result, SourceAudits):
        return _tables_of_sources(result)
    if isinstance(result, PairwiseAudit):
        return ["wang-3"]
    if isinstance(result, Comparison):
        return ["wang-fig4"] if choices_of(result) else []
    if isinstance(result, TrainingStudy):
        return [table for table in ("askari-1", *_TRAINED) if any(_of_training(result, table))]
    if isinstance(result, Bench):
        return [table for table in ("dai-fig10", "dai-fig11") if any(_of_bench(result, table))]
    if isinstance(result, Explanation):
        spectrum = "dai-fig8" if len(result.sources) > 1 else "dai-fig7"
        return [table for table in (spectrum, "dai-fig9") if any(_of_explanation(result, table))]
    if isinstance(result, CheckResult):
        homes = (_home(*generator(source), KINDS["alone"]) for source in result.sources)
        overlaid = ["dai-fig14"] if len(result.similarity) > 1 else []
        return ["dai-1", *dict.fromkeys(homes if result.effectiveness else ()), *overlaid]
    if result.spec.get("by") != "source":
        return ["wang-1" if result.spec.get("by") else "askari-2"] if result.measures else []
    of_pairs = [
        _home(*generator(b if a == _HUMAN else ""), _BY_MODEL[0]) for a, b in result.tilted_pairs
    ]
    return _with_rerankers(of_pairs, result.runs)


def _tables_of_sources(audits: SourceAudits) -> list[str]:
    """Name Table 9 for temperatures of one model, which stand beside each other; else each model's."""
    if spans_temperatures(audits):
        return ["dai-9"]
    homes = [
        _home(source.series, temperature(source.temperature), _BY_MODEL[0])
        for source in audits.sources
    ]
    return _with_rerankers(homes, audits.runs)


def spans_temperatures(audits: SourceAudits) -> bool:
    """Whether a model has sources at several temperatures."""
    known = [source for source in audits.sources if source.has_temperature]
    return len({source.series for source in known}) < len(known)


def _with_rerankers(homes: Sequence[str], runs: Sequence[str]) -> list[str]:
    again = {"dai-3": "dai-5", "dai-4": "dai-6"} if any(map(is_reranked, runs)) else {}
    return list(dict.fromkeys([*homes, *(again[name] for name in homes if name in again)]))


def belongs(cell: PaperCell, table: str) -> bool:
    """Whether a cell stands in a table that was not named, so that a result of several models fills several tables."""
    if LAYOUTS[table].reranked:
        return of_gpt(cell.generator) == (table == "dai-6") and cell.temperature in _USUAL
    return all(
        _home(cell.generator, cell.temperature, kind) == table
        for kind in _BY_MODEL
        if table in kind
    )


def made_by(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Say which command made a result, where one did."""
    return (f"Made by: {spec['command']}",) if spec.get("command") else ()


def _home(model: str, degree: str, tables: Sequence[str]) -> str:
    """The table of a kind in which the texts of a model at a temperature stand."""
    usual, gpt, other = tables
    return other if degree not in _USUAL else gpt if of_gpt(model) else usual


def _of_audit(audit: Audit, table: str) -> list[PaperCell]:
    name, by = folder(audit.spec), audit.spec.get("by")

    def keys(tilt: Effect) -> dict[str, str]:
        if by != "source" or tilt.a != _HUMAN:
            return {"condition": f"{tilt.a} against {tilt.b}"}
        model, degree = generator(tilt.b)
        return {"generator": model, "temperature": degree}

    if table in KINDS["mixed"]:
        return _mixed(audit.tilts, table, name, keys)
    if table in KINDS["groups"]:
        return [] if by in (None, "source") else list(_by_group(audit, table, name))
    if not audit.measures:
        return []
    if table == "askari-1":
        return list(_query_counts(audit, name))
    if table in KINDS["domains"] and by:
        return list(
            _means(audit, table, None, lambda group: {"dataset": group, "collection": name})
        )
    if table in KINDS["whole"]:
        return list(_means(audit, table, ALL, lambda _: {"dataset": name}))
    return []


def _by_group(audit: Audit, table: str, name: str) -> Iterator[PaperCell]:
    """Means of all documents, and the first exposure ratio of the first pair, by what each ranker was asked for."""
    found = {run: _condition(run, table) for run in audit.runs}
    systems = system_names(dict.fromkeys(bare for bare, condition in found.values() if condition))
    rows = [
        (row["run"], row["measure"], row["mean"])
        for row in audit.by_group().filter(group=ALL).iter_rows(named=True)
    ]
    ratios = [
        e for e in audit.estimates if e.estimand.name == _EXPOSURE and (e.a, e.b) == audit.pairs[0]
    ]
    values = {(e.run, repr(replace(e.estimand, cutoff=None))): e.value for e in reversed(ratios)}
    rows += [(run, measure, value) for (run, measure), value in reversed(values.items())]
    for run, measure, value in rows:
        bare, condition = found[run]
        if condition:
            front = {
                "table": table,
                "dataset": name,
                "system": systems[bare],
                "condition": condition,
            }
            yield PaperCell(**front, measure=measure, value=value)


def _condition(run: str, table: str) -> tuple[str, str]:
    """Split a ranker's text into the ranker and what it is asked for; empty where a table is not about it.

    Candidates that all rankers order alike are no part of one's name.
    """
    try:
        stages = parse_stages(run)
    except UserError:  # a run of someone else's is called what its file says
        stages = []
    asked = next(
        (stage.options["attribute"] for stage in stages if "attribute" in stage.options), "neutral"
    )
    dropped = set(_ASKED)
    if table == "wang-2":
        listwise = [stage for stage in stages if stage.name == _LISTWISE]
        asked = " ".join([asked, *_window(listwise[-1])]) if listwise else ""
        dropped |= set(_WINDOWS)
    kept = [
        replace(one, options={k: v for k, v in one.options.items() if k not in dropped})
        for one in stages
    ]
    if len(kept) > 1 and kept[0].name == "replay":
        kept = kept[1:]
    return ">>".join(map(str, kept)) or run, asked


def _window(stage: Stage) -> Iterator[str]:
    """Window and step of a listwise ranker, such as ``window=20``, the defaults where its text names none."""
    from ranktilt.rankers.llm.listwise import Listwise

    for name in _WINDOWS:
        yield f"{name}={stage.options.get(name, Listwise.__dataclass_fields__[name].default)}"


def _of_sources(audits: SourceAudits, table: str) -> list[PaperCell]:
    if table not in KINDS["mixed"]:
        return []
    keys = {
        source.source: {
            "generator": source.series,
            "temperature": temperature(source.temperature),
        }
        for source in audits.sources
    }
    return _mixed(audits.tilts, table, folder(audits.spec), lambda tilt: keys[tilt.b])


def _mixed(
    tilts: Iterable[Effect], table: str, dataset: str, keys: Callable[[Effect], Mapping[str, str]]
) -> list[PaperCell]:
    """Both groups' means over the queries that count for Relative Δ; beside human text, the other is the LLM's."""
    tilts = list(tilts)
    systems = _systems((t.run for t in tilts), table)
    cells = []
    for tilt in tilts:
        if tilt.run not in systems:
            continue
        front = {
            "dataset": dataset,
            "collection": "mixed",
            "system": systems[tilt.run],
            **keys(tilt),
        }
        other = _LLM if "generator" in front else tilt.b
        for target, mean in ((tilt.a, tilt.mean_a), (other, tilt.mean_b)):
            cells.append(
                PaperCell(table=table, target=target, measure=tilt.measure, value=mean, **front)
            )
    return cells


def _systems(runs: Iterable[str], table: str) -> dict[str, str]:
    """Rankers that a table is about, by name: those of one stage, or re-rankers beside what they start from."""
    names = system_names(dict.fromkeys(runs))
    again = [run for run in names if is_reranked(run)]
    if LAYOUTS[table].reranked:
        firsts = {first_stage(run) for run in again}
        return {
            run: name
            for run, name in names.items()
            if run in again or (again and first_stage(run) in firsts)
        }
    if table in ("dai-3", "dai-4") and len(again) < len(names):
        return {run: name for run, name in names.items() if run not in again}
    return names


def left_out(result: Result, table: str) -> list[str]:
    """Name the rankers of an audit that a table is not about: re-rankers, or those that nothing re-ranks."""
    if not isinstance(result, Audit | SourceAudits) or table not in KINDS["mixed"]:
        return []
    names = system_names(dict.fromkeys(t.run for t in result.tilts))
    return [name for run, name in names.items() if run not in _systems(names, table)]


def _means(
    audit: Audit, table: str, group: str | None, keys: Callable[[str], dict[str, str]]
) -> Iterator[PaperCell]:
    names = system_names(audit.runs)
    for row in audit.by_group().iter_rows(named=True):
        if group in (None, row["group"]):
            front = {
                "table": table,
                "system": names[row["run"]],
                "measure": row["measure"],
                **keys(row["group"]),
            }
            yield PaperCell(**front, value=row["mean"])


def _query_counts(audit: Audit, name: str) -> Iterator[PaperCell]:
    """How many queries have a relevant document, in all and in each group, whichever of them a ranker lacks."""
    split = _split(audit.spec.get("collection", {}))
    by = audit.spec.get("by") not in (None, "source")
    counts = (~np.isnan(audit.values[:, 0])).any(axis=0).sum(axis=1)
    for group, count in zip(audit.groups, counts.tolist(), strict=True):
        if group == ALL or by:
            dataset, other = (group, name) if by else (name, "")
            yield PaperCell(
                table="askari-1",
                dataset=dataset,
                collection=other,
                system="-",
                measure=split,
                value=count,
            )


def _split(spec: Any) -> str:
    split = spec.get("split") if isinstance(spec, Mapping) else None
    return f"queries {split}" if split else "queries"


def _of_check(found: CheckResult, table: str) -> list[PaperCell]:
    name = folder(found.spec)
    if table == "dai-1":
        return list(_statistics(found, name))
    if table == "askari-1":
        judged = found.contents.queries[-1].queries
        return [
            PaperCell(
                table=table,
                dataset=name,
                system="-",
                measure=_split(found.spec),
                value=float(judged),
            )
        ]
    if table == "dai-fig14":
        return list(_similarities(found, name))
    if table in KINDS["alone"] or table == "askari-4":
        return list(_each_alone(found, table, name))
    return []


def _statistics(found: CheckResult, name: str) -> Iterator[PaperCell]:
    judged, everything = found.contents.queries[-1], found.contents.queries[0]

    def cell(measure: str, value: float, target: str = "") -> PaperCell:
        return PaperCell(
            table="dai-1", dataset=name, target=target, measure=measure, value=float(value)
        )

    yield cell("queries", judged.queries)
    yield cell("query words", everything.words)
    for one in found.contents.sources:
        if one.source is None:
            continue
        yield cell("documents", one.documents, one.source)
        yield cell("document words", one.words, one.source)
        if one.queries:
            yield cell("relevant per query", one.relevant, one.source)


def _similarities(found: CheckResult, name: str) -> Iterator[PaperCell]:
    for one in found.similarity:
        values = (one.cosine.count, one.cosine.mean, *one.cosine.quartiles)
        for measure, value in zip(LAYOUTS["dai-fig14"].measures, values, strict=True):
            front = {
                "table": "dai-fig14",
                "dataset": name,
                "system": one.model,
                "target": one.source,
            }
            yield PaperCell(**front, measure=measure, value=float(value))


def _each_alone(found: CheckResult, table: str, name: str) -> Iterator[PaperCell]:
    """Both sources of a comparison, each ranked alone; of Askari et al., as collections of their own."""
    systems = system_names(dict.fromkeys(row.run for row in found.effectiveness))
    for row in found.effectiveness:
        model, degree = generator(row.source)
        for source, target, value in (
            (found.reference, found.reference, row.mean_a),
            (row.source, _LLM, row.mean_b),
        ):
            keys = {
                "dataset": name,
                "generator": model,
                "temperature": degree,
                "collection": "single-source",
                "target": target,
            }
            if table == "askari-4":
                keys = {"dataset": f"{name} ({source})"}
            yield PaperCell(
                table=table, system=systems[row.run], measure=row.measure, value=value, **keys
            )


def _of_explanation(found: Explanation, table: str) -> Iterator[PaperCell]:
    """The curves of a spectrum, or mean and quartiles of perplexities."""
    front = {"table": table, "dataset": folder(found.spec)}
    for one in found.results:
        kind, _, model = one.probe.partition(":")
        if (kind, table) == ("perplexity", "dai-fig9"):
            for row in one.rows:
                for measure in LAYOUTS[table].measures:
                    value = float(row["values" if measure == "documents" else measure])
                    cell = {
                        "system": model or "trigrams",
                        "target": row["source"],
                        "measure": measure,
                    }
                    yield PaperCell(**front, **cell, value=value)
        curves = [drawn for drawn in one.figures if kind == "spectrum" and LAYOUTS[table].curve]
        for drawn in curves:
            for source, heights in (
                drawn.series.items() if table == "dai-fig7" or len(drawn.series) > 1 else ()
            ):
                cell = {
                    "system": str(found.spec["ranker"]),
                    "target": source,
                    "measure": "relative singular value",
                }
                for index, height in enumerate(heights, start=1):
                    yield PaperCell(**front, **cell, condition=str(index), value=height)


def _of_bench(found: Bench, table: str) -> Iterator[PaperCell]:
    """Relative Δ of each source, or effectiveness on the reference's documents alone, by strength."""
    reference = str(found.spec.get("reference"))
    for method in found.methods:
        for one in found.strengths(method):
            front = {
                "table": table,
                "dataset": folder(found.spec),
                "system": method,
                "condition": f"{one.strength:g}",
            }
            for measure in found.measures:
                for pair in found.pairs if table == "dai-fig10" else ():
                    model, degree = generator(pair[1])
                    keys = {"generator": model, "temperature": degree, "measure": measure}
                    yield PaperCell(
                        **front, **keys, value=found.tilt(one.name, pair, measure).value
                    )
                if table == "dai-fig11" and reference in found.over:
                    yield PaperCell(
                        **front,
                        measure=measure,
                        value=found.mean(one.name, reference, measure).value,
                    )


def _of_comparison(found: Comparison, table: str) -> Iterator[PaperCell]:
    """Ratios of two models' choices of each kind of pairs."""
    for kind, change in choices_of(found).items() if table == "wang-fig4" else ():
        front = {
            "table": table,
            "dataset": folder(found.spec),
            "system": found.runs[0].old,
            "condition": kind,
        }
        for target, ratio in zip(BEFORE_AND_AFTER, ratios(change), strict=True):
            if np.isfinite(ratio.value):
                yield PaperCell(**front, target=target, measure="PairwiseRatio", value=ratio.value)


def _of_pairs(found: PairwiseAudit, table: str) -> Iterator[PaperCell]:
    """Shares and ratio of each kind of pairs; a ratio of nothing is left out."""
    for one in found.outcomes if table == "wang-3" else ():
        front = {
            "table": table,
            "dataset": folder(found.spec),
            "system": found.model,
            "condition": one.kind,
        }
        values = (one.unprotected.value, one.protected.value, one.ratio.value)
        for measure, value in zip(LAYOUTS[table].measures, values, strict=True):
            if np.isfinite(value):
                yield PaperCell(**front, measure=measure, value=value)


def _of_training(study: TrainingStudy, table: str) -> Iterator[PaperCell]:
    """Tables 1 to 5 of Askari et al."""
    if table == "askari-1":
        yield from _trained_on(study)
    for one in study.of_kind(*_TRAINED.get(table, ())):
        if table == "askari-3" and len(one.groups) == 1:
            continue
        for mean in one.means:
            dataset = mean.a if table == "askari-3" else one.name
            shown = mean.run != BASELINE or table not in ("askari-3", "askari-5")
            shown &= not mean.measure.startswith(
                "RR" if table == "askari-4" else ("R@", "R(")
            )  # as in the print
            if shown and (table == "askari-3" or mean.a == ALL):
                mark = LAYOUTS[table].mark if one.best(mean.run, mean.measure) else ""
                yield PaperCell(
                    table=table,
                    dataset=dataset,
                    system=mean.run,
                    measure=mean.measure,
                    value=mean.value,
                    mark=mark,
                )


def _trained_on(study: TrainingStudy) -> Iterator[PaperCell]:
    """Queries with an answer of the reference, by split and domain."""
    for one in (found for found in study.of_kind("first stage") if found.side == study.reference):
        for group in one.groups:
            value = float(one.mean(one.rankers[0], one.measures[0], group).queries)
            measure = f"queries {_SPLITS.get(one.split, one.split)}"
            yield PaperCell(
                table="askari-1", dataset=group, system="-", measure=measure, value=value
            )


READERS: Mapping[type[Any], Callable[[Any, str], Iterable[PaperCell]]] = {
    Audit: _of_audit,
    CheckResult: _of_check,
    SourceAudits: _of_sources,
    Explanation: _of_explanation,
    PairwiseAudit: _of_pairs,
    Comparison: _of_comparison,
    Bench: _of_bench,
    TrainingStudy: _of_training,
}
"""What finds the cells of a table in each kind of result that papers print."""
