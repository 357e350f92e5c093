"""The page that people look at: report(results, path) of one result, or of several as the parts of one page."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from ranktilt.auditing.answer.gate import Gate
from ranktilt.auditing.comparison.compare import Comparison
from ranktilt.auditing.pairwise.result import PairwiseAudit
from ranktilt.auditing.replay_log import ReplayedLog
from ranktilt.auditing.result import Audit
from ranktilt.auditing.sequential import SequentialAudit
from ranktilt.auditing.source_audits import SourceAudits
from ranktilt.data.artifact import Result, read_json, used_from_files
from ranktilt.data.collection import Collection
from ranktilt.data.files import read_bytes, write_bytes
from ranktilt.data.run import Run
from ranktilt.errors import DataError, UserError, counted, join_words, shorten, unknown
from ranktilt.explaining.check import CheckResult
from ranktilt.explaining.explain import Explanation
from ranktilt.explaining.factors.result import FactorEffects
from ranktilt.explaining.properties.result import ExplainedGaps
from ranktilt.judging.result import JudgeAudit
from ranktilt.mitigation.bench_result import Bench
from ranktilt.reporting.document import SIDES, Document, Section, Sentence
from ranktilt.reporting.explorer.section import BUDGET
from ranktilt.reporting.headline import leading
from ranktilt.reporting.layouts.layout import Layout
from ranktilt.reporting.layouts.results import result_types
from ranktilt.reporting.reload import (
    Loaded,
    LoadedAudit,
    LoadedSourceAudits,
    reload,
    reload_sources,
)
from ranktilt.reporting.render.html import render as html_document
from ranktilt.reporting.views import view
from ranktilt.reporting.views.audit import view as audit_view
from ranktilt.reporting.views.source_audits import view as source_audits_view
from ranktilt.training.study_result import TrainingStudy

Given = Result | str | Path

RESULTS: tuple[type[Result], ...] = (
    Audit,
    SourceAudits,
    Explanation,
    FactorEffects,
    ExplainedGaps,
    PairwiseAudit,
    JudgeAudit,
    Bench,
    TrainingStudy,
    SequentialAudit,
    Comparison,
    Gate,
    CheckResult,
    ReplayedLog,
)
"""Every kind of result that a page shows."""


def laid_out() -> tuple[type[Result], ...]:
    """Return the kinds of results that some layout of a paper shows."""
    return tuple(kind for kind in RESULTS if kind in result_types())


_LONGEST = 330
"""Characters of a headline that says what each result says; a longer one says what the first of them does."""


def report(
    results: Given | Sequence[Given],
    path: str | Path,
    *,
    collection: Collection | None = None,
    runs: Run | Iterable[Run] | None = None,
    texts: bool = True,
    layout: str | Layout | None = None,
) -> Path:
    """Write results as one HTML page that opens anywhere, offline, or as a table or figure of a paper.

    Parameters
    ----------
    results : Audit, Validation or another result, str or Path, or a sequence of these
        Results, or the JSON files they were saved in. Several become the parts of one page, in the
        order given.
    path : str or Path
        The page's file, such as ``report.html``.
    collection : Collection, optional
        What the audit was made from, where it is at hand. By default it is read again from the
        files that the audit names, if they are unchanged; without it queries, ranked lists and
        texts are left out, and the page says so.
    runs : Run or sequence of Run, optional
        The audit's runs, known by their names. By default as far as the audit keeps its lists
        (``keep_top``).
    texts : bool, optional
        Whether queries, ranked lists and documents can be looked through; False keeps them out of
        the page.
    layout : str or Layout, optional
        A table or figure as a paper prints it, such as ``dai-3`` or ``dai-fig7``, or a layout of
        your own, in place of the page; the ending of `path` says its format: ``.tex``, ``.md``,
        ``.csv``, ``.svg``, ``.pdf`` or ``.png``.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    UserError
        If there is nothing to report, or the page would replace one of the results; if a collection
        or runs are given beside several audits, or are not those that were audited.
    DataError
        If a file is no result, or cannot be read.
    """
    given = [results] if isinstance(results, Result | str | Path) else list(results)
    target = Path(path)
    if any(
        isinstance(one, str | Path) and os.path.realpath(one) == os.path.realpath(target)
        for one in given
    ):
        raise UserError(f"{target}: this file is read too; choose another file for the page")
    chosen = [runs] if isinstance(runs, Run) else runs
    kinds = RESULTS if layout is None else laid_out()
    loaded = opened(given, kinds, collection=collection, runs=chosen)
    content = (
        report_page(loaded, texts=texts).encode()
        if layout is None
        else _laid_out(loaded, layout, target)
    )
    write_bytes(target, content)
    return target


def _laid_out(results: Sequence[Any], layout: str | Layout, path: Path) -> bytes:
    """A table or figure of a paper, in the format that the file's ending says."""
    from ranktilt.reporting.layouts.figures import FORMATS, paper_figures
    from ranktilt.reporting.layouts.layout import PAPER, layout_named
    from ranktilt.reporting.layouts.tables import paper_tables

    if isinstance(layout, str) and layout != PAPER:
        layout_named(layout)
    name = layout if isinstance(layout, str) else layout.name
    tables = {".tex": "latex", ".md": "markdown", ".csv": "csv"}
    ending = path.suffix.lower()
    if ending.removeprefix(".") in FORMATS:
        drawn = paper_figures(results, format=ending.removeprefix("."), layout=name)
        if len(drawn) > 1:
            raise UserError(
                f"{name} is {len(drawn)} figures of these results; write all of them: "
                f"ranktilt report RESULT.json --layout {name} --figures DIR"
            )
        return next(iter(drawn.values()))
    if ending not in tables:
        raise unknown(
            "ending of a file with a layout", ending, [*tables, *(f".{name}" for name in FORMATS)]
        )
    return paper_tables(results, layout, tables[ending]).encode()


def opened(
    results: Sequence[Given],
    kinds: Sequence[type[Result]] = RESULTS,
    *,
    collection: Collection | None = None,
    runs: Iterable[Run] | None = None,
) -> list[Any]:
    """Read results, and of audits their collections (`LoadedAudit`); a file that is named twice counts once."""
    named: dict[object, tuple[Any, Path | None]] = {}
    for one in results:
        file = Path(one) if isinstance(one, str | Path) else None
        key = id(one) if file is None else os.path.realpath(file)
        if key not in named:
            named[key] = (one if file is None else read_result(file, kinds), file)
    for one, _ in named.values():
        if not isinstance(one, tuple(kinds)):
            raise UserError(f"expected {_wanted(kinds)}, or its file, got {shorten(one)}")
    audits = sum(isinstance(one, Audit | SourceAudits) for one, _ in named.values())
    if audits != 1 and not (collection is None and runs is None):
        raise UserError(f"a collection or runs belong to one audit, got {audits} audits")
    if runs is not None and any(isinstance(one, SourceAudits) for one, _ in named.values()):
        raise UserError("runs belong to an audit of one source, got an audit of several sources")
    with used_from_files(*(result for result, _ in named.values())):
        return [
            _reloaded(result, file, collection=collection, runs=runs)
            for result, file in named.values()
        ]


def _reloaded(
    result: Any, file: Path | None, *, collection: Collection | None, runs: Iterable[Run] | None
) -> Any:
    if isinstance(result, Audit):
        return reload(result, file, collection=collection, runs=runs)
    if isinstance(result, SourceAudits):
        return reload_sources(result, file, collection=collection)
    return result


def read_result(path: str | Path, kinds: Sequence[type[Result]] = RESULTS) -> Any:
    """Read a result of one of these kinds, whichever a file holds; `DataError` says what it holds instead."""
    path, wanted = Path(path), _wanted(kinds)
    commands = dict.fromkeys(kind.header.command.removeprefix("ranktilt ") for kind in kinds)
    verbs = join_words(list(commands))
    hint = f"ranktilt {verbs} write one with --json FILE"
    content = read_json(path, read_bytes(path), wanted, f"; {hint}")
    found = content.get("format") if isinstance(content, dict) else None
    kind = next((one for one in RESULTS if one.header.format == found), None)
    if kind is SourceAudits and Audit in kinds and kind not in kinds:
        hint = "audit its sources one at a time: ranktilt audit DIR --source A --source B"
    if kind is None or kind not in kinds:
        came = "JSON without a format" if found is None else f"format {shorten(found)}"
        raise DataError(
            path, f"expected {wanted}, got {came if kind is None else kind.header.noun}; {hint}"
        )
    return kind.load(path)


def _wanted(kinds: Sequence[type[Result]]) -> str:
    every = len(kinds) == len(RESULTS)
    return (
        "a result of RankTilt" if every else join_words([kind.header.noun for kind in kinds], "or")
    )


def report_page(
    results: Sequence[Loaded | Result], *, texts: bool = True, budget: int = BUDGET
) -> str:
    """Write results as the parts of one page; their explorers share `budget` characters."""
    if not results:
        raise UserError("a report needs a result, such as an audit")
    share = budget // max(sum(map(_explorers, results)), 1) if texts else 0
    pages = [_page(result, share) for result in results]
    with used_from_files(*results):
        order = sorted(range(len(pages)), key=lambda place: leading(results[place]).order)
        return html_document(pages[0] if len(pages) == 1 else _joined(pages, order))


def _explorers(result: Any) -> int:
    """Return how many audits of a result could be looked through on a page."""
    if isinstance(result, LoadedSourceAudits):
        return len(result.parts)
    return int(isinstance(result, LoadedAudit))


def _page(result: Loaded | Result, budget: int) -> Document:
    with used_from_files(result):
        if isinstance(result, LoadedAudit):
            return audit_view(result, budget=budget)
        if isinstance(result, LoadedSourceAudits):
            return source_audits_view(result, budget=budget)
        return view(result)


def _joined(pages: Sequence[Document], order: Sequence[int]) -> Document:
    """Join pages in the order given; the headline begins with what is found first in `order`."""
    titles = _distinct([page.kind for page in pages])
    sections, verdicts = list[Section](), list[Sentence]()
    first = pages[order[0]]
    for number, (title, page) in enumerate(zip(titles, pages, strict=True), start=1):
        answers = [] if page is first else _answers(page)
        sections += [
            replace(
                part,
                name=f"part{number}-{part.name}",
                part=f"{title}: {part.part}" if part.part else title,
            )
            for part in (*answers, *page.shown_sections("page"))
        ]
        verdicts += [replace(line, text=f"{title}: {line.text}") for line in page.sentences]
    headline = " ".join(f"{titles[place]}: {pages[place].headline}" for place in order)
    notes = (note for page in pages for note in (*page.legend, *page.notes))
    return Document(
        kind=f"Report on {len(pages)} results",
        headline=headline if len(headline) <= _LONGEST else _first_of(titles, pages, order[0]),
        sentences=tuple(verdicts),
        sections=tuple(sections),
        meaning=f"{titles[order[0]]}: {first.meaning}" if first.meaning else "",
        hero=first.hero,
        names=tuple(chain.from_iterable(page.names for page in pages)),
        legend=tuple(dict.fromkeys(notes)),
        sides=SIDES if any(page.sides for page in pages) else (),
    )


def _answers(page: Document) -> list[Section]:
    """Return what a page's first screen says, as a section of its part of a joined page."""
    leads = tuple(filter(None, (page.headline, page.meaning)))
    blocks = () if page.hero is None else (page.hero,)
    return [Section("answer", "In short", leads, blocks)] if page.hero_blocks else []


def _first_of(titles: Sequence[str], pages: Sequence[Document], first: int) -> str:
    """The headline of one page, and how many others there are."""
    others = counted(len(pages) - 1, "other result", "other results")
    return f"{titles[first]}: {pages[first].headline} And {others}."


def _distinct(titles: Sequence[str]) -> list[str]:
    """Number the titles that come more than once."""
    often, seen = Counter(titles), Counter[str]()
    found = []
    for title in titles:
        seen[title] += 1
        found.append(f"{title} ({seen[title]})" if often[title] > 1 else title)
    return found
