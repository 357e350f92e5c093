"""The page that people look at: report(results, path) of one result, or of several as the parts of one page."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ranktilt.auditing.answer.gate import Gate
from ranktilt.auditing.calibration.result import Calibration
from ranktilt.auditing.comparison.compare import Comparison
from ranktilt.auditing.llm_log.result import ReplayedLog
from ranktilt.auditing.pairwise.result import PairwiseAudit
from ranktilt.auditing.result import Audit
from ranktilt.auditing.sequential import SequentialAudit
from ranktilt.auditing.study import Study
from ranktilt.collection import Collection
from ranktilt.datasets.check_result import CheckResult
from ranktilt.errors import DataError, UserError, counted, join_words, shorten
from ranktilt.experiments.spiral_result import Spiral
from ranktilt.experiments.tradeoff_result import Bench
from ranktilt.experiments.training_result import TrainingStudy
from ranktilt.io.artifact import Result, read_json
from ranktilt.io.files import read_bytes, write_bytes
from ranktilt.planning.plan import CostPlan
from ranktilt.probes.explain import Explanation
from ranktilt.probes.validation import Validation
from ranktilt.reporting.document import SIDES, Document, Explorer, Section, Sentence
from ranktilt.reporting.explorer.section import BUDGET, explorer
from ranktilt.reporting.reload import LoadedAudit, reload
from ranktilt.reporting.render.html import html_document
from ranktilt.reporting.verdicts import VERDICT_WORDS
from ranktilt.reporting.views import view
from ranktilt.reporting.views.audit import view as audit_view
from ranktilt.run import Run

Given = Result | str | Path

RESULTS: dict[type[Result], tuple[str, str]] = {
    Audit: ("audit", "audits"),
    Validation: ("validation", "validations"),
    Study: ("study", "studies"),
    Explanation: ("explanation", "explanations"),
    PairwiseAudit: ("pairwise audit", "pairwise audits"),
    Bench: ("bench", "benches"),
    TrainingStudy: ("training study", "training studies"),
    Spiral: ("spiral", "spirals"),
    SequentialAudit: ("sequential audit", "sequential audits"),
    Comparison: ("comparison", "comparisons"),
    Gate: ("gate", "gates"),
    Calibration: ("calibration", "calibrations"),
    CheckResult: ("check", "checks"),
    CostPlan: ("cost plan", "cost plans"),
    ReplayedLog: ("replayed log", "replayed logs"),
}
"""Every kind of result that a page shows, and what one and several of them are called."""
PAPER_RESULTS: tuple[type[Result], ...] = (
    Audit,
    Validation,
    Study,
    Explanation,
    PairwiseAudit,
    Comparison,
    Bench,
    TrainingStudy,
)
"""Those whose tables and figures papers print."""
_LONGEST = 330
"""Characters of a headline that says what each result says."""


def report(
    results: Given | Sequence[Given],
    path: str | Path,
    *,
    collection: Collection | None = None,
    runs: Run | Iterable[Run] | None = None,
    texts: bool = True,
) -> Path:
    """Write results as one HTML page that opens anywhere, offline.

    Parameters
    ----------
    results : Audit, Validation, Study or another result, str or Path, or a sequence of these
        Results, or the JSON files they were saved in. Several become the parts of one page, in the order given.
    path : str or Path
        The page's file, such as ``report.html``.
    collection : Collection, optional
        What the audit was made from, where it is at hand. By default it is read again from the files that the audit
        names, if they are unchanged; without it queries, ranked lists and texts are left out, and the page says so.
    runs : Run or sequence of Run, optional
        The audit's runs, known by their names. By default as far as the audit keeps its lists (``keep_top``).
    texts : bool, optional
        Whether queries, ranked lists and documents can be looked through; False keeps them out of the page.

    Returns
    -------
    Path
        The page's file.

    Raises
    ------
    UserError
        If there is nothing to report, or the page would replace one of the results; if a collection or runs are given
        beside several audits, or are not those that were audited.
    DataError
        If a file is no result, or cannot be read.
    """
    given = [results] if isinstance(results, Result | str | Path) else list(results)
    target = Path(path)
    if any(isinstance(one, str | Path) and os.path.realpath(one) == os.path.realpath(target) for one in given):
        raise UserError(f"{target}: this file is read too; choose another place for the page")
    chosen = [runs] if isinstance(runs, Run) else runs
    page = report_page(opened(given, collection=collection, runs=chosen), texts=texts)
    write_bytes(target, page.encode())
    return target


def opened(
    results: Sequence[Given],
    kinds: Iterable[type[Result]] = tuple(RESULTS),
    *,
    collection: Collection | None = None,
    runs: Iterable[Run] | None = None,
) -> list[Any]:
    """Read results, and of audits their collections (`LoadedAudit`); a file that is named twice counts once."""
    kinds = tuple(kinds)
    named: dict[object, tuple[Any, Path | None]] = {}
    for one in results:
        file = Path(one) if isinstance(one, str | Path) else None
        key = id(one) if file is None else os.path.realpath(file)
        if key not in named:
            named[key] = (one if file is None else read_result(file, kinds), file)
    strange = next((one for one, _ in named.values() if not isinstance(one, kinds)), None)
    if strange is not None:
        raise UserError(f"expected {_wanted(kinds)}, or its file, got {shorten(strange)}")
    audits = sum(isinstance(one, Audit) for one, _ in named.values())
    if audits != 1 and not (collection is None and runs is None):
        raise UserError(
            f"a collection or runs go with one audit, got {audits} of them; let the report open them itself"
        )
    return [
        reload(one, file, collection=collection, runs=runs) if isinstance(one, Audit) else one
        for one, file in named.values()
    ]


def read_result(path: str | Path, kinds: Iterable[type[Result]] = tuple(RESULTS)) -> Any:
    """Read a result of one of these kinds, whichever a file holds; `DataError` says what it holds instead."""
    path, kinds = Path(path), tuple(kinds)
    found = _format(path, kinds)
    formats = {kind.header.format: kind for kind in RESULTS}
    if found not in formats or formats[found] not in kinds:
        came = "JSON without a format" if found is None else f"format {shorten(found)}"
        came = formats[found].header.noun if found in formats else came
        raise DataError(path, f"expected {_wanted(kinds)}, got {came}; {_written_by(kinds)}")
    return formats[found].load(path)


def _wanted(kinds: Sequence[type[Result]]) -> str:
    return (
        join_words([kind.header.noun for kind in kinds], "or") if len(kinds) < len(RESULTS) else "a result of RankTilt"
    )


def _written_by(kinds: Sequence[type[Result]]) -> str:
    verbs = [kind.header.command.removeprefix("ranktilt ") for kind in kinds]
    return f"ranktilt {join_words(verbs)} write one with --json FILE"


def _format(path: Path, kinds: Sequence[type[Result]]) -> Any:
    """What a JSON file says it holds; None where it says nothing."""
    wanted = _wanted(kinds)
    if os.path.isdir(path) and (path / "audit.json").is_file():
        raise DataError(path, f"expected a file, got a folder; name the audit in it: {path / 'audit.json'}")
    if path.name.endswith((".csv", ".csv.gz")):
        raise DataError(path, f"expected {wanted} as JSON, got CSV; cells of a paper's table go with --layout NAME")
    data = read_bytes(path)
    if data.lstrip(b"\xef\xbb\xbf \r\n\t")[:1] == b"<":
        raise DataError(path, f"expected {wanted} as JSON, got HTML; open a page in a browser")
    content = read_json(path, data, wanted, f"; {_written_by(kinds)}")
    return content.get("format") if isinstance(content, dict) else None


def report_page(results: Sequence[LoadedAudit | Result], *, texts: bool = True, budget: int = BUDGET) -> str:
    """Write results as the parts of one page; their explorers share the room of `budget` characters."""
    if not results:
        raise UserError("a report needs a result, such as an audit")
    pages = [audit_view(one, texts=texts) if isinstance(one, LoadedAudit) else view(one) for one in results]
    pages = _within(budget, results, pages)
    return html_document(pages[0] if len(pages) == 1 else _joined(results, pages))


def _carried(section: Section) -> int:
    """Characters that a section's explorer takes; 0 where it has none."""
    return sum(len(one.lists) + len(one.texts) for one in section.blocks if isinstance(one, Explorer))


def _within(budget: int, results: Sequence[LoadedAudit | Result], pages: Sequence[Document]) -> list[Document]:
    """Share the room for explorers evenly; what a small one does not need is for the others."""
    found = list(pages)
    sizes = [sum(map(_carried, page.sections)) for page in pages]
    waiting = sorted((number for number, size in enumerate(sizes) if size), key=lambda number: sizes[number])
    left = budget
    for place, number in enumerate(waiting):
        share, result = left // (len(waiting) - place), results[number]
        if sizes[number] > share and isinstance(result, LoadedAudit):
            smaller = explorer(result, budget=max(share, 1))
            sections = tuple(_exchanged(section, smaller) for section in pages[number].sections)
            found[number] = replace(pages[number], sections=sections)
        left -= min(sizes[number], share)
    return found


def _exchanged(section: Section, smaller: Explorer | None) -> Section:
    blocks = (smaller if isinstance(block, Explorer) and smaller else block for block in section.blocks)
    return replace(section, blocks=tuple(blocks))


def _joined(results: Sequence[LoadedAudit | Result], pages: Sequence[Document]) -> Document:
    titles = _distinct([page.kind for page in pages])
    sections, verdicts = list[Section](), list[Sentence]()
    for number, (title, page) in enumerate(zip(titles, pages, strict=True), start=1):
        sections += [replace(part, name=f"part{number}-{part.name}", part=title) for part in page.sections]
        verdicts += [replace(line, text=f"{title}: {line.text}") for line in page.sentences]
    how_many = Counter(Audit if isinstance(one, LoadedAudit) else type(one) for one in results)
    held = join_words([counted(how_many[kind], *nouns) for kind, nouns in RESULTS.items() if how_many[kind]])
    headline = " ".join(f"{title}: {page.headline}" for title, page in zip(titles, pages, strict=True))
    notes = (note for page in pages for note in (*page.legend, *page.notes))
    return Document(
        title=f"Report on {held}",
        kind=f"Report on {held}",
        headline=headline if len(headline) <= _LONGEST else f"{held}{_summed(results)}.",
        sentences=tuple(verdicts),
        sections=tuple(sections),
        legend=tuple(dict.fromkeys(notes)),
        sides=SIDES if any(page.sides for page in pages) else (),
    )


def _summed(results: Sequence[LoadedAudit | Result]) -> str:
    """What is said of all rankers of all audits together: how many verdicts of each kind."""
    audits = [one.audit for one in results if isinstance(one, LoadedAudit)]
    kinds = Counter[str](
        audit.verdict(run, *pair).kind for audit in audits for pair in audit.judged_pairs for run in audit.runs
    )
    if not kinds:
        return ""
    counts = [f"{kinds[kind]} {words[kinds[kind] > 1]}" for kind, words in VERDICT_WORDS.items() if kinds[kind]]
    return f": of {counted(kinds.total(), 'verdict', 'verdicts')} on rankers, {join_words(counts)}"


def _distinct(titles: Sequence[str]) -> list[str]:
    """Number the titles that come more than once."""
    often, seen = Counter(titles), Counter[str]()
    found = []
    for title in titles:
        seen[title] += 1
        found.append(f"{title} ({seen[title]})" if often[title] > 1 else title)
    return found
