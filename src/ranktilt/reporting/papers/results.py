"""Cells of the papers' tables out of audits, validations and studies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import ALL
from ranktilt.auditing.result import Audit
from ranktilt.auditing.study import Study
from ranktilt.probes.validation import Validation
from ranktilt.reporting.papers.cells import Cell
from ranktilt.reporting.papers.layouts import LAYOUTS
from ranktilt.reporting.papers.names import first_stage, generator, is_reranked, of_gpt, system_names, temperature
from ranktilt.reporting.views.provenance import folder

_HUMAN, _LLM = "human", "llm"
_MIXED = ("dai-3", "dai-4", "dai-5", "dai-6", "dai-9")
_ALONE = ("dai-2", "dai-7", "dai-8")
_UNGROUPED = ("wang-1", "askari-2", "askari-4", "askari-5")
_USUAL = ("", "0.2")
"""Temperatures of the papers' main tables."""
Result = Audit | Validation | Study


class _Sides(NamedTuple):
    """What the two sides of a comparison are called, and the keys that both share."""

    a: str
    b: str
    keys: Mapping[str, str]


def cells_of(result: Result, table: str) -> list[Cell]:
    """Find the cells of one table in a result."""
    if isinstance(result, Audit):
        found = _of_audit(result, table)
    elif isinstance(result, Validation):
        found = _of_validation(result, table)
    else:
        found = _mixed(result.tilts, table, folder(result.spec), _arms(result)) if table in _MIXED else []
    scale = LAYOUTS[table].scale
    return [replace(cell, value=scale * cell.value) for cell in found]


def tables_of(result: Result) -> list[str]:
    """Name the tables that a result is laid out as where nobody names one: those of its own kind."""
    if isinstance(result, Study):
        return ["dai-9"]
    if isinstance(result, Validation):
        kinds = (_kind(source, ("dai-2", "dai-7", "dai-8")) for source in result.sources)
        return ["dai-1", *dict.fromkeys(kinds if result.effectiveness else ())]
    if result.spec.get("by") != "source":
        return ["wang-1" if result.spec.get("by") else "askari-2"] if result.measures else []
    names = [_kind(_writer(*pair), ("dai-3", "dai-4", "dai-9")) for pair in result.tilted_pairs]
    again = {"dai-3": "dai-5", "dai-4": "dai-6"} if any(map(is_reranked, result.runs)) else {}
    return list(dict.fromkeys([*names, *(again[name] for name in names if name in again)]))


def belongs(cell: Cell, table: str) -> bool:
    """Whether a cell stands in a table that was not named, so that a result of several models fills several tables."""
    group = next(
        (group for group in (("dai-3", "dai-4", "dai-9"), ("dai-2", "dai-7", "dai-8")) if table in group), None
    )
    if table in ("dai-5", "dai-6"):
        return of_gpt(cell.generator) == (table == "dai-6") and cell.temperature in _USUAL
    return group is None or _table(cell.generator, cell.temperature, group) == table


def made_by(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Say which command made a result, where one did."""
    return (f"Made by: {spec['command']}",) if spec.get("command") else ()


def _kind(source: str, tables: tuple[str, str, str]) -> str:
    return _table(*generator(source), tables)


def _table(model: str, degree: str, tables: tuple[str, str, str]) -> str:
    usual, gpt, other = tables
    return other if degree not in _USUAL else gpt if of_gpt(model) else usual


def _writer(a: str, b: str) -> str:
    return b if a == _HUMAN else ""


def _of_audit(audit: Audit, table: str) -> list[Cell]:
    name = folder(audit.spec)
    if table in _MIXED:
        models = {(t.a, t.b): _two_sides(t.a, t.b, audit.spec) for t in audit.tilts}
        return _mixed(audit.tilts, table, name, lambda tilt: models[tilt.a, tilt.b])
    if not audit.measures:
        return []
    if table == "askari-1":
        return list(_query_counts(audit, name))
    if table == "askari-3" and audit.spec.get("by"):
        return list(_means(audit, table, None, lambda group: {"dataset": group, "collection": name}))
    if table == "wang-1" and audit.spec.get("by") in (None, "source"):
        return []
    if table in _UNGROUPED:
        condition = "neutral" if table == "wang-1" else ""
        return list(_means(audit, table, ALL, lambda _: {"dataset": name, "condition": condition}))
    return []


def _two_sides(a: str, b: str, spec: Mapping[str, Any]) -> _Sides:
    if spec.get("by") == "source" and a == _HUMAN:
        model, degree = generator(b)
        return _Sides(_HUMAN, _LLM, {"generator": model, "temperature": degree})
    return _Sides(a, b, {"condition": f"{a} against {b}"})


def _arms(study: Study) -> Callable[[Effect], _Sides]:
    keys = {a.source: {"generator": a.series, "temperature": temperature(a.temperature)} for a in study.sources}
    return lambda tilt: _Sides(study.reference, _LLM, keys[tilt.b])


def _mixed(tilts: Iterable[Effect], table: str, dataset: str, sides: Callable[[Effect], _Sides]) -> list[Cell]:
    """Both sides' means over the queries that count for Relative Δ."""
    tilts = list(tilts)
    systems = _systems((t.run for t in tilts), table)
    cells = []
    for tilt in tilts:
        if tilt.run not in systems:
            continue
        side = sides(tilt)
        front = {"dataset": dataset, "collection": "mixed", "system": systems[tilt.run], **side.keys}
        for target, mean in ((side.a, tilt.mean_a), (side.b, tilt.mean_b)):
            cells.append(Cell(table=table, target=target, measure=tilt.measure, value=mean, **front))
    return cells


def _systems(runs: Iterable[str], table: str) -> dict[str, str]:
    """Rankers that a table is about, by name: those of one stage, or re-rankers beside what they start from."""
    names = system_names(dict.fromkeys(runs))
    again = [run for run in names if is_reranked(run)]
    if table in ("dai-5", "dai-6"):
        firsts = {first_stage(run) for run in again}
        return {run: name for run, name in names.items() if run in again or (again and first_stage(run) in firsts)}
    if table in ("dai-3", "dai-4") and len(again) < len(names):
        return {run: name for run, name in names.items() if run not in again}
    return names


def left_out(result: Result, table: str) -> list[str]:
    """Name the rankers of an audit or study that a table is not about: re-rankers, or those that nothing re-ranks."""
    if isinstance(result, Validation) or table not in _MIXED:
        return []
    names = system_names(dict.fromkeys(t.run for t in result.tilts))
    kept = _systems(names, table)
    return [name for run, name in names.items() if run not in kept]


def _means(audit: Audit, table: str, group: str | None, keys: Callable[[str], dict[str, str]]) -> Iterator[Cell]:
    means = audit.by_group()
    names = system_names(audit.runs)
    for row in means.iter_rows(named=True):
        if group in (None, row["group"]):
            front = keys(row["group"])
            yield Cell(table=table, system=names[row["run"]], measure=row["measure"], value=row["mean"], **front)


def _query_counts(audit: Audit, name: str) -> Iterator[Cell]:
    """How many queries have a relevant document, in all and in each group, whichever of them a ranker lacks."""
    split = _split(audit.spec.get("collection", {}))
    by = audit.spec.get("by") not in (None, "source")
    counts = (~np.isnan(audit.values[:, 0])).any(axis=0).sum(axis=1)
    for group, count in zip(audit.groups, counts.tolist(), strict=True):
        if group == ALL or by:
            dataset, other = (group, name) if by else (name, "")
            yield Cell(table="askari-1", dataset=dataset, collection=other, system="-", measure=split, value=count)


def _split(spec: Any) -> str:
    split = spec.get("split") if isinstance(spec, Mapping) else None
    return f"queries {split}" if split else "queries"


def _of_validation(found: Validation, table: str) -> list[Cell]:
    name = folder(found.spec)
    if table == "dai-1":
        return list(_statistics(found, name))
    if table == "askari-1":
        judged = found.statistics.queries[-1].queries
        return [Cell(table=table, dataset=name, system="-", measure=_split(found.spec), value=float(judged))]
    if table in _ALONE or table == "askari-4":
        return list(_sides(found, table, name))
    return []


def _statistics(found: Validation, name: str) -> Iterator[Cell]:
    asked, everything = found.statistics.queries[-1], found.statistics.queries[0]

    def cell(measure: str, value: float, target: str = "") -> Cell:
        return Cell(table="dai-1", dataset=name, target=target, measure=measure, value=float(value))

    yield cell("queries", asked.queries)
    yield cell("query words", everything.words)
    for one in found.statistics.sources:
        yield cell("documents", one.documents, one.source)
        yield cell("document words", one.words, one.source)
        if one.queries:
            yield cell("relevant per query", one.relevant, one.source)


def _sides(found: Validation, table: str, name: str) -> Iterator[Cell]:
    systems = system_names(dict.fromkeys(row.run for row in found.effectiveness))
    for row in found.effectiveness:
        model, degree = generator(row.source)
        for target, value in ((found.reference, row.mean_a), (_LLM, row.mean_b)):
            cell = Cell(
                table=table, dataset=name, generator=model, temperature=degree, collection="single-source",
                system=systems[row.run], target=target, measure=row.measure, value=value,
            )  # fmt: skip
            if table == "askari-4":
                side = target if target == found.reference else row.source
                cell = replace(cell, dataset=f"{name} ({side})", target="", collection="", generator="", temperature="")
            yield cell
