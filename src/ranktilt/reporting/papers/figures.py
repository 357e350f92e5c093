"""The figures of a paper from audits, validations and studies, as SVG or PDF through matplotlib."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from ranktilt.auditing.result import Audit
from ranktilt.auditing.study import Study
from ranktilt.errors import UserError, unknown
from ranktilt.probes.validation import Validation
from ranktilt.reporting.papers.figures_audit import audit_plates
from ranktilt.reporting.papers.figures_study import study_plates
from ranktilt.reporting.papers.figures_style import FORMATS, Plate, ink, inked, slug
from ranktilt.reporting.papers.figures_validation import validation_plates
from ranktilt.reporting.reload import Opened
from ranktilt.reporting.views.provenance import folder

__all__ = ["FORMATS", "paper_figures"]

Result = Opened | Audit | Validation | Study


def paper_figures(results: Sequence[Result], *, format: Literal["svg", "pdf"] = "svg") -> dict[str, bytes]:
    """Draw every figure of a paper whose data the results hold.

    From a validation Figures 3 to 5 of its first paper (terms, map, similarity), from a study Relative Δ by
    temperature, from an audit Relative Δ of rankers × measures, effectiveness beside tilt and, where its collection
    and runs are there, who stands at which rank.
    """
    if format not in FORMATS:
        raise unknown("format of a figure", format, FORMATS)
    found: dict[str, bytes] = {}
    with inked():
        for front, result in zip(_fronts(results), results, strict=True):
            for plate in _plates(result):
                found[_free(f"{front}{plate.name}", format, found)] = ink(plate, format)
    if not found:
        raise UserError(_nothing(results))
    return found


def _plates(result: Result) -> Iterator[Plate]:
    if isinstance(result, Validation):
        return validation_plates(result)
    if isinstance(result, Study):
        return study_plates(result)
    return audit_plates(result if isinstance(result, Opened) else Opened(result))


def _kind(result: Result) -> str:
    return type(result.audit if isinstance(result, Opened) else result).__name__


def _spec(result: Result) -> Any:
    return (result.audit if isinstance(result, Opened) else result).spec


def _fronts(results: Sequence[Result]) -> list[str]:
    """What the file names of each result begin with: nothing where it is the only one of its kind."""
    kinds = Counter(map(_kind, results))
    names = [slug(name) if (name := folder(_spec(result))) else "" for result in results]
    told = Counter((_kind(result), name) for result, name in zip(results, names, strict=True))
    numbers: Counter[str] = Counter()
    fronts = []
    for result, name in zip(results, names, strict=True):
        kind = _kind(result)
        numbers[kind] += 1
        alone, clear = kinds[kind] == 1, bool(name) and told[kind, name] == 1
        fronts.append("" if alone else f"{name}-" if clear else f"{numbers[kind]}-")
    return fronts


def _free(name: str, format: str, taken: dict[str, bytes]) -> str:
    """Return a file name that is not taken yet."""
    file, number = f"{name}.{format}", 2
    while file in taken:
        file, number = f"{name}-{number}.{format}", number + 1
    return file


def _nothing(results: Sequence[Result]) -> str:
    if not results:
        return "nothing to draw: no result was given"
    needs = {
        "Audit": "an audit needs two groups with a defined Relative Δ, or its collection and runs",
        "Validation": "a validation needs twins",
        "Study": "a study needs a source whose temperature is known",
    }
    kinds = dict.fromkeys(map(_kind, results))
    return f"nothing to draw: {'; '.join(needs[kind] for kind in kinds)}"
