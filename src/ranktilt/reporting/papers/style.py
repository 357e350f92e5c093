"""How a paper's figure looks: sizes, fonts, and marks that are told apart in grey and by the colour-blind."""

from __future__ import annotations

import io
import logging
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

from ranktilt._version import __version__
from ranktilt.errors import unknown
from ranktilt.optional import need
from ranktilt.reporting.glossary.glossary import visible

FORMATS = ("svg", "pdf")
COLUMN, PAGE = 3.3, 7.0
"""Widths in inches: of one column, and of both."""
TALLEST = 8.6
"""Inches; what needs more goes on a figure of its own."""
SIZE, SMALL = 8.0, 7.0
"""Points: of axis titles, and of everything else."""
INCH = 72.0
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#8C6500", "#56B4E9", "#000000", "#777777")
"""Told apart by the colour-blind (after Okabe and Ito)."""
MARKS = ("o", "D", "s", "^", "P", "X", "v", "*")
DASHES = ("-", (0, (4, 1.5)), (0, (1, 1.2)), (0, (4, 1.2, 1, 1.2)), (0, (7, 2)), (0, (2.5, 1)), (0, (7, 1, 1, 1)), "-")
HATCH, TINT = "//////", "#CFE3F1"
DARK, DIM, PALE = "#222222", "#6B6B6B", "#E7E7E7"
_OURS: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": DARK,
    "axes.labelcolor": DARK,
    "axes.labelpad": 3.0,
    "axes.labelsize": SIZE,
    "axes.linewidth": 0.6,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlepad": 4.0,
    "axes.titlesize": SMALL,
    "figure.constrained_layout.h_pad": 0.03,
    "figure.constrained_layout.w_pad": 0.03,
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "Helvetica"],
    "font.size": SMALL,
    "hatch.linewidth": 0.5,
    "legend.borderaxespad": 0.2,
    "legend.borderpad": 0.1,
    "legend.columnspacing": 1.5,
    "legend.fontsize": SMALL,
    "legend.frameon": False,
    "legend.handlelength": 2.2,
    "legend.handletextpad": 0.6,
    "legend.labelspacing": 0.3,
    "lines.linewidth": 1.1,
    "lines.markersize": 4.0,
    "pdf.fonttype": 42,  # TrueType, whole letters that can be searched; publishers refuse type 3
    "svg.fonttype": "none",  # text stays text: to be searched, edited and read aloud
    "svg.hashsalt": "ranktilt",
    "text.color": DARK,
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "text.usetex": False,
    "xtick.color": DARK,
    "xtick.labelsize": SMALL,
    "xtick.major.pad": 2.0,
    "xtick.major.size": 2.5,
    "xtick.major.width": 0.6,
    "xtick.minor.size": 1.5,
    "xtick.minor.width": 0.4,
    "ytick.color": DARK,
    "ytick.labelsize": SMALL,
    "ytick.major.pad": 2.0,
    "ytick.major.size": 2.5,
    "ytick.major.width": 0.6,
}
_FAMILY = "DejaVu Sans"
_UNWRITABLE = re.compile("[\ud800-\udfff\ufffe\uffff]")
_GAP, _LONGEST = 6.0, 300
_BESIDE, _BETWEEN = SMALL * (2.2 + 0.6), SMALL * 1.5
"""Points: of a mark and its gap, and between columns of a legend."""


@dataclass(frozen=True, eq=False)
class PaperFigure:
    """One figure and its caption."""

    name: str
    """Of its file, without what tells several results apart and without the format."""
    figure: Any
    """As matplotlib drew it, with no title inside."""
    title: str
    """What it shows, in a few words."""
    says: str
    """How it is read, and the numbers that a caption needs."""


@contextmanager
def paper_style() -> Iterator[None]:
    """Draw with our own settings, whatever the reader's are, and say nothing; afterwards all is as it was."""
    loud = logging.getLogger("matplotlib")
    before = loud.level
    loud.setLevel(logging.ERROR)  # no word of a home that cannot be written or a cache of fonts
    try:
        style = library("matplotlib.style")
        with style.context(["default", _OURS]), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            yield
    finally:
        loud.setLevel(before)


def library(module: str) -> Any:
    """Import a part of matplotlib; `MissingExtra` if it is not installed."""
    return need(module, extra="plots", for_="drawing figures")


def blank(width: float, height: float) -> Any:
    """Return an empty figure of a size in inches, whose parts find their places."""
    return library("matplotlib.figure").Figure((width, height), layout="constrained")


def file_of(drawn: PaperFigure, format: str) -> bytes:
    """Write a figure as the bytes of a file, the same at every time."""
    if format not in FORMATS:
        raise unknown("format of a figure", format, FORMATS)
    title, says, maker = label(drawn.title), label(drawn.says), f"RankTilt {__version__}"
    about = {
        "svg": {"Title": title, "Description": says, "Creator": maker, "Date": None},
        "pdf": {"Title": title, "Subject": says, "Creator": maker, "Producer": "matplotlib", "CreationDate": None},
    }[format]
    buffer = io.BytesIO()
    drawn.figure.savefig(buffer, format=format, metadata=about)
    data = buffer.getvalue()
    if format == "svg":  # what a browser reads aloud
        data = data.replace(b"<svg ", b'<svg role="img" ', 1)
        data = data.replace(b"</title>", f"</title>\n <desc>{escape(says)}</desc>".encode(), 1)
    return data


def label(text: str) -> str:
    """Make a text fit to be drawn: one line, nothing hidden in it, nothing that a file cannot hold."""
    shown = visible(text.replace("\n", " ").replace("\t", " ").replace("\r", " "))
    return _UNWRITABLE.sub(lambda match: f"\\u{ord(match.group()):04x}", shown)


def breadth(text: str, size: float = SMALL) -> float:
    """Measure a text in points."""
    path = library("matplotlib.textpath").text_to_path
    fonts = library("matplotlib.font_manager")
    wide, _, _ = path.get_text_width_height_descent(text, fonts.FontProperties(family=_FAMILY, size=size), False)
    return float(wide)


def fitted(text: str, room: float, size: float = SMALL) -> str:
    """Return a text as a label, with an ellipsis in its middle where it is wider than so many points."""
    text = label(text)
    text = text if len(text) <= _LONGEST else _cut(text, _LONGEST)
    if breadth(text, size) <= room:
        return text
    kept = len(text) - 1
    while kept > 1 and breadth(_cut(text, kept), size) > room:
        kept -= 1
    return _cut(text, kept)


def _cut(text: str, kept: int) -> str:
    return f"{text[: (kept + 1) // 2]}…{text[len(text) - kept // 2 :]}"


def lines_of(parts: Sequence[str], room: float, *, size: float = SMALL) -> str:
    """Join parts by commas to lines that are no wider than so many points."""
    rows: list[str] = []
    for part in parts:
        joined = f"{rows[-1]}, {part}" if rows else part
        if rows and breadth(joined, size) <= room:
            rows[-1] = joined
        else:
            rows.append(part)
    return "\n".join(rows)


def favours(a: str, b: str, room: float) -> str:
    """Say what the signs of a tilt mean, in lines of so many points."""
    parts = [f"{sign} {fitted(f'favours {name}', room - 2 * SMALL)}" for sign, name in zip("+−", (a, b), strict=True)]
    return lines_of(parts, room)


def legend(figure: Any, handles: Sequence[Any], names: Sequence[str]) -> None:
    """Name the marks below a figure, in as many columns as it has room for."""
    room = figure.get_figwidth() * INCH - 2 * _GAP
    texts = [fitted(name, room - _BESIDE) for name in names]
    made = figure.legend(handles, ["."] * len(texts), loc="outside lower center", ncols=_abreast(texts, room))
    for drawn, text in zip(made.get_texts(), texts, strict=True):
        drawn.set_text(text)  # as a label a name that begins with _ would be left out


def _abreast(texts: Sequence[str], room: float) -> int:
    """Most columns that the names of a legend have room for; each is as wide as its widest."""
    wide = [breadth(text) + _BESIDE for text in texts]
    for columns in range(len(wide), 1, -1):
        most = -(-len(wide) // columns)
        parts = [wide[first : first + most] for first in range(0, len(wide), most)]
        if len(parts) == columns and sum(map(max, parts)) + (columns - 1) * _BETWEEN <= room:
            return columns
    return 1


def slug(text: str) -> str:
    """Make a part of a file's name: small letters, digits, points and hyphens, no more than sixty."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower())[:60].strip("-.") or "x"


def panels(figure: Any, rows: int, columns: int, count: int, below: str) -> list[Any]:
    """Return so many panels on shared scales; the lowest of each column is labelled below."""
    every = list(figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat)
    for place, axes in enumerate(every[:count]):
        if place + columns >= count:
            axes.set_xlabel(below)
            axes.tick_params(labelbottom=True)
    for axes in every[count:]:
        axes.set_axis_off()
    return every[:count]


def level_band(axes: Any, level: float, margin: float) -> None:
    """Draw the level value of a tilt, and shade what counts as level."""
    if margin:
        axes.axhspan(level - margin, level + margin, color=PALE, linewidth=0, zorder=0)
    axes.axhline(level, color=DARK, linewidth=0.7, zorder=1)


def error_bars(values: Sequence[float], lows: Sequence[float], highs: Sequence[float]) -> Any:
    """Return the lengths of bars below and above values; none where they are undefined."""
    at = np.asarray(values, dtype=float)
    return np.clip(np.nan_to_num([at - np.asarray(lows), np.asarray(highs) - at]), 0, None)


def colour(number: int) -> str:
    """Return the colour of so many-th name."""
    return COLOURS[number % len(COLOURS)]


def mark(number: int) -> str:
    """Return its mark; from the ninth name on it goes with another colour."""
    return MARKS[(number + number // len(MARKS)) % len(MARKS)]


def dash(number: int) -> Any:
    """Return its dashes; from the ninth name on they go with another colour."""
    return DASHES[(number + number // len(DASHES)) % len(DASHES)]
