"""The first screen of a page: the answer, what it means, one figure that shows it, and
what next.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from ranktilt.measures.base import estimand
from ranktilt.reporting.document import (
    Cell,
    Column,
    Document,
    NextCommand,
    PageBlocks,
    Row,
    Section,
    Sentence,
    Table,
)
from ranktilt.reporting.interval_chart import (
    IntervalChart,
    IntervalMark,
    IntervalReading,
    IntervalRow,
    interval_chart,
)
from ranktilt.reporting.output import table
from ranktilt.reporting.provenance import provenance
from ranktilt.reporting.render.html import page_date
from ranktilt.reporting.render.html import render as html_document
from ranktilt.reporting.sentences.findings import Finding
from ranktilt.reporting.sentences.meaning import audit_meaning, verdicts_meaning
from ranktilt.reporting.sentences.mitigation.mitigate import bench_meaning
from ranktilt.reporting.shown_names import direction_parts, isolated, short_names
from ranktilt.reporting.tones import LOOKS
from ranktilt.reporting.views import view
from ranktilt.reporting.views.check.fault_chart import fault_chart
from tests.explaining.checks import toy_check
from tests.reporting.browser import Browser
from tests.reporting.results import result

NAN = float("nan")
HEBREW = "\u05de\u05e0\u05d5\u05e2"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A kind of page, the rows of its figure, and a word that its meaning holds."""

    name: str
    rows: int
    meaning: str


CASES = (
    Case(name="audit, clear", rows=3, meaning="Which ranker you choose decides who is seen first"),
    Case(name="audit, card", rows=1, meaning="Other questions point the other way"),
    Case(name="audit, three groups", rows=3, meaning="3 of 3 comparisons"),
    Case(name="audit", rows=2, meaning="cannot tell whether a side is favoured"),
    Case(name="sources", rows=3, meaning="do not carry a finding from"),
    Case(name="comparison, turned", rows=1, meaning="It is less effective"),
    Case(name="comparison", rows=6, meaning="No change is shown. That does not mean there is none"),
    Case(name="gate", rows=3, meaning="Do not ship b as it is"),
    Case(name="gate, nothing", rows=0, meaning="too few to tell"),
    Case(name="bench", rows=1, meaning="Apply α = 0.01"),
    Case(name="bench, none", rows=1, meaning="no correction is shown to be enough"),
    Case(name="check", rows=8, meaning="Do not audit with this collection yet"),
    Case(name="check, one source", rows=0, meaning="There are no two sides here"),
    Case(name="attribution", rows=3, meaning="Look at length first, as the gap goes with it"),
    Case(name="factors", rows=6, meaning="These are causes"),
    Case(name="explained gaps", rows=4, meaning="would show a cause"),
    Case(name="pairwise", rows=2, meaning="picks male ones more often than chance explains"),
    Case(name="training study", rows=3, meaning="is less effective and moves toward llm"),
    Case(name="sequential", rows=1, meaning="puts a ahead of b"),
    Case(name="replayed log", rows=4, meaning="50 % of the answers contain no ranking"),
)
every = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def charts(document: Document) -> list[IntervalChart]:
    return [block for block in document.first_figure_blocks if isinstance(block, IntervalChart)]


@every
def test_a_page_has_a_meaning_and_one_figure(case: Case) -> None:
    document = view(result(case.name))
    assert case.meaning in document.meaning
    assert sum(len(chart.rows) for chart in charts(document)) == case.rows
    page = table(result(case.name), "html")
    head = page[page.index('<section class="headline"') : page.index("<nav")]
    indexes = [head.index(part) for part in ("<h1>", 'class="meaning"')]
    if case.rows:
        indexes.append(head.index('class="intervals'))
    assert indexes == sorted(indexes)


@every
def test_tables_and_paths_of_a_page_are_folded(case: Case) -> None:
    document = view(result(case.name))
    made_sections = [
        section for section in document.shown_sections("page") if section.name == "made"
    ]
    assert all(section.is_collapsed_whole for section in made_sections)


def test_paths_stand_in_folded_parts_alone() -> None:
    spec = {"command": "ranktilt audit /home/me/bed", "path": "/home/me/bed"}
    step = NextCommand(text="Level it", command="ranktilt mitigate /home/me/bed")
    document = Document(
        kind="Audit of bed",
        headline="All is well.",
        sections=(provenance(spec),),
        next_steps=(step,),
        meaning="Nothing.",
    )
    page = html_document(document)
    assert page.count("/home/me/bed") >= 3
    open_parts = re.sub(r"<details.*?</details>", "", page, flags=re.DOTALL)
    assert "/home/me/bed" not in open_parts
    assert "Level it" in page


def test_findings_stand_below_the_first_screen() -> None:
    sentences = (Sentence("bm25 favours human text: by 3 points", "first"),)
    document = Document(
        kind="Test",
        headline="All is well.",
        sections=(),
        sentences=sentences,
        sides=("human", "llm"),
    )
    head, _, rest = html_document(document).partition("<nav")
    assert "by 3 points" not in head
    assert "by 3 points" in rest


def test_a_headline_of_several_sentences_is_not_said_again() -> None:
    sentences = (Sentence("a, llm minus human: +1.0"), Sentence("b, llm minus human: −2.0"))
    document = Document(
        kind="Study",
        headline="a, llm minus human: +1.0; b, llm minus human: −2.0.",
        sections=(),
        sentences=sentences,
    )
    assert document.page_lines == []


def test_a_page_names_its_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1710633600")  # 17 March 2024
    assert page_date() == date(2024, 3, 17)
    text = html_document(Document(kind="Test", headline="All is well.", sections=()))
    assert '<time datetime="2024-03-17">17 March 2024</time>' in text
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "soon")
    assert page_date() == datetime.now(tz=UTC).date()


def reading(value: float, low: float, high: float, **more: object) -> IntervalReading:
    mark = IntervalMark(value=value, low=low, high=high)
    return IntervalReading(mark=mark, text=f"{value:g}", **more)  # type: ignore[arg-type]


def chart(*readings: IntervalReading) -> IntervalChart:
    rows = [
        IntervalRow(label=f"row {n}", readings=(reading,)) for n, reading in enumerate(readings)
    ]
    return interval_chart("Title", "How to read it.", rows, scale_titles=["points"])


def test_a_scale_is_as_long_as_its_marks_need() -> None:
    (scale,) = chart(reading(20, 10, 30, band=(-5, 5))).scales
    assert (scale.low, scale.high) == pytest.approx((-6.75, 31.75))  # −5 to 30, and a twentieth
    assert scale.ticks == (0, 10, 20, 30)
    assert scale.share(-6.75) == 0
    assert scale.share(12.5) == 50
    assert scale.share(float("inf")) == 100
    (scale,) = chart(reading(0.002, 0.001, 0.003)).scales
    assert [scale.tick_text(tick) for tick in scale.ticks] == ["0.000", "0.001", "0.002", "0.003"]


def test_a_scale_of_nothing_known_has_a_length() -> None:
    (scale,) = chart(reading(NAN, NAN, NAN, neutral=NAN)).scales
    assert scale.high > scale.low


@pytest.mark.parametrize(
    ("rows", "ends", "collapsed"),
    [(6, 0, []), (8, 0, [5, 6, 7]), (8, 1, [4, 5, 6]), (10, 2, [3, 4, 5, 6, 7])],
)
def test_a_phone_folds_rows_beyond_five(rows: int, ends: int, collapsed: list[int]) -> None:
    drawn = replace(chart(*[reading(1, 0, 2)] * rows), last_rows_on_phone=ends)
    assert sorted(drawn.rows_hidden_on_phone) == collapsed
    page = html_document(
        Document(
            kind="Test",
            headline="Yes.",
            sections=(),
            first_figure=PageBlocks(make=lambda: (drawn,)),
        )
    )
    assert page.count('class="row extra"') == len(collapsed)
    assert (f"<summary>{len(collapsed)} more rows</summary>" in page) == bool(collapsed)


def test_chart_says_numbers_in_text_and_draws_known_ones() -> None:
    drawn = chart(reading(20, 10, 30, tone="first"), reading(NAN, NAN, NAN, tone="unsure"))
    page = html_document(
        Document(
            kind="Test",
            headline="All is well.",
            sections=(),
            first_figure=PageBlocks(make=lambda: (drawn,)),
        )
    )
    assert page.count('class="dot alone') == 1
    assert '<span class="sign" aria-hidden="true">▲</span> 20' in page
    assert '<span class="sign" aria-hidden="true">○</span> nan' in page


def test_a_dumbbell_joins_before_and_after() -> None:
    before = IntervalMark(value=-10, low=-16, high=-4)
    drawn = chart(reading(-2, -8, 4, before=before), reading(-12, -18, -6, before=before))
    page = html_document(
        Document(
            kind="Test",
            headline="All is well.",
            sections=(),
            first_figure=PageBlocks(make=lambda: (drawn,)),
        )
    )
    assert page.count('class="dot before') == 2
    assert page.count('class="dot after') == 2
    assert page.count('class="move"') == page.count('class="move back"') == 1


def test_a_bench_draws_each_method_before_and_after_with_its_cost() -> None:
    (drawn,) = charts(view(result("bench")))
    (row,) = drawn.rows
    tilt, cost = row.readings
    assert (row.label, row.note) == ("α = 0.01", "chosen")
    assert tilt is not None
    assert cost is not None
    assert tilt.before is not None
    assert tilt.before.value == -200
    assert tilt.mark.value == 0
    assert tilt.band == (-5, 5)
    assert cost.band == (-5, float("inf"))


def test_meaning_of_verdicts() -> None:
    audit = result("audit, clear")
    verdicts = audit.verdicts()
    people, machines, nobody = verdicts
    assert verdicts_meaning([people]) == (
        "people puts human text ahead of equally relevant llm text, by more than chance explains. "
        "Do not read the order as relevance alone."
    )
    assert verdicts_meaning([people, nobody]).endswith("This is not shown for 1 other ranker.")
    slight = replace(people, slight=True)
    assert "by no more than ±5 points, which you count as level" in verdicts_meaning([slight])
    level = replace(nobody, kind="level")
    assert verdicts_meaning([level]) == (
        "Neither side gains more than ±5 points, so by this question there is nothing to correct."
    )
    assert "These queries cannot tell about the rest" in verdicts_meaning([level, nobody])
    levels = [replace(level, effect=replace(level.effect, run=f"run{n}")) for n in range(4)]
    assert verdicts_meaning([*levels, nobody]).startswith("4 rankers: neither side gains more")
    outside = [replace(verdict, kind="outside") for verdict in levels]
    assert verdicts_meaning(outside).startswith("4 rankers spread attention")
    assert verdicts_meaning([machines, people]).startswith("Which ranker you choose decides")
    of_both_sides = verdicts_meaning([people, people, people, machines])
    assert "people puts human text ahead" in of_both_sides
    assert "machines puts llm text ahead" in of_both_sides
    assert audit_meaning(replace(audit, tilts=()), ()).startswith("No groups were compared")


def test_meaning_of_level_names_a_question_that_is_tilted() -> None:
    audit = result("audit, clear")
    (level,) = [verdict for verdict in audit.verdicts() if verdict.run == "nobody"]
    tilted = replace(audit.tilts[0], run="nobody", estimand=estimand("NDSR@20"), a="human", b="llm")
    tilted = replace(tilted, value=0.4, low=0.3, high=0.5, p_corrected=0.001)
    several = replace(audit, card=(tilted,))
    finding = Finding(kind="level", sentence="", verdict=replace(level, kind="level"))
    meaning = audit_meaning(several, [finding])
    assert "But nobody favours human by ΔNDSR@20. Decide which question matters" in meaning
    assert "But" not in audit_meaning(replace(audit, card=()), [finding])


def test_meaning_of_a_bench_without_a_tilt() -> None:
    bench = result("bench")
    effects = tuple(replace(effect, p_corrected=0.5) for effect in bench.baseline_effects)
    choice = replace(bench, baseline_effects=effects).choose()
    assert bench_meaning(choice).startswith("Leave the ranker as it is")


def test_long_names_lose_their_middle_and_stay_distinct() -> None:
    stem = "model-" + "x" * 40
    names = [f"{stem}-a", f"{stem}-b", "bm25"]
    shortened = short_names(names)
    assert list(shortened) == names[:2]
    assert {len(short) for short in shortened.values()} == {40}
    assert len(set(shortened.values())) == 2
    alike = [f"{'a' * 20}{letter}{'b' * 40}" for letter in "xy"]
    assert short_names(alike) == {}  # shown whole: their middles tell them apart
    long_name = f"{stem}-a"
    page = html_document(
        Document(kind="Test", headline=f"{long_name} favours b.", sections=(), names=(long_name,))
    )
    assert f'<abbr title="{long_name}">{shortened[long_name]}</abbr> favours b.</h1>' in page


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bm25 favours a", "bm25 favours a"),
        (f"{HEBREW} favours a: 5 %", f"\u2068{HEBREW}\u2069 favours a: 5 %"),
        (f"a | {HEBREW}-2.trec: level.", f"a | \u2068{HEBREW}-2.trec\u2069: level."),
        (f"{HEBREW} {HEBREW}.", f"\u2068{HEBREW} {HEBREW}\u2069."),
    ],
)
def test_right_to_left_names_keep_to_themselves(text: str, expected: str) -> None:
    assert isolated(text) == expected
    assert "".join(part for part, _ in direction_parts(text)) == text


def test_right_to_left_names_are_isolated_on_pages_and_in_print() -> None:
    columns = (Column("run", number=False, header=True), Column("value"))
    rows = (Row((Cell(HEBREW), Cell("+5.0", 5.0))),)
    section = Section("one", "One", blocks=(Table("Numbers", columns, rows),))
    document = Document(kind="Test", headline=f"{HEBREW} favours a (5).", sections=(section,))
    assert f"<h1><bdi>{HEBREW}</bdi> favours a (5).</h1>" in html_document(document)
    assert f"\u2068{HEBREW}\u2069" in table(document)


def test_a_row_of_zeros_is_one_line() -> None:
    zero, moved = Cell("0.0", 0.0, ends=("0.0", "0.0")), Cell("+1.0", 1.0, ends=("0.0", "+2.0"))
    assert [cell.ends for cell in Row((Cell("offset"), zero, zero)).shown_cells] == [None] * 3
    assert Row((Cell("offset"), zero, moved)).shown_cells[1].ends == ("0.0", "0.0")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    paths = {case.name: folder / f"{number}.html" for number, case in enumerate(CASES)}
    for name, path in paths.items():
        path.write_text(table(result(name), "html"), encoding="utf-8")
    return paths


@pytest.mark.long
@every
def test_the_first_screen_holds_the_answer(
    browser: Browser, pages: dict[str, Path], case: Case
) -> None:
    """At 1280 × 800 all of it; on a telephone, 360 × 740, the headline and what it means."""
    for width, height, last in ((1280, 800, ".headline"), (360, 740, ".meaning")):
        browser.open(pages[case.name], width=width)
        bottom = browser.run(f"document.querySelector('{last}').getBoundingClientRect().bottom")
        assert bottom <= height, (case.name, width)
        assert browser.overflow == 0
        cut = browser.run(
            "[...document.querySelectorAll('.headline *')].filter(e => !e.closest('.unseen') && "
            "e.getBoundingClientRect().right > innerWidth).map(e => e.outerHTML.slice(0, 100))"
        )
        assert cut == []
        across = browser.run(
            "[...document.querySelectorAll('nav ul')].some(u => u.scrollWidth > u.clientWidth)"
        )
        assert not across or width == 360, "nothing to scroll in the navigation"


@pytest.mark.long
def test_marks_have_the_colour_of_their_side(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["audit, clear"], width=1280)
    for tone in ("first", "second", "unsure"):
        colours = browser.run(
            f"['.track .line.{tone}', '.numbers.{tone} .sign'].map(one => "
            "document.querySelector(one))"
            ".map((one, n) => getComputedStyle(one)[n ? 'color' : 'backgroundColor'])"
        )
        assert colours[0] == colours[1]
        assert colours[0] not in ("rgba(0, 0, 0, 0)", "rgb(0, 0, 0)")


@pytest.mark.long
def test_a_bench_prints_on_few_pages(browser: Browser, pages: dict[str, Path]) -> None:
    import base64

    browser.open(pages["bench"], width=1280)
    printed = base64.b64decode(browser.call("Page.printToPDF")["data"])
    assert len(re.findall(rb"/Type\s*/Page[^s]", printed)) <= 6


@pytest.mark.long
def test_a_folded_figure_is_drawn_when_it_is_unfolded(
    browser: Browser, pages: dict[str, Path]
) -> None:
    browser.open(pages["bench"], width=1280)
    assert browser.run("document.querySelectorAll('#plane .plot svg').length") == 0
    browser.run("document.querySelector('#plane details').open = true")
    browser.until("document.querySelectorAll('#plane .plot svg').length > 0")
    assert browser.complaints == []


@pytest.mark.long
def test_a_word_leads_to_its_meaning_in_a_fold(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["bench"], width=1280)
    browser.run("document.querySelector('.headline a.term').click()")
    browser.until("document.getElementById('words').open")
    assert browser.complaints == []


def test_mark_of_a_fault_lies_where_its_verdict_comes_from() -> None:
    check = toy_check()
    (fault, *_) = [row for row in check.faults if row.name == "cut-off endings"]
    worse = replace(fault, value=0.3, reference=1.6, count=3, total=1000, verdict="warning")
    (chart,) = fault_chart(replace(check, faults=(worse,), instrument=()))
    (row,) = chart.rows
    (reading,) = row.readings
    assert reading is not None
    assert (row.label, row.note) == ("cut-off endings", "in human")
    assert (reading.mark.value, reading.text, reading.tone) == (1.6, "1.6 %", "warning")


def test_warnings_and_failures_look_different() -> None:
    assert LOOKS["warning"].colour != LOOKS["bad"].colour
    assert LOOKS["warning"].symbol != LOOKS["bad"].symbol
