"""One result as its page, or several as the parts of one page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ranktilt.auditing.study import Study
from ranktilt.errors import UserError, counted, listed
from ranktilt.probes.validation import Validation
from ranktilt.reporting.document import Document, Explorer, Section, Sentence
from ranktilt.reporting.explorer.section import BUDGET, explorer
from ranktilt.reporting.reload import Opened
from ranktilt.reporting.render.html import html_document
from ranktilt.reporting.views import view
from ranktilt.reporting.views.audit import view as audit_view

Result = Opened | Validation | Study

_LONGEST = 160
"""Characters of a headline that says what each result says."""
_VERDICTS = {
    "favours": ("favours one side", "favour one side"),
    "level": ("is level", "are level"),
    "inconclusive": ("is inconclusive", "are inconclusive"),
}
_KINDS = {"Opened": ("audit", "audits"), "Validation": ("validation", "validations"), "Study": ("study", "studies")}


def report_page(results: Sequence[Result], *, texts: bool = True, budget: int = BUDGET) -> str:
    """Write results as the parts of one page; their explorers share the room of `budget` characters."""
    if not results:
        raise UserError("a report needs a result: an audit, a validation or a study")
    pages = [audit_view(one, texts=texts) if isinstance(one, Opened) else view(one) for one in results]
    pages = _within(budget, results, pages)
    return html_document(pages[0] if len(pages) == 1 else _joined(results, pages))


def _carried(section: Section) -> int:
    """Characters that a section's explorer takes; 0 where it has none."""
    return sum(len(one.lists) + len(one.texts) for one in section.blocks if isinstance(one, Explorer))


def _within(budget: int, results: Sequence[Result], pages: Sequence[Document]) -> list[Document]:
    """Share the room for explorers evenly; what a small one does not need is for the others."""
    found = list(pages)
    sizes = [sum(map(_carried, page.sections)) for page in pages]
    waiting = sorted((number for number, size in enumerate(sizes) if size), key=lambda number: sizes[number])
    left = budget
    for place, number in enumerate(waiting):
        share, result = left // (len(waiting) - place), results[number]
        if sizes[number] > share and isinstance(result, Opened):
            smaller = explorer(result, budget=max(share, 1))
            sections = tuple(_exchanged(section, smaller) for section in pages[number].sections)
            found[number] = replace(pages[number], sections=sections)
        left -= min(sizes[number], share)
    return found


def _exchanged(section: Section, smaller: Explorer | None) -> Section:
    blocks = (smaller if isinstance(block, Explorer) and smaller else block for block in section.blocks)
    return replace(section, blocks=tuple(blocks))


def _joined(results: Sequence[Result], pages: Sequence[Document]) -> Document:
    titles = _distinct([page.kind for page in pages])
    sections, verdicts = list[Section](), list[Sentence]()
    for number, (title, page) in enumerate(zip(titles, pages, strict=True), start=1):
        sections += [replace(one, name=f"part{number}-{one.name}", part=title) for one in page.sections]
        verdicts += [replace(one, text=f"{title}: {one.text}") for one in page.lines("html")]
    how_many = Counter(type(one).__name__ for one in results)
    said = listed([counted(how_many[kind], *nouns) for kind, nouns in _KINDS.items() if how_many[kind]])
    headline = " ".join(f"{title}: {page.headline}" for title, page in zip(titles, pages, strict=True))
    return Document(
        title=f"Report on {said}",
        kind=f"Report on {said}",
        headline=headline if len(headline) <= _LONGEST else f"{said}{_summed(results)}.",
        sentences=tuple(verdicts),
        sections=tuple(sections),
        method=tuple(dict.fromkeys(note for page in pages for note in page.method)),
    )


def _summed(results: Sequence[Result]) -> str:
    """What is said of all rankers of all audits together: how many verdicts of each kind."""
    audits = [one.audit for one in results if isinstance(one, Opened)]
    kinds = Counter[str](
        audit.verdict(run, *pair).kind
        for audit in audits
        for pair in (audit.tilted_pairs if audit.measures else audit.pairs)
        for run in audit.runs
    )
    if not kinds:
        return ""
    counts = [f"{kinds[kind]} {words[kinds[kind] > 1]}" for kind, words in _VERDICTS.items() if kinds[kind]]
    return f": of {counted(kinds.total(), 'verdict', 'verdicts')} on rankers, {listed(counts)}"


def _distinct(titles: Sequence[str]) -> list[str]:
    """Number the titles that come more than once."""
    often, seen = Counter(titles), Counter[str]()
    found = []
    for title in titles:
        seen[title] += 1
        found.append(f"{title} ({seen[title]})" if often[title] > 1 else title)
    return found
