"""Figures of a paper, looked into: where their texts stand, and what a file holds."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import combinations
from typing import Any

from ranktilt.reporting.papers.style import PaperFigure, paper_style

SVG = "{http://www.w3.org/2000/svg}"


@contextmanager
def gallery(made: Mapping[str, Callable[[], Iterable[PaperFigure]]]) -> Iterator[Callable[[str], list[PaperFigure]]]:
    """Figures by name in our style, laid out as they are saved; each is drawn once."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    found = dict[str, list[PaperFigure]]()

    def figures(name: str) -> list[PaperFigure]:
        if name not in found:
            found[name] = list(made[name]())
            for one in found[name]:
                FigureCanvasAgg(one.figure).draw()
        return found[name]

    with paper_style():
        yield figures


def texts(figure: Any) -> list[Any]:
    """Every text that is seen."""
    from matplotlib.text import Text

    hidden = {id(text) for axes in figure.axes for text in unseen(axes)}
    found = [one for one in figure.findobj(Text) if one.get_text().strip() and one.get_visible()]
    return [one for one in found if id(one) not in hidden]


def unseen(axes: Any) -> list[Any]:
    """Labels of ticks that are outside of an axis, or switched off, as beside a shared axis."""
    found = []
    for axis in (axes.xaxis, axes.yaxis):
        low, high = sorted(axis.get_view_interval())
        for every, places in ((axis.majorTicks, axis.get_majorticklocs()), (axis.minorTicks, axis.get_minorticklocs())):
            for number, tick in enumerate(every):
                inside = axes.axison and number < len(places) and low - 1e-9 <= tick.get_loc() <= high + 1e-9
                found += [tick.label2] if inside and tick.label1.get_visible() else [tick.label1, tick.label2]
        found.append(axis.get_offset_text())
    return found


def collisions(figure: Any) -> list[tuple[str, str]]:
    """Pairs of texts that lie on each other, by more than a pixel of a hundred an inch."""
    boxes = [(one.get_text(), one.get_window_extent().padded(-0.6)) for one in texts(figure)]
    return [(a, b) for (a, one), (b, other) in combinations(boxes, 2) if one.overlaps(other)]


def outside(figure: Any) -> list[str]:
    """Texts that leave the figure, by more than a pixel of a hundred an inch."""
    whole = figure.bbox.padded(1.0)
    boxes = [(one.get_text(), one.get_window_extent()) for one in texts(figure)]
    return [
        text
        for text, box in boxes
        if not (whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0 and box.y1 <= whole.y1)
    ]


def words(svg: bytes) -> list[str]:
    """The texts of an SVG file, in order; the file is read as XML."""
    return ["".join(one.itertext()) for one in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def letters(svg: bytes) -> set[float]:
    """The sizes of its letters in points."""
    styles = [one.get("style", "") for one in ElementTree.fromstring(svg).iter(f"{SVG}text")]
    found = [re.search(r"font-size: ([\d.]+)px|font: .*?([\d.]+)px", style) for style in styles]
    return {float(match[1] or match[2]) for match in found if match}


def inches(data: bytes) -> tuple[float, float]:
    """Width and height of an SVG or a PDF."""
    match = re.search(rb'width="([\d.]+)pt" height="([\d.]+)pt"', data) or re.search(
        rb"/MediaBox \[ ?0 0 ([\d.]+) ([\d.]+) ?\]", data
    )
    if match is None:
        raise AssertionError("no size")
    return round(float(match[1]) / 72, 3), round(float(match[2]) / 72, 3)
