"""A document's tables as LaTeX, with the rules of booktabs; sentences, legend and notes are comments."""

from __future__ import annotations

from collections.abc import Iterator

from ranktilt.reporting.document import Document, Table
from ranktilt.reporting.render.grid import grid
from ranktilt.reporting.render.markdown import one_line

_SIGNS = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "−": "$-$", "Δ": r"$\Delta$", "–": "--",
    "|": r"\textbar{}", "<": r"\textless{}", ">": r"\textgreater{}", "±": r"$\pm$",
    "…": r"\ldots{}", "≤": r"$\leq$", "≥": r"$\geq$",
}  # fmt: skip


def latex_document(document: Document, *, notes: bool = True) -> str:
    r"""Write each table as a ``tabular``; they need ``\usepackage{booktabs}``."""
    lines = [line for block in document.blocks("latex") if isinstance(block, Table) for line in _table(block)]
    said = [line.text for line in document.lines("latex", notes=notes)]
    said += [*document.legend, *document.notes] if notes else []
    return "\n".join([*lines, *(f"% {one_line(text)}" for text in said)]) + "\n"


def _table(table: Table) -> Iterator[str]:
    found = grid(table, "latex")
    titles = (found.titles[0].capitalize(), *found.titles[1:]) if table.groups else found.titles
    yield rf"\begin{{tabular}}{{{''.join('r' if number else 'l' for number in found.numbers)}}}"
    yield r"\toprule"
    yield _line(titles)
    yield r"\midrule"
    for number, (cells, begins) in enumerate(zip(found.rows, found.begins, strict=True)):
        if number and begins:
            yield r"\midrule"
        yield _line(cells)
    yield r"\bottomrule"
    yield r"\end{tabular}"


def _line(cells: tuple[str, ...]) -> str:
    return " & ".join("".join(_SIGNS.get(c, c) for c in one_line(cell)) for cell in cells) + r" \\"
