"""The figures of a paper from audits, validations and studies, as SVG or PDF through matplotlib."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from ranktilt.auditing.result import Audit
from ranktilt.auditing.study import Study
from ranktilt.errors import UserError, unknown
from ranktilt.probes.validation import Validation
from ranktilt.reporting.opened import Opened
from ranktilt.reporting.papers.figures_audit import audit_plates
from ranktilt.reporting.papers.figures_study import study_plates
from ranktilt.reporting.papers.figures_style import FORMATS, Plate, ink, inked, slug
from ranktilt.reporting.papers.figures_validation import validation_plates
from ranktilt.reporting.views.provenance import folder

__all__ = ["FORMATS", "paper_figures"]

Result = Opened | Audit | Validation | Study


def paper_figures(results: Sequence[Result], *, format: Literal["svg", "pdf"] = "svg") -> dict[str, bytes]:
    """Draw every figure of a paper whose data the results hold.

    From a validation Figures 3 to 5 of its first paper (terms, map, similarity), from a study Relative Δ by
    temperature, from an audit Relative Δ of rankers × measures, effectiveness beside tilt and, where its collection
    and runs are there, who stands at which rank.

    Parameters
    ----------
    results : sequence of Opened, Audit, Validation or Study
        What is drawn.
    format : {"svg", "pdf"}, optional
        SVG keeps text as text, to be searched, edited and read aloud; PDF embeds its fonts as TrueType (type 42), as
        publishers ask.

    Returns
    -------
    dict of str to bytes
        Contents by file name, such as ``tilt.svg``, ``dai-figure-3.svg``; the names begin with the collection's, or a
        number, where several results of a kind would share one. A figure is 3.3 inches wide (one column) or 7 (both),
        its letters are 7 points or more, and it holds no title: what belongs in the caption is in the file's metadata.
        The same results give the same bytes.

    Raises
    ------
    UserError
        If the format is unknown, or the results hold nothing to draw.
    MissingExtra
        If matplotlib is not installed.

    References
    ----------
    Dai et al., KDD 2024, Fig. 3 to 5 and sec. 3.5.
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
