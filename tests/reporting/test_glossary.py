"""Words of the trade are explained where they first stand, and hidden characters are shown."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ranktilt as rt
from ranktilt import Audit
from ranktilt.reporting.glossary import TERMS, Glossary, Term, visible
from ranktilt.reporting.reload import LoadedAudit
from tests.auditing.test_pairwise import chosen
from tests.probes.validations import toy_validation
from tests.reporting.audits import clear, small, three, uneven
from tests.reporting.openings import audit_page
from tests.reporting.screen import html
from tests.reporting.studies import toy_study

CAT = Term("cat", "An animal.", "cats?")
JARGON = {
    r"nDCG": "nDCG",
    r"\bAP\b": "AP",
    r"\bRR\b": "RR",
    r"\bP@\d": "P@k",
    r"Relative Δ": "Relative Δ",
    r"\btilt": "tilt",
    r"NDSR": "ΔNDSR",
    r"ead-to-head": "head-to-head",
    r"ank gap": "pair rank gap",
    r"core gap": "score gap",
    r"question card": "question card",
    r"interval": "95 % interval",
    r"[Bb]ootstrap|resampl": "bootstrap",
    r"corrected p": "corrected p",
    r"\bp [<=]": "p",
    r"permutation|sign flip": "sign-flip permutation test",
    r"sign test": "sign test",
    r"exchanged labels|labels exchanged": "exchanged labels",
    r"andom band": "random band",
    r"could (?:only )?detect": "detectable effect",
    r"\bfavours\b": "favours",
    r"\blevel\b": "level",
    r"nconclusive": "inconclusive",
    r"\b[Tt]wins?\b": "twin",
    r"tied twins": "tied twins",
    r"\b[Tt]ies\b": "tie",
    r"trec_eval": "trec_eval",
    r"\bcontrol(?:led|s)?\b": "control",
    r"[Nn]ear-identical": "near-identical",
    r"oilerplate": "boilerplate",
    r"cut-off endings": "cut-off endings",
    r"uery words": "query words",
    r"nconsistent": "consistent",
    r"oth orders agree": "consistent",
    r"nparsed": "unparsed",
    r"osition bias": "position bias",
    r"irst named|first is named": "first named",
}
"""What a reader from another field may not know, and the entry that explains it."""


def bundled() -> LoadedAudit:
    """Audit the bundled collection with everything that an audit can hold."""
    mixed = rt.bundled()
    rankers = [rt.ranker(text) for text in ("tfidf", "bm25")]
    runs = [one.rank(mixed) for one in rankers]
    found = rt.audit(mixed, runs, ["nDCG@5", "AP@5"], card=True, resamples=100)
    return LoadedAudit(rt.controls(mixed, rankers, runs, found), mixed, tuple(runs))


def of(audit: Audit) -> str:
    return audit_page(LoadedAudit(audit))


PAGES = {
    "everything": lambda: audit_page(bundled()),
    "a card": lambda: of(small(card=True)),
    "clear": lambda: of(clear()),
    "three sources": lambda: of(three()),
    "no twins": lambda: of(uneven()),
    "Bonferroni": lambda: of(small(correction="bonferroni", ties="trec_eval")),
    "a validation": lambda: html(toy_validation()),
    "a study": lambda: html(toy_study()),
    "pairs": lambda: html(chosen()),
}


class Read(HTMLParser):
    """A page as a reader meets it: what each section says, and what it explains."""

    SAID = ("p", "li", "caption", "figcaption", "th", "dt")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.said: dict[str, list[str]] = {}
        self.marked: dict[str, list[str]] = {}
        """What can be hovered in each section."""
        self.links: list[tuple[str, str]] = []
        self.anchors = set(re.findall(r' id="([^"]+)"', text))
        self.entries: dict[str, str] = {}
        self._section, self._open, self._entry, self._abbr, self._link = "", [""], "", False, ""
        text = re.sub(r"<(script|style|code)\b.*?</\1>", "", text, flags=re.DOTALL)
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "section":
            self._section = given.get("id", "headline")
        if tag in self.SAID:
            # A row's name in the list of queries is what somebody typed.
            self._open.append("" if given.get("scope") == "row" and self._section == "queries" else tag)
            self.said.setdefault(self._section, []).append("")
        if tag == "a" and given.get("class") == "term":
            self._link = given["href"]
        if tag == "abbr":
            self.marked.setdefault(self._section, []).append("")
            self._abbr = True
            self.links.append((given["title"], self._link))
        if given.get("id", "").startswith("term-"):
            self._entry = "?"

    def handle_endtag(self, tag: str) -> None:
        if tag in self.SAID and len(self._open) > 1:
            self._open.pop()
        self._abbr = self._abbr and tag != "abbr"
        if tag == "section":
            self._section = ""

    def handle_data(self, data: str) -> None:
        if self._abbr:
            self.marked[self._section][-1] += data
        if self._entry == "?":
            self._entry = data
        elif self._entry:
            self.entries[self._entry], self._entry = data, ""
        elif self._open[-1]:
            self.said[self._section][-1] += data


@pytest.fixture(scope="module", params=PAGES)
def page(request: pytest.FixtureRequest) -> Read:
    return Read(PAGES[request.param]())


def test_term_is_marked_with_its_definition_and_a_link_to_it() -> None:
    marked = str(Glossary((CAT,)).mark("two cats"))
    assert marked == 'two <a class="term" href="#term-cat"><abbr title="An animal.">cats</abbr></a>'


def test_term_is_marked_once_a_section() -> None:
    glossary = Glossary((CAT,))
    assert str(glossary.mark("cat and cat")).count("<abbr") == 1
    assert str(glossary.mark("cat")) == "cat"
    assert glossary.fresh() == ""
    assert str(glossary.mark("cat")).count("<abbr") == 1


@pytest.mark.parametrize("text", ["concat", "cathedral", "cat-like", "dense:cat", "a@cat"])
def test_part_of_another_word_is_not_marked(text: str) -> None:
    glossary = Glossary((CAT,))
    assert str(glossary.mark(text)) == text
    assert glossary.used() == ()


def test_used_terms_come_by_title() -> None:
    glossary = Glossary((Term("zebra", "z"), CAT, Term("Ape", "a"), Term("dog", "d")))
    glossary.mark("a zebra, a cat and an Ape")
    assert [term.title for term in glossary.used()] == ["Ape", "cat", "zebra"]


def test_text_around_a_term_is_escaped() -> None:
    marked = str(Glossary((CAT,)).mark('<b>"cat"</b>'))
    assert marked.startswith("&lt;b&gt;&#34;<a ")
    assert marked.endswith("</a>&#34;&lt;/b&gt;")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the 95 % interval and Holm", ["95\u00a0% interval", "Holm"]),
        ("p = .004", ["p"]),
        ("Relative Δ and its margin", ["Relative Δ", "margin"]),
        ("APE and RRR and stop", []),
        ("tied twins and a tie", ["tied twins", "tie"]),
        ("bm25@100>>dense:level: level", ["level"]),
        ("ΔNDSR@20 and pair rank gap point to x", ["ΔNDSR@20", "pair rank gap"]),
        ("tie.trec, a/tie, tie=1 and --level-margin", []),
    ],
)
def test_terms_of_the_pages_are_found(text: str, expected: list[str]) -> None:
    assert re.findall(r"<abbr[^>]*>(.*?)</abbr>", str(Glossary().mark(text))) == expected


def test_numbers_keep_their_unit_and_intervals_hold_together() -> None:
    assert str(Glossary(()).mark("p < .001, p of")) == "p\u00a0&lt;\u00a0.001, p of"
    assert str(Glossary(()).mark("7 % [−1.0, +2.5] and [a, b]")) == "7\u00a0% [−1.0,\u00a0+2.5] and [a, b]"


def test_words_of_a_definition_are_explained_too() -> None:
    terms = (Term("cat", "An animal that eats a mouse."), Term("mouse", "What a cat eats."), Term("dog", "Another."))
    glossary = Glossary(terms)
    glossary.mark("a cat")
    assert [term.title for term in glossary.used()] == ["cat", "mouse"]


@pytest.mark.parametrize(
    ("title", "hint", "expected"),
    [
        ("x", "Some <b>.", '<abbr title="Some &lt;b&gt;.">x</abbr>'),
        ("cats", "Pets.", '<a class="term" href="#term-cat"><abbr title="Pets.">cats</abbr></a>'),
    ],
)
def test_a_hint_keeps_its_words_and_leads_to_the_first_term(title: str, hint: str, expected: str) -> None:
    assert str(Glossary((CAT,)).hint(title, hint)) == expected


def test_a_hint_makes_no_element() -> None:
    assert "<script" not in Glossary().hint("<script>", '"><script>')


def test_anchors_are_plain_and_unlike() -> None:
    anchors = [term.anchor for term in TERMS]
    assert len(set(anchors)) == len(anchors)
    assert all(re.fullmatch(r"term-[a-z0-9]+(-[a-z0-9]+)*", anchor) for anchor in anchors)


def test_definitions_are_sentences() -> None:
    assert [term.title for term in TERMS if not (term.definition[0].isupper() and term.definition.endswith("."))] == []
    assert max(len(term.definition) for term in TERMS) < 420


def test_every_term_finds_itself() -> None:
    for term in TERMS:
        glossary = Glossary((term,))
        glossary.mark(term.title)
        if term.title not in ("P@k", "R@k"):
            assert glossary.used() == (term,), term.title


def test_no_jargon_of_a_page_stands_unexplained(page: Read) -> None:
    missing = []
    for section, parts in page.said.items():
        for pattern, title in JARGON.items() if section else ():
            spoken = [part for part in parts if re.search(pattern, part)]
            if spoken and section != "notes" and not any(re.search(pattern, one) for one in page.marked[section]):
                missing.append((section, title, spoken[0]))
            if spoken and title not in page.entries:
                missing.append(("notes", title, spoken[0]))
    assert missing == []


def test_every_definition_leads_somewhere(page: Read) -> None:
    assert len(page.links) > 10
    assert {link.removeprefix("#") for _, link in page.links} <= page.anchors


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\u202eb", "a\\u202eb"),
        ("\x00", "\\u0000"),
        ("\ud800", "\\ud800"),
        ("a\tb\nc", "a\tb\nc"),
        ("né 猫 א", "né 猫 א"),
    ],
)
def test_hidden_characters_are_written_out(text: str, expected: str) -> None:
    assert visible(text) == expected


@given(st.text())
def test_marked_text_reads_as_the_text(text: str) -> None:
    from markupsafe import Markup

    plain = Markup(Glossary().mark(text)).striptags() if "<" not in text else ""
    if plain:
        assert plain.split() == visible(text).split()
