"""Words of the trade are explained where they first stand, and hidden characters are shown."""

import re
from functools import cache
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

import ranktilt as rt
from ranktilt.reporting.glossary import TERMS, Glossary, Term, visible
from ranktilt.reporting.reload import LoadedAudit
from tests.auditing.test_pairwise import chosen
from tests.reporting.audits import small, uneven
from tests.reporting.openings import audit_page
from tests.reporting.screen import html
from tests.reporting.studies import toy_study

CAT = Term("cat", "An animal.", "cats?")
JARGON = {
    r"nDCG": "nDCG", r"\bAP\b": "AP", r"\bRR\b": "RR", r"\bP@\d": "P@k", r"Relative Δ": "Relative Δ",
    r"\btilt": "tilt", r"NDSR": "ΔNDSR", r"ead-to-head": "head-to-head", r"ank gap": "pair rank gap",
    r"core gap": "score gap", r"question card": "question card", r"interval": "95 % interval",
    r"[Bb]ootstrap|resampl": "bootstrap", r"corrected p": "corrected p", r"\bp [<=]": "p",
    r"permutation|sign flip": "sign-flip permutation test", r"sign test": "sign test",
    r"exchanged labels|labels exchanged": "exchanged labels", r"andom band": "random band",
    r"could (?:only )?detect": "detectable effect", r"\bfavours\b": "favours", r"\blevel\b": "level",
    r"nconclusive": "inconclusive", r"\b[Tt]wins?\b": "twin", r"tied twins": "tied twins", r"\b[Tt]ies\b": "tie",
    r"trec_eval": "trec_eval", r"\bcontrol(?:led|s)?\b": "control", r"[Nn]ear-identical": "near-identical",
    r"oilerplate": "boilerplate", r"cut-off endings": "cut-off endings", r"uery words": "query words",
    r"nconsistent": "consistent", r"oth orders agree": "consistent", r"nparsed": "unparsed",
    r"osition bias": "position bias", r"irst named|first is named": "first named",
}  # fmt: skip
"""What a reader from another field may not know, and the entry that explains it."""
SAID = re.compile(r'<(p|li|caption|figcaption|th|dt)\b(?! scope="row")[^>]*>(.*?)</\1>', re.DOTALL)


def plain(markup: str) -> str:
    """A piece of a page without its tags."""
    return unescape(re.sub("<.*?>", "", markup))


@cache
def everything() -> LoadedAudit:
    """Audit the bundled collection with everything that an audit can hold."""
    mixed = rt.bundled()
    rankers = [rt.ranker(text) for text in ("tfidf", "bm25")]
    runs = [one.rank(mixed) for one in rankers]
    found = rt.audit(mixed, runs, ["nDCG@5", "AP@5"], card=True, resamples=100)
    return LoadedAudit(rt.controls(mixed, rankers, runs, found), mixed, tuple(runs))


PAGES = {
    "everything": lambda: audit_page(everything()),
    "trec_eval": lambda: audit_page(LoadedAudit(small(card=True, correction="bonferroni", ties="trec_eval"))),
    "no twins": lambda: audit_page(LoadedAudit(uneven())),
    "a study": lambda: html(toy_study()),
    "pairs": lambda: html(chosen()),
}


@pytest.mark.parametrize("name", PAGES)
def test_no_jargon_of_a_page_stands_unexplained(name: str) -> None:
    page = re.sub(r"<(script|style|code)\b.*?</\1>", "", PAGES[name](), flags=re.DOTALL)
    sections = dict(re.findall(r'<section[^>]* id="([^"]+)"[^>]*>(.*?)</section>', page, re.DOTALL))
    entries = {plain(title) for title in re.findall(r'<dt id="term-[^>]*>(.*?)</dt>', page, re.DOTALL)}
    missing = []
    for section, text in sections.items():
        marked = [plain(one) for one in re.findall(r"<abbr[^>]*>(.*?)</abbr>", text, re.DOTALL)]
        parts = [plain(part) for _, part in SAID.findall(text)]
        for pattern, title in JARGON.items():
            spoken = [part for part in parts if re.search(pattern, part)]
            explained = section == "notes" or any(re.search(pattern, one) for one in marked)
            if spoken and not (explained and title in entries):
                missing.append((section, title, spoken[0]))
    assert len(sections) > 2
    assert missing == []
    links = re.findall(r'<a class="term" href="#([^"]+)"><abbr title="[^"]+', page)
    assert len(links) > 10
    assert set(links) <= set(re.findall(r' id="([^"]+)"', page))


def test_a_term_is_marked_once_a_section_with_its_definition_and_a_link_to_it() -> None:
    marked = 'two <a class="term" href="#term-cat"><abbr title="An animal.">cats</abbr></a> and a cat'
    glossary = Glossary((CAT,))
    assert str(glossary.mark("two cats and a cat")) == marked
    assert str(glossary.mark("cat")) == "cat"
    assert glossary.fresh() == ""
    assert str(glossary.mark("cat")).count("<abbr") == 1
    assert str(glossary.mark('<b>"cat"</b>')) == "&lt;b&gt;&#34;cat&#34;&lt;/b&gt;"


def test_terms_that_were_met_and_words_of_their_definitions_come_by_title() -> None:
    mouse = Term("mouse", "What a cat eats.")
    glossary = Glossary((Term("zebra", "z"), mouse, CAT, Term("Ape", "a"), Term("dog", "d")))
    glossary.mark("a zebra, a mouse and an Ape")
    assert [term.title for term in glossary.used()] == ["Ape", "cat", "mouse", "zebra"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the 95 % interval and Holm", ["95\u00a0% interval", "Holm"]),
        ("p = .004", ["p"]),
        ("Relative Δ and its margin", ["Relative Δ", "margin"]),
        ("APE and RRR and stop, dense:level and level-like, a@level", []),
        ("tied twins and a tie", ["tied twins", "tie"]),
        ("bm25@100>>dense:level: level", ["level"]),
        ("ΔNDSR@20 and pair rank gap point to x", ["ΔNDSR@20", "pair rank gap"]),
        ("tie.trec, a/tie, tie=1 and --level-margin", []),
    ],
)
def test_terms_of_the_pages_are_found_but_not_as_parts_of_names(text: str, expected: list[str]) -> None:
    assert re.findall(r"<abbr[^>]*>(.*?)</abbr>", str(Glossary().mark(text))) == expected


def test_numbers_keep_their_unit_and_intervals_hold_together() -> None:
    assert str(Glossary(()).mark("p < .001, p of")) == "p\u00a0&lt;\u00a0.001, p of"
    assert str(Glossary(()).mark("7 % [−1.0, +2.5] and [a, b]")) == "7\u00a0% [−1.0,\u00a0+2.5] and [a, b]"


def test_a_hint_keeps_its_words_and_leads_to_the_first_term() -> None:
    hinted = '<a class="term" href="#term-cat"><abbr title="Pets.">cats</abbr></a>'
    assert str(Glossary((CAT,)).hint("x", "Some <b>.")) == '<abbr title="Some &lt;b&gt;.">x</abbr>'
    assert str(Glossary((CAT,)).hint("cats", "Pets.")) == hinted
    assert "<script" not in Glossary().hint("<script>", '"><script>')


def test_every_term_has_an_anchor_of_its_own_a_sentence_and_finds_itself() -> None:
    anchors = [term.anchor for term in TERMS]
    assert len(set(anchors)) == len(anchors)
    assert all(re.fullmatch(r"term-[a-z0-9]+(-[a-z0-9]+)*", anchor) for anchor in anchors)
    assert [term.title for term in TERMS if not (term.definition[0].isupper() and term.definition.endswith("."))] == []
    assert max(len(term.definition) for term in TERMS) < 420
    for term in TERMS:
        glossary = Glossary((term,))
        glossary.mark(term.title)
        if term.title not in ("P@k", "R@k"):
            assert glossary.used() == (term,), term.title


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a\u202eb", "a\\u202eb"), ("\x00", "\\u0000"), ("\ud800", "\\ud800"), ("a\tb\nc né 猫 א", "a\tb\nc né 猫 א")],
)
def test_hidden_characters_are_written_out(text: str, expected: str) -> None:
    assert visible(text) == expected


@given(st.text())
def test_marked_text_reads_as_the_text(text: str) -> None:
    read = Markup(Glossary().mark(text)).striptags() if "<" not in text else ""
    if read:
        assert read.split() == visible(text).split()
