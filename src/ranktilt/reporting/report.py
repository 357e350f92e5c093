"""`report`: write results as one HTML page, or as a table or figure of a paper.

A *view* makes the document of a result: its text, tables and figures before they are a page. A
*layout* is a table or figure of a paper without its numbers. The *explorer* is the part of a page
in which a reader looks through queries, lists and texts.

Results are read from their files where paths are given (`opened`); audits are loaded with their
collection and runs, as far as these are still there. Several results become *parts* of one page.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from ranktilt.auditing.comparison.ranks.result import RunRanks
from ranktilt.auditing.comparison.result import Comparison
from ranktilt.auditing.gate.result import Gate
from ranktilt.auditing.pairwise.result import PairwiseAudit
from ranktilt.auditing.replay_log.result import ReplayedLog
from ranktilt.auditing.result import Audit
from ranktilt.auditing.sequential import SequentialAudit
from ranktilt.auditing.sources.source_audits import SourceAudits
from ranktilt.citing.comparison.result import CitationComparison
from ranktilt.citing.experiment.result import ContextExperiment
from ranktilt.citing.result import CitationAudit
from ranktilt.data.artifact import Result, read_json, used_from_files
from ranktilt.data.collection import Collection
from ranktilt.data.files import read_bytes, write_bytes
from ranktilt.data.runs.run import Run
from ranktilt.errors import DataError, UserError, counted, join_words, shorten, unknown_name
from ranktilt.explaining.check_result import CheckResult
from ranktilt.explaining.explanation import Explanation
from ranktilt.explaining.factors.result import FactorEffects
from ranktilt.explaining.properties.result import ExplainedGaps
from ranktilt.judging.drift.result import JudgeDrift
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
from ranktilt.reporting.views.audit.audit import view as audit_view
from ranktilt.reporting.views.audit.source_audits import view as source_audits_view
from ranktilt.training.study_result import TrainingStudy

ResultOrPath = Result | str | Path
"""A result, or the path of its file."""

RESULTS: tuple[type[Result], ...] = (
    Audit,
    SourceAudits,
    Explanation,
    FactorEffects,
    ExplainedGaps,
    PairwiseAudit,
    JudgeAudit,
    JudgeDrift,
    CitationAudit,
    CitationComparison,
    ContextExperiment,
    Bench,
    TrainingStudy,
    SequentialAudit,
    Comparison,
    RunRanks,
    Gate,
    CheckResult,
    ReplayedLog,
)
"""Every kind of result that a page shows."""


def laid_out() -> tuple[type[Result], ...]:
    """Return the kinds of results that a paper's tables or figures can show."""
    return tuple(kind for kind in RESULTS if kind in result_types())


_LONGEST_HEADLINE = 330
"""Most characters of a headline that joins those of all results.

If it would be longer, the page has the headline of one result, and the number of the others.
"""


def report(
    results: ResultOrPath | Sequence[ResultOrPath],
    path: str | Path,
    *,
    collection: Collection | None = None,
    runs: Run | Iterable[Run] | None = None,
    texts: bool = True,
    layout: str | Layout | None = None,
) -> Path:
    """Write results as one HTML page that opens offline, or as a table or figure of a paper.

    Parameters
    ----------
    results : Audit, Comparison or another result, str or Path, or a sequence of these
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
        or runs are given with several audits, or are not those that were audited.
    DataError
        If a file is no result, or cannot be read.
    """
    sources = [results] if isinstance(results, Result | str | Path) else list(results)
    target = Path(path)
    _require_not_read(target, sources)
    run_list = [runs] if isinstance(runs, Run) else runs
    kinds = RESULTS if layout is None else laid_out()
    loaded = opened(sources, kinds, collection=collection, runs=run_list)
    if layout is None:
        write_bytes(target, report_page(loaded, texts=texts).encode())
    else:
        write_bytes(target, _paper_output(loaded, layout, target))
    return target


def _require_not_read(target: Path, sources: Sequence[ResultOrPath]) -> None:
    """Refuse a target that is one of the files to read."""
    files = [source for source in sources if isinstance(source, str | Path)]
    for file in files:
        if os.path.realpath(file) == os.path.realpath(target):
            raise UserError(f"{target}: this file is read too; choose another file for the page")


def _paper_output(results: Sequence[Any], layout: str | Layout, path: Path) -> bytes:
    """Make a table or figure of a paper, in the format that the file's ending says."""
    from ranktilt.reporting.layouts.figures import FORMATS, paper_figures
    from ranktilt.reporting.layouts.layout import PAPER, layout_named
    from ranktilt.reporting.layouts.tables import paper_tables

    if isinstance(layout, str) and layout != PAPER:
        layout_named(layout)  # raises for an unknown name, before the ending is checked
    name = layout if isinstance(layout, str) else layout.name
    tables = {".tex": "latex", ".md": "markdown", ".csv": "csv"}
    ending = path.suffix.lower()
    if ending.removeprefix(".") in FORMATS:
        figures = paper_figures(results, format=ending.removeprefix("."), layout=name)
        if len(figures) > 1:
            raise UserError(
                f"{name} is {len(figures)} figures of these results; write all of them: "
                f"ranktilt report RESULT.json --layout {name} --figures DIR"
            )
        return next(iter(figures.values()))
    if ending not in tables:
        raise unknown_name(
            "ending of a file with a layout", ending, [*tables, *(f".{name}" for name in FORMATS)]
        )
    return paper_tables(results, layout, tables[ending]).encode()


def opened(
    results: Sequence[ResultOrPath],
    kinds: Sequence[type[Result]] = RESULTS,
    *,
    collection: Collection | None = None,
    runs: Iterable[Run] | None = None,
) -> list[Any]:
    """Read results from their files, and load audits with their collections and runs.

    A file that is named twice counts once. `kinds` are the kinds of results that are allowed;
    `collection` and `runs` belong to the only audit, and are read from files where they are None.
    """
    read_results = _read_once(results, kinds)
    bare_results = [read.result for read in read_results]
    for result in bare_results:
        if not isinstance(result, tuple(kinds)):
            raise UserError(f"expected {_expected(kinds)}, or its file, got {shorten(result)}")
    _require_one_audit(bare_results, collection=collection, runs=runs)
    with used_from_files(*bare_results):  # an error names the file whose content causes it
        return [
            _reloaded(read.result, read.file, collection=collection, runs=runs)
            for read in read_results
        ]


@dataclass(frozen=True, kw_only=True)
class _ReadResult:
    """A result with the file that it was read from, if any."""

    result: Any
    """The result."""
    file: Path | None = None
    """Its file; None for a result in memory."""


def _read_once(results: Sequence[ResultOrPath], kinds: Sequence[type[Result]]) -> list[_ReadResult]:
    """Read the files among results, and leave out what was named before."""
    read_results: dict[object, _ReadResult] = {}
    for result in results:
        if not isinstance(result, str | Path):
            read_results.setdefault(id(result), _ReadResult(result=result))
            continue
        key = os.path.realpath(result)
        if key not in read_results:
            read_results[key] = _ReadResult(result=read_result(result, kinds), file=Path(result))
    return list(read_results.values())


def _require_one_audit(
    results: Sequence[Any], *, collection: Collection | None, runs: Iterable[Run] | None
) -> None:
    """Refuse a collection or runs unless there is a single audit that they can belong to."""
    audit_count = sum(isinstance(result, Audit | SourceAudits) for result in results)
    if audit_count != 1 and not (collection is None and runs is None):
        raise UserError(f"a collection or runs belong to one audit, got {audit_count} audits")
    if runs is not None and any(isinstance(result, SourceAudits) for result in results):
        raise UserError("runs belong to an audit of one source, got an audit of several sources")


def _reloaded(
    result: Any, file: Path | None, *, collection: Collection | None, runs: Iterable[Run] | None
) -> Any:
    """Load an audit with its collection and runs; return any other result as it is."""
    if isinstance(result, Audit):
        return reload(result, file, collection=collection, runs=runs)
    if isinstance(result, SourceAudits):
        return reload_sources(result, file, collection=collection)
    return result


def read_result(path: str | Path, kinds: Sequence[type[Result]] = RESULTS) -> Any:
    """Read a result from a file that may hold any of these kinds.

    Raises
    ------
    DataError
        If the file holds something else: says what.
    """
    path, expected = Path(path), _expected(kinds)
    commands = dict.fromkeys(kind.header.command.removeprefix("ranktilt ") for kind in kinds)
    writes = "writes" if len(commands) == 1 else "write"
    hint = f"ranktilt {join_words(list(commands))} {writes} one with --json FILE"
    content = read_json(path, read_bytes(path), expected, f"; {hint}")
    format_name = content.get("format") if isinstance(content, dict) else None
    kind = next((kind for kind in RESULTS if kind.header.format == format_name), None)
    if kind is SourceAudits and Audit in kinds and kind not in kinds:
        hint = "audit its sources one at a time: ranktilt audit DIR --source A --source B"
    if kind is None or kind not in kinds:
        if kind is not None:
            content_noun = kind.header.noun
        elif format_name is None:
            content_noun = "JSON without a format"
        else:
            content_noun = f"format {shorten(format_name)}"
        raise DataError(path, f"expected {expected}, got {content_noun}; {hint}")
    return kind.load(path)


def _expected(kinds: Sequence[type[Result]]) -> str:
    """Name the kinds of results that are expected."""
    if len(kinds) == len(RESULTS):
        return "a result of RankTilt"
    return join_words([kind.header.noun for kind in kinds], "or")


def report_page(
    results: Sequence[Loaded | Result], *, texts: bool = True, budget: int = BUDGET
) -> str:
    """Return the HTML of one page whose parts are the results.

    Their explorers (queries, lists and texts to look through) share `budget` characters; without
    `texts` there are no explorers.
    """
    if not results:
        raise UserError("a report needs a result, such as an audit")
    explorer_count = sum(map(_explorer_count, results))
    explorer_budget = budget // max(explorer_count, 1) if texts else 0
    pages = [_page(result, explorer_budget) for result in results]
    with used_from_files(*results):
        # The headline begins with the result whose first finding is the largest.
        order = sorted(range(len(pages)), key=lambda index: leading(results[index]).order)
        return html_document(pages[0] if len(pages) == 1 else _joined(pages, order))


def _explorer_count(result: Any) -> int:
    """Return how many explorers the page of a result can have: one for each of its audits."""
    if isinstance(result, LoadedSourceAudits):
        return len(result.parts)
    return int(isinstance(result, LoadedAudit))


def _page(result: Loaded | Result, budget: int) -> Document:
    """Return the document of a result; each explorer may have `budget` characters."""
    with used_from_files(result):
        if isinstance(result, LoadedAudit):
            return audit_view(result, budget=budget)
        if isinstance(result, LoadedSourceAudits):
            return source_audits_view(result, budget=budget)
        return view(result)


def _joined(pages: Sequence[Document], order: Sequence[int]) -> Document:
    """Join documents to one, whose sections stand in the order of `pages`.

    `order` are indices of pages, the page with the largest finding first. The headline follows it,
    and the first page in it gives the first screen: meaning and first figure.
    """
    titles = _distinct([page.kind for page in pages])
    sections: list[Section] = []
    sentences: list[Sentence] = []
    legend: list[str] = []
    first = pages[order[0]]
    for number, (title, page) in enumerate(zip(titles, pages, strict=True), start=1):
        first_screen = [] if page is first else _first_screen(page)
        for section in (*first_screen, *page.shown_sections("page")):
            sections.append(_part_section(section, title, number))
        sentences += [replace(line, text=f"{title}: {line.text}") for line in page.sentences]
        legend += [*page.legend, *page.notes]
    headline = " ".join(f"{titles[index]}: {pages[index].headline}" for index in order)
    if len(headline) > _LONGEST_HEADLINE:
        headline = _first_of(titles, pages, order[0])
    names = chain.from_iterable(page.names for page in pages)
    has_sides = any(page.sides for page in pages)
    return Document(
        kind=f"Report on {len(pages)} results",
        headline=headline,
        sentences=tuple(sentences),
        sections=tuple(sections),
        meaning=f"{titles[order[0]]}: {first.meaning}" if first.meaning else "",
        first_figure=first.first_figure,
        names=tuple(names),
        legend=tuple(dict.fromkeys(legend)),  # results often share sentences
        sides=SIDES if has_sides else (),
    )


def _part_section(section: Section, title: str, number: int) -> Section:
    """Return a section as one of a part of the page: its anchor and heading name the part."""
    return replace(
        section,
        name=f"part{number}-{section.name}",
        part=f"{title}: {section.part}" if section.part else title,
    )


def _first_screen(page: Document) -> list[Section]:
    """Return the first screen of a page as a section of a joined page; none without a figure."""
    if page.first_figure is None or not page.first_figure.blocks:
        return []
    leads = tuple(filter(None, (page.headline, page.meaning)))
    return [Section("answer", "In short", lead=leads, blocks=(page.first_figure,))]


def _first_of(titles: Sequence[str], pages: Sequence[Document], first: int) -> str:
    """Return the headline of the page with index `first`, and how many others there are."""
    others = counted(len(pages) - 1, "other result", "other results")
    return f"{titles[first]}: {pages[first].headline} And {others}."


def _distinct(titles: Sequence[str]) -> list[str]:
    """Add numbers to titles that occur more than once."""
    totals, numbers = Counter(titles), Counter[str]()
    distinct = []
    for title in titles:
        numbers[title] += 1
        distinct.append(f"{title} ({numbers[title]})" if totals[title] > 1 else title)
    return distinct
