"""The figures of a result for a paper or a notebook, as SVG, PDF or PNG, in print's size and fonts.

Most figures are those of the result's page, which its *view* makes. A *layout* describes a table or
figure of a paper; one with a function that draws adds a figure that no page has. A *drawing* is a
Vega-Lite specification.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from ranktilt.auditing.result import Audit
from ranktilt.data.artifact import names_files
from ranktilt.data.files import write_bytes
from ranktilt.errors import UserError, unknown_name
from ranktilt.optional import need
from ranktilt.reporting.document import Figure
from ranktilt.reporting.figures.drawing import Drawing
from ranktilt.reporting.layouts.layout import layouts
from ranktilt.reporting.provenance import folder
from ranktilt.reporting.reload import Loaded, LoadedAudit, LoadedSourceAudits
from ranktilt.reporting.views import view
from ranktilt.reporting.views.audit.audit import view as audit_view
from ranktilt.reporting.views.audit.source_audits import view as source_audits_view

Result = Any
"""A result, or an audit that was loaded with its collection."""
FORMATS = ("svg", "pdf", "png")
"""Formats of files."""
_PAPER_WIDTH = 240
"""Width of a figure in print, in points: that of one of two columns of a paper."""
_NOTEBOOK_WIDTH = 520
"""Width of a figure in a notebook, in pixels."""
_FONT_SIZES = {"labelFontSize": 7, "titleFontSize": 8, "titleFontWeight": "normal"}
"""Sizes of the fonts of axes and legends, in points."""
_PRINT_CONFIG = {
    "font": "sans-serif",
    "background": "white",
    "view": {"stroke": None},
    "text": {"fontSize": 7},
    "title": {"fontSize": 8, "fontWeight": "normal"},
    "axis": {**_FONT_SIZES, "gridColor": "#e9ecf1"},
    "legend": _FONT_SIZES,
}
"""Vega-Lite's configuration for a figure in print."""


@names_files
def paper_figures(
    results: Sequence[Result], *, format: str = "svg", layout: str = ""
) -> dict[str, bytes]:
    """Return the content of a file for each figure of the results, by the file's name.

    With a `layout`, such as ``dai-fig7``, only its figures are drawn.
    """
    if format not in FORMATS:
        raise unknown_name("format of a figure", format, FORMATS)
    need("vl_convert", extra="plots", for_="figures of papers")
    files: dict[str, bytes] = {}
    for result in results:
        prefix = _file_prefix(result, results)
        for _, figure in _figures(result):
            if _is_of_layout(figure, layout):
                name = (layout or figure.layout).replace("-fig", "-figure-") or _slug(figure.title)
                file = _unused_file_name(f"{prefix}{name}", format, files)
                files[file] = _file_content(figure, format)
    if not files:
        raise UserError(_no_figures_reason(results, layout))
    return files


def _is_of_layout(figure: Figure, layout: str) -> bool:
    """Tell whether a figure is of a layout; every figure is of the empty one."""
    # The spectrum of a single source is Figure 7 of Dai et al., those of several are Figure 8.
    is_spectrum = (layout, figure.layout) == ("dai-fig7", "dai-fig8")
    return layout in ("", figure.layout) or is_spectrum


def _file_content(figure: Figure, format: str) -> bytes:
    """Return a figure for print as the content of a file."""
    convert = need("vl_convert", extra="plots", for_="figures of papers")
    picture = getattr(convert, f"vegalite_to_{format}")(for_paper(figure.drawing))
    return picture.encode() if isinstance(picture, str) else bytes(picture)


@dataclass(frozen=True, kw_only=True)
class ResultFigure:
    """A figure that a notebook shows, and that can be saved for a paper."""

    figure: Figure
    """The figure."""

    def save(self, path: str | Path) -> Path:
        """Write the figure as SVG, PDF or PNG, by the ending of the path; needs ``[plots]``."""
        path = Path(path)
        format = path.suffix.removeprefix(".").lower()
        if format not in FORMATS:
            raise unknown_name("format of a figure", format, FORMATS)
        write_bytes(path, _file_content(self.figure, format))
        return path

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Return the figure for a notebook: as a Vega-Lite specification, and in words."""
        description = f"{self.figure.title}. {self.figure.description}"
        drawing = {**self.figure.drawing, "description": description, "width": _NOTEBOOK_WIDTH}
        return {
            "application/vnd.vegalite.v5+json": json.loads(_coloured(drawing)),
            "text/plain": repr(self),
        }

    def __repr__(self) -> str:
        return f"{self.figure.title}\n{self.figure.description}"


def result_figure(result: Any, name: str = "") -> ResultFigure:
    """Return the figure of a result by the name of its section or layout; by default the first."""
    figures = list(_figures(result))
    if not figures:
        raise UserError(_no_figures_reason([result], ""))
    for figure_name, figure in figures:
        if name in ("", figure_name, figure.layout):
            return ResultFigure(figure=figure)
    raise unknown_name("figure", name, [figure_name for figure_name, _ in figures])


def _figures(result: Any) -> Iterator[tuple[str, Figure]]:
    """Yield the name of every figure of a result, and the figure."""
    yield from _figures_of_sections(result)
    yield from _figures_of_layouts(result)


def _figures_of_sections(result: Any) -> Iterator[tuple[str, Figure]]:
    """Yield the figures of a result's document, named after their section.

    Where a section has several figures, they are numbered.
    """
    if isinstance(result, Audit | LoadedAudit):
        document = audit_view(result, budget=0)
    elif isinstance(result, LoadedSourceAudits):
        document = source_audits_view(result, budget=0)
    else:
        document = view(result)
    for section in document.shown_sections("paper"):
        figures = [block for block in section.blocks_for("paper") if isinstance(block, Figure)]
        for number, figure in enumerate(figures, start=1):
            yield section.name if len(figures) == 1 else f"{section.name}-{number}", figure


def _figures_of_layouts(result: Any) -> Iterator[tuple[str, Figure]]:
    """Yield the figures that layouts draw, named after their layout."""
    # A layout draws from an audit, or from an audit together with its collection and runs.
    drawable_results = [result, result.audit] if isinstance(result, Loaded) else [result]
    for layout in layouts().values():
        if layout.draw is None:
            continue
        kinds = tuple(selection.result for selection in layout.cells)
        for drawable in drawable_results:
            figures = layout.draw(drawable) if isinstance(drawable, kinds) else ()
            for figure in figures:
                yield layout.name, replace(figure, layout=layout.name)


def for_paper(drawing: Drawing) -> str:
    """Return a drawing as JSON, with the size, the fonts and the colours of print."""
    height = min(drawing["height"], _PAPER_WIDTH)
    return _coloured({**drawing, "config": _PRINT_CONFIG, "width": _PAPER_WIDTH, "height": height})


def _coloured(drawing: Drawing) -> str:
    """Return a drawing as JSON, with colours in place of the style sheet's variables.

    They are those of the page's light theme.
    """
    style = (
        resources.files("ranktilt.reporting")
        .joinpath("templates", "page.css")
        .read_text(encoding="utf-8")
    )
    palette = dict(
        re.findall(r"(--[a-z-]+): (#[0-9a-f]+)", style.partition(":root {")[2].partition("}")[0])
    )
    return re.sub(r"var\((--[a-z]+)\)", lambda match: palette[match[1]], json.dumps(drawing))


def _file_prefix(result: Result, results: Sequence[Result]) -> str:
    """Return the beginning of a result's file names; empty where it is the only one of its kind."""
    same_kind = [candidate for candidate in results if type(candidate) is type(result)]
    if len(same_kind) == 1:
        return ""
    spec = result.audit.spec if isinstance(result, Loaded) else result.spec
    return f"{_slug(folder(spec)) or same_kind.index(result) + 1}-"


def _unused_file_name(name: str, format: str, files: dict[str, bytes]) -> str:
    """Return a file name that is not in `files`, with a number if need be."""
    file, number = f"{name}.{format}", 2
    while file in files:
        file, number = f"{name}-{number}.{format}", number + 1
    return file


def _slug(text: str) -> str:
    """Turn a text into a part of a file name: lower-case letters, digits and hyphens."""
    plain = text.lower().replace("δ", "delta").replace("α", "alpha")
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:80]


def _no_figures_reason(results: Sequence[Any], layout: str) -> str:
    """Say why there is nothing to draw, and which command would make a result for it."""
    if layout in layouts():
        drawn_layout = layouts()[layout]
        return (
            f"{layout} shows {drawn_layout.shows}; "
            f"the results given hold none: {drawn_layout.command} makes one"
        )
    if not results:
        return "nothing to draw: no result was given"
    bare = [result.audit if isinstance(result, Loaded) else result for result in results]
    kinds = dict.fromkeys(type(result).__name__ for result in bare)
    hint = (
        "; an audit needs two groups with a defined Relative Δ" if Audit.__name__ in kinds else ""
    )
    return f"nothing to draw: {', '.join(kinds)} has no figures{hint}"
