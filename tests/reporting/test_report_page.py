"""One result is its own page; several are the parts of one, each whole, under anchors of its own."""

import base64
import gzip
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ranktilt import Audit, audit
from ranktilt.errors import UserError
from ranktilt.reporting.reload import LoadedAudit
from ranktilt.reporting.render.html import html_document
from ranktilt.reporting.report import report_page
from ranktilt.reporting.views.audit import audit_headline
from ranktilt.reporting.views.audit import view as audit_contents
from tests.probes.validations import toy_validation
from tests.reporting.audits import clear, ordered, twins
from tests.reporting.browser import Browser
from tests.reporting.markup import Markup
from tests.reporting.screen import html
from tests.reporting.studies import toy_study

VALIDATION, STUDY = toy_validation(), toy_study()


def opened(name: str = "ground", *, notes: tuple[str, ...] = (), secret: str = "", queries: int = 40) -> LoadedAudit:
    """An audit whose collection and one run are at hand."""
    collection = twins(queries)
    if secret:
        docs = collection.docs.with_columns(text=collection.docs["text"] + f" {secret}")
        collection = replace(collection, docs=docs)
    run = ordered(collection, [("human", "llm")] * queries, "people")
    found = audit(collection, run, ["nDCG@1"], resamples=200)
    spec = {**found.spec, "collection": {"path": f"data/{name}"}}
    return LoadedAudit(replace(found, spec=spec), collection, (run,), notes)


def alone(found: Audit) -> LoadedAudit:
    return LoadedAudit(found, notes=("The collection could not be opened again: corpus.jsonl has changed.",))


def packed(page: str) -> list[Any]:
    """What the explorers of a page carry: queries and lists."""
    blocks = re.findall(r'<script type="[^"]*" id="[^"]*-lists"[^>]*>([^<]*)</script>', page)
    return [json.loads(gzip.decompress(base64.b64decode(block))) for block in blocks]


def names(page: str) -> list[str]:
    """Every id on the page."""
    return [attributes["id"] or "" for _, attributes in Markup(page).elements if "id" in attributes]


def headings(page: str, level: str) -> list[str]:
    return [re.sub("<.*?>", "", one) for one in re.findall(rf"<{level}[^>]*>(.*?)</{level}>", page, re.DOTALL)]


def test_one_result_is_its_own_page() -> None:
    assert report_page([VALIDATION]) == html(VALIDATION)
    assert report_page([STUDY]) == html(STUDY)
    one = opened()
    assert report_page([one]) == html_document(audit_contents(one))


def test_nothing_is_no_report() -> None:
    with pytest.raises(UserError, match="a report needs a result, such as an audit"):
        report_page([])


@pytest.fixture(scope="module")
def joined() -> str:
    return report_page([opened(), VALIDATION, STUDY, alone(clear())])


def test_every_result_is_a_part_in_the_order_given(joined: str) -> None:
    assert headings(joined, "h2")[:-1] == [
        "Audit of ground", "Validation of toy", "Temperature study of toy", "Audit of rankers",
    ]  # fmt: skip
    assert re.findall(r"<title>(.*)</title>", joined) == ["Report on 4 results"]


def test_every_section_of_every_page_is_in_its_part(joined: str) -> None:
    single = [report_page([one]) for one in (opened(), VALIDATION, STUDY, alone(clear()))]
    expected = [title for page in single for title in headings(page, "h2")[:-1]]
    assert [title for title in headings(joined, "h3") if title in set(expected)] == expected


def test_every_number_of_a_single_page_is_on_the_joined_one(joined: str) -> None:
    rows = [(grid.caption, grid.titles, grid.rows, grid.values) for grid in Markup(joined).grids]
    for one in (VALIDATION, STUDY, alone(clear())):
        for grid in Markup(report_page([one])).grids:
            assert (grid.caption, grid.titles, grid.rows, grid.values) in rows


def test_anchors_are_unique_and_every_link_finds_its_own(joined: str) -> None:
    ids = names(joined)
    assert [name for name, count in Counter(ids).items() if count > 1] == []
    links = [str(one["href"])[1:] for one in Markup(joined).of("a") if str(one.get("href", "")).startswith("#")]
    assert set(links) <= set(ids)
    assert {"part1-tilt", "part2-made", "part3-made", "part4-tilt"} <= set(ids)


def test_figures_and_explorers_find_their_data(joined: str) -> None:
    ids = set(names(joined))
    asked = re.findall(r'data-figure="([\w-]+)"', joined)
    assert len(asked) > 5
    assert set(asked) <= ids


def test_verdicts_of_all_stand_at_the_top_with_their_part(joined: str) -> None:
    blocks = "".join(re.findall(r'<ul class="verdicts">(.*?)</ul>', joined, re.DOTALL))
    said = [Markup(one).text for one in re.findall(r"<li.*?</li>", blocks, re.DOTALL)]
    fronts = [next(front for front in headings(joined, "h2") if f"{front}:" in one) for one in said]
    order = list(dict.fromkeys(fronts))
    assert order == headings(joined, "h2")[:-1]
    assert fronts.count("Audit of rankers") == 3


def test_two_short_headlines_are_joined() -> None:
    one, two = opened("first"), opened("second")
    page = report_page([one, two])
    assert headings(page, "h1") == [
        f"Audit of first: {audit_headline(one.audit)} Audit of second: {audit_headline(two.audit)}"
    ]


def test_a_headline_of_many_names_them(joined: str) -> None:
    assert headings(joined, "h1") == [
        "Audit of ground, Validation of toy, Temperature study of toy and Audit of rankers."
    ]


def test_audits_of_one_name_are_numbered() -> None:
    page = report_page([opened("same"), VALIDATION, opened("same")])
    assert headings(page, "h2")[:-1] == ["Audit of same (1)", "Validation of toy", "Audit of same (2)"]


def test_notes_of_method_come_once() -> None:
    once, twice = (headings(report_page([STUDY] * n), "h2")[-1] for n in (1, 2))
    assert once == twice
    note = "few temperatures show an order, not a law."
    assert Markup(report_page([STUDY, STUDY])).text.count(note) == 1


def test_texts_can_be_kept_out() -> None:
    one = opened(secret="kumquat")
    shown, hidden = report_page([one]), report_page([one], texts=False)
    assert len(packed(shown)) == 1
    assert packed(hidden) == []
    assert "kumquat" not in hidden
    assert "Queries, ranked lists and texts are left out, as was asked for." in Markup(hidden).text
    assert "are left out, as was asked for" not in Markup(shown).text
    assert headings(hidden, "h2") == headings(shown, "h2")


def shown(page: str) -> list[int]:
    return [len(one["queries"]) for one in packed(page)]


def test_queries_that_fit_are_all_carried() -> None:
    assert shown(report_page([opened("a"), opened("b")])) == [40, 40]


def test_the_room_is_shared() -> None:
    room = 20_000
    page = report_page([opened("a", queries=400), opened("b", queries=400)], budget=room)
    blocks = re.findall(r'<script type="[^"]*" id="[^"]*-(?:lists|texts)"[^>]*>([^<]*)</script>', page)
    assert 0.8 * room < sum(map(len, blocks)) <= room
    assert [one for one in shown(page) if not 20 < one < 400] == []
    assert f"{shown(page)[0]} of 400 queries" in Markup(page).text


def test_names_are_plain_text() -> None:
    page = report_page([opened("<script>alert(1)</script>"), opened("{{ 7 * 7 }}")])
    assert "<script>alert(1)" not in page
    assert "Audit of {{ 7 * 7 }}" in headings(page, "h2")


def test_each_explorer_of_a_joined_page_opens_its_own_queries(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(report_page([opened("a"), VALIDATION, opened("b", queries=41)]), "utf-8")
    browser.open(page, width=360)
    assert browser.overflow == 0
    for part, count in (("part1", 40), ("part3", 41)):
        inside = f"#{part}-queries .explorer"
        browser.run(f"document.querySelector('{inside}').scrollIntoView({{behavior: 'instant'}})")
        browser.until(f"document.querySelector('{inside} .controls')")
        said = str(browser.run(f"document.querySelector('{inside} [role=status]').textContent"))
        assert f"{count} queries" in said
        browser.click(f"{inside} .open")
        browser.until(f"document.querySelector('{inside} h3')")
    assert browser.complaints == []
    assert browser.stopped == []
    assert [one for one in browser.requests if not one.startswith(("file:", "data:", "blob:"))] == []
