"""A page: one file, nothing from outside, texts that are read as nothing else, and every technical
term explained.
"""

import base64
import gzip
import hashlib
import json
import math
import re
from dataclasses import replace
from functools import cache
from html import unescape
from importlib import resources

import markupsafe
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ranktilt as rt
from ranktilt.reporting.document import (
    Cell,
    Code,
    Column,
    Document,
    Explorer,
    Figure,
    Lines,
    NamedValues,
    Row,
    Section,
    Sentence,
    Table,
)
from ranktilt.reporting.figures.charts import histogram
from ranktilt.reporting.glossary import TERMS, Glossary, Term, visible
from ranktilt.reporting.reload import LoadedAudit
from ranktilt.reporting.render.html import _environment, digest, safe_json
from ranktilt.reporting.render.html import render as html_document
from ranktilt.reporting.report import report_page
from tests.auditing.test_pairwise import chosen
from tests.reporting.audits import small, toy_source_audits, uneven
from tests.reporting.readers import Markup, html

HOSTILE = (
    "</script><script>alert(1)</script>{{7*7}}{% raw %}\u202egpj.exe\x00<img src=x "
    "onerror=alert(1)>&amp;\"'"
)


def table(*rows: tuple[Cell, ...], caption: str = "Numbers") -> Table:
    columns = (Column("name", number=False, header=True), Column("value"))
    return Table(caption, columns, tuple(map(Row, rows)), "A note.")


def page(*blocks: object, **fields: object) -> Document:
    parts = {"kind": "Test", "headline": "All is well.", "sentences": (Sentence("Fine."),)}
    section = Section("one", "First", lead=("A lead.",), blocks=blocks)  # type: ignore[arg-type]
    return Document(**{**parts, "sections": (section,), **fields})  # type: ignore[arg-type]


def figure(name: str = "a", *, inner: Table | None = None) -> Figure:
    return Figure("Figure 1", "It shows a.", histogram({name: [1.0, 2.0]}, [0, 1, 2], x="x"), inner)


def everything(text: str) -> Document:
    """A page with one text in every place there is."""
    cells = table((Cell(text), Cell(text, 1.5, "good")), caption=text)
    drawn = Figure(text, text, histogram({text: [1.0]}, [0, 1], x=text), cells)
    blocks = (
        cells,
        drawn,
        NamedValues(pairs=((text, text),)),
        Lines(lines=(Sentence(text),)),
        Code(label=text, text=text),
    )
    return Document(
        kind=text,
        headline=text,
        sections=(Section("one", text, lead=(text,), blocks=blocks),),
        sentences=(Sentence(text, "unsure"),),
        legend=(text,),
    )


def test_page_is_one_html_document_and_carries_library_once() -> None:
    text = html_document(page())
    assert text.startswith("<!DOCTYPE html>")
    assert re.findall(r"<h1>(.*?)</h1>", text) == ["All is well."]
    assert '<html lang="en">' in text
    text = html_document(page(figure("a"), figure("b")))
    (carried,) = re.findall(
        r'<script type="application/octet-stream" id="engine">([^<]*)</script>', text
    )
    assert gzip.decompress(base64.b64decode(carried)).decode() == library()
    assert len(text) < 500_000


def library() -> str:
    folder = resources.files("ranktilt.reporting").joinpath("templates", "vega")
    return "\n".join(
        folder.joinpath(f"{name}.min.js").read_text(encoding="utf-8")
        for name in ("vega", "vega-lite", "vega-interpreter")
    )


def test_policy_lets_only_the_two_known_scripts_run() -> None:
    elements = Markup(html_document(page(figure())))
    policy = next(
        m["content"]
        for m in elements.of("meta")
        if m.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    parts = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert parts["default-src"] == "'none'"
    assert parts["style-src"] == "'unsafe-inline'"
    assert parts["img-src"] == "data: blob:"
    assert parts["base-uri"] == parts["form-action"] == "'none'"
    expected_digest = base64.b64encode(hashlib.sha256(library().encode()).digest()).decode()
    assert parts["script-src"].split()[1] == f"'sha256-{expected_digest}'"
    assert len(parts["script-src"].split()) == 2
    (script,) = re.findall(r"<script>(.*?)</script>", html_document(page(figure())), re.DOTALL)
    assert parts["script-src"].split()[0] == f"'{digest(script)}'"


def test_page_names_own_anchors_alone_and_hostile_text_is_inert() -> None:
    elements = Markup(html_document(page(figure(), table((Cell("a"), Cell("1"))))))
    links = [
        value
        for _, a in elements.elements
        for name, value in a.items()
        if name in ("src", "href", "action")
    ]
    assert links
    assert all(link == "data:," or (link or "").startswith("#") for link in links)
    assert "@import" not in html_document(page())
    assert "url(" not in html_document(page())
    quiet, hostile = (
        Markup(html_document(everything("quiet"))),
        Markup(html_document(everything(HOSTILE))),
    )
    assert [tag for tag, _ in hostile.elements] == [tag for tag, _ in quiet.elements]
    assert not [name for _, a in hostile.elements for name in a if name.startswith("on")]
    assert "{{7*7}}" in hostile.text
    assert "49" not in re.findall(r"<h1>(.*?)</h1>", html_document(everything(HOSTILE)))[0]


@pytest.mark.parametrize("letter", ["\u202e", "\x00", "\u2066", "\ud800"])
def test_characters_that_act_unseen_are_written_out(letter: str) -> None:
    text = html_document(everything(f"a{letter}b"))
    assert letter not in text
    assert f"a\\u{ord(letter):04x}b" in text
    assert text.encode()
    assert visible("a\tb\nc né 猫 א") == "a\tb\nc né 猫 א"


def test_drawing_reads_back_and_never_ends_its_script() -> None:
    text = html_document(page(figure("</script>&<!--")))
    blocks = re.findall(
        r'<script type="application/json" id="([\w-]+)">(.*?)</script>', text, re.DOTALL
    )
    assert [name for name, _ in blocks] == ["one-1-data"]
    assert json.loads(blocks[0][1])["layer"][0]["data"]["values"][0]["name"] == "</script>&<!--"
    value = {"a": "</script><!--&\u2028", "n": math.nan, "v": np.array([1.5, np.inf])}
    text = safe_json(value)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"a": "</script><!--&\u2028", "n": None, "v": [1.5, None]}


def test_table_has_a_caption_scopes_and_exact_numbers() -> None:
    text = html_document(
        page(table((Cell("bm25"), Cell("0.33", 1 / 3)), (Cell("tfidf"), Cell("–", math.nan))))
    )
    assert '<caption id="one-1-caption">Numbers</caption>' in text
    assert text.count('scope="col"') == 2
    assert text.count('<th scope="row"') == 2
    assert '<td class="number" data-value="0.3333333333333333"><bdi>0.33</bdi></td>' in text
    assert 'data-value="nan"' in text
    wide = {"class": "wide", "role": "region", "tabindex": "0", "aria-labelledby": "one-1-caption"}
    assert wide in Markup(text).of("div")  # scrolled by keyboard
    text = html_document(
        page(table((Cell("a"), Cell("+1.0", 1.0, "second"))))
    )  # the side is said by a sign too
    assert (
        '<td class="number second" data-value="1.0"><span class="sign" aria-hidden="true">▼</span>'
        in text
    )


def test_figure_has_words_beside_it() -> None:
    text = html_document(page(figure(inner=table((Cell("a"), Cell("1"))))))
    plot = next(a for a in Markup(text).of("div") if a.get("class") == "plot")
    assert plot["aria-labelledby"] == "one-1-caption"
    assert plot["aria-describedby"] == "one-1-says"
    assert '<p class="note" id="one-1-says">It shows a.</p>' in text


def test_verdict_signs_are_explained_once_by_side_names() -> None:
    sentences = (
        Sentence("X.", "second"),
        Sentence("Y.", "second"),
        Sentence("Z.", "unsure"),
        Sentence("No sign."),
    )
    html = html_document(page(sentences=sentences, sides=("{a}", "b <i>")))
    (legend,) = re.findall(r'<p class="note signs">(.*?)</p>', html)
    assert (
        re.sub("<[^>]*>", "|", legend).replace("|", "")
        == "▲ favours {a}▼ favours b &lt;i&gt;○ inconclusive"
    )
    assert 'class="note signs"' not in html_document(page())
    document = replace(
        page(), headline="It tilts.", sentences=(Sentence("It tilts: much"), Sentence("It tilts"))
    )
    assert [line.text for line in document.page_lines] == [
        "It tilts: much"
    ]  # which the headline does not say


def test_headings_stand_over_their_columns() -> None:
    columns = (Column("name", number=False, header=True), Column("x"), Column("y"))
    block = Table(
        "Both", columns, (Row((Cell("a"), Cell("1"), Cell("2"))),), spans=(("", 1), ("nDCG@3", 2))
    )
    text = html_document(page(block))
    assert '<tr class="over"><td colspan="1"></td><th scope="colgroup" colspan="2">' in text
    assert Markup(text).grid("Both").rows == [["a", "1", "2"]]


def test_sections_of_one_result_stand_under_its_heading() -> None:
    sections = tuple(
        Section(name, name.title(), part=part)
        for name, part in (("a", "Audit"), ("b", "Audit"), ("c", "Study"), ("d", ""))
    )
    text = html_document(page(sections=sections))
    headings = re.findall(r"<(h[23])[^>]*>([^<]*)</h", text)
    assert headings == [
        ("h2", "Findings"),
        ("h2", "Audit"),
        ("h3", "A"),
        ("h3", "B"),
        ("h2", "Study"),
        ("h3", "C"),
        ("h2", "D"),
        ("h2", "Method notes"),
    ]
    nav = text[text.index("<nav") : text.index("</nav>")]
    assert re.findall(r'href="#([\w-]+)"[^>]*>([^<]*)<', nav) == [
        ("findings", "Findings"),
        ("a-part", "Audit"),
        ("c-part", "Study"),
        ("d", "D"),
        ("notes", "Method"),
        ("a", "A"),
        ("b", "B"),
        ("c", "C"),
    ]


def explorer(text: str = "All.") -> Explorer:
    return Explorer(
        caption=text,
        description=text,
        lists="bGlzdHM=",
        texts="dGV4dHM=",
        rows=table((Cell(text), Cell("1", 1))),
    )


def test_explorer_carries_its_data_and_the_rows_for_readers_without_scripts() -> None:
    text = html_document(page(explorer()))
    assert (
        '<script type="application/octet-stream" id="one-1-explorer-lists">bGlzdHM=</script>'
        in text
    )
    assert (
        '<script type="application/octet-stream" id="one-1-explorer-texts">dGV4dHM=</script>'
        in text
    )
    assert '<div class="explorer" id="one-1-explorer" data-caption="All." hidden></div>' in text
    assert Markup(text).grid("Numbers").rows == [["All.", "1"]]
    assert '<li><a href="#one">See for yourself: every query, with its lists and texts</a>' in text
    without = html_document(page(replace(explorer(), texts="")))
    assert '<a href="#one">See for yourself: every query, with its lists</a>' in without
    assert "See for yourself" not in html_document(page(figure()))
    hostile = Markup(html_document(page(explorer(HOSTILE))))
    assert [tag for tag, _ in hostile.elements] == [tag for tag, _ in Markup(text).elements]
    text = html_document(page(explorer(), explorer()))  # one script that the policy names
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert len(scripts) == 2
    assert all(f"&#39;{digest(script)}&#39;" in text for script in scripts)
    assert "<" + "!--" not in "".join(scripts)


def test_folded_table_is_behind_caption_and_lines_fold_after_sixth() -> None:
    html = html_document(page(replace(table((Cell("a"), Cell("1", 1.0))), collapsed=True)))
    assert re.search(r"<details><summary>Numbers</summary>\s*<div class=\"wide\"", html)
    assert Markup(html).grid("Numbers").column("value") == ["1"]
    assert "<details>" not in html_document(page(table((Cell("a"), Cell("1", 1.0)))))
    sentences = tuple(Sentence(f"Line {number}.", "good") for number in range(8))
    before, collapsed = html_document(page(sentences=sentences)).split("<summary>2 more</summary>")
    assert [
        "Line 5." in before,
        "Line 6." in before,
        "Line 7." in collapsed.split("</details>")[0],
    ] == [True, False, True]
    assert "more</summary>" not in html_document(page(sentences=sentences[:6]))


def luminance(colour: str) -> float:
    """Relative luminance of a colour such as ``#0072b2`` (WCAG 2.2)."""
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_colours_stand_out_from_their_ground(theme: str) -> None:
    style = (
        resources.files("ranktilt.reporting")
        .joinpath("templates", "page.css")
        .read_text(encoding="utf-8")
    )
    dark, _, light = style.partition(":root {")
    colours = dict(
        re.findall(
            r"--([a-z-]+): (#[0-9a-f]{6})", dark if theme == "dark" else light.partition("}")[0]
        )
    )

    def contrast(colour: str, ground: str) -> float:
        above, below = sorted(
            (luminance(colours[colour]), luminance(colours[ground])), reverse=True
        )
        return (above + 0.05) / (below + 0.05)

    for ground in ("ground", "paper", "shade"):
        for name in ("ink", "dim", "link", "good", "bad", "unsure", "first", "second"):
            assert contrast(name, ground) >= 4.5, (name, ground)
    assert all(contrast(letter, "paper") >= 3 for letter in (*"abcdefgh", "edge"))
    assert all(
        contrast(side, neighbour) >= 3
        for side in ("first", "second")
        for neighbour in ("line", f"{side}-wash")
    )
    assert all(contrast("ink", f"{name}-wash") >= 7 for name in ("first", "second", "query"))


CAT = Term(title="cat", definition="An animal.", pattern="cats?")
JARGON = {
    r"nDCG": "nDCG",
    r"\bAP\b": "AP",
    r"\bRR\b": "RR",
    r"\bP@\d": "P@k",
    r"Relative Δ": "Relative Δ",
    r"\b[Tt]ilt": "tilt",
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
PROSE = re.compile(r'<(p|li|caption|figcaption|th|dt)\b(?! scope="row")[^>]*>(.*?)</\1>', re.DOTALL)


def plain(markup: str) -> str:
    return unescape(re.sub("<.*?>", "", markup))


@cache
def full_audit() -> LoadedAudit:
    """Audit the bundled collection with everything that an audit can hold."""
    mixed = rt.bundled()
    rankers = [rt.ranker(text) for text in ("tfidf", "bm25")]
    runs = [ranker.rank(mixed) for ranker in rankers]
    result = rt.audit(mixed, runs, ["nDCG@5", "AP@5"], card=True, resamples=100)
    return LoadedAudit(rt.controls(mixed, rankers, runs, result), mixed, tuple(runs))


PAGES = {
    "everything": lambda: report_page([full_audit()]),
    "trec_eval": lambda: report_page(
        [LoadedAudit(small(card=True, correction="bonferroni", ties="trec_eval"))]
    ),
    "no twins": lambda: report_page([LoadedAudit(uneven())]),
    "several sources": lambda: html(toy_source_audits()),
    "pairs": lambda: html(chosen()),
}


@pytest.mark.parametrize("name", PAGES)
def test_no_jargon_of_a_page_stands_unexplained(name: str) -> None:
    page = re.sub(r"<(script|style|code)\b.*?</\1>", "", PAGES[name](), flags=re.DOTALL)
    sections = dict(re.findall(r'<section[^>]* id="([^"]+)"[^>]*>(.*?)</section>', page, re.DOTALL))
    entries = {
        plain(title) for title in re.findall(r'<dt id="term-[^>]*>(.*?)</dt>', page, re.DOTALL)
    }
    missing = []
    for section, text in sections.items():
        marked = [
            plain(phrase) for phrase in re.findall(r"<abbr[^>]*>(.*?)</abbr>", text, re.DOTALL)
        ]
        parts = [plain(part) for _, part in PROSE.findall(text)]
        for pattern, title in JARGON.items():
            spoken = [part for part in parts if re.search(pattern, part)]
            explained = section == "notes" or any(re.search(pattern, phrase) for phrase in marked)
            if spoken and not (explained and title in entries):
                missing.append((section, title, spoken[0]))
    assert len(sections) > 2
    assert missing == []
    links = re.findall(r'<a class="term" href="#([^"]+)"><abbr title="[^"]+', page)
    assert len(links) > 10
    assert set(links) <= set(re.findall(r' id="([^"]+)"', page))


def test_term_is_marked_once_a_section_with_definition_and_link() -> None:
    marked = (
        'two <a class="term" href="#term-cat"><abbr title="An animal.">cats</abbr></a> and a cat'
    )
    glossary = Glossary((CAT,))
    assert str(glossary.mark("two cats and a cat")) == marked
    assert str(glossary.mark("cat")) == "cat"
    assert glossary.fresh() == ""
    assert str(glossary.mark("cat")).count("<abbr") == 1
    assert str(glossary.mark('<b>"cat"</b>')) == "&lt;b&gt;&#34;cat&#34;&lt;/b&gt;"
    assert str(Glossary(()).mark("p < .001, p of")) == "p\u00a0&lt;\u00a0.001, p of"
    assert (
        str(Glossary(()).mark("7 % [−1.0, +2.5] and [a, b]"))
        == "7\u00a0% [−1.0,\u00a0+2.5] and [a, b]"
    )
    mouse = Term(
        title="mouse", definition="What a cat eats."
    )  # what was met, and words of definitions, come by title
    glossary = Glossary(
        (
            Term(title="zebra", definition="z"),
            mouse,
            CAT,
            Term(title="Ape", definition="a"),
            Term(title="dog", definition="d"),
        )
    )
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
        ("tie.trec, a/tie, tie=1 and --margin", []),
    ],
)
def test_page_terms_are_found_but_not_within_names(text: str, expected: list[str]) -> None:
    assert re.findall(r"<abbr[^>]*>(.*?)</abbr>", str(Glossary().mark(text))) == expected


def test_a_hint_keeps_its_words_and_leads_to_the_first_term() -> None:
    hinted = '<a class="term" href="#term-cat"><abbr title="Pets.">cats</abbr></a>'
    assert str(Glossary((CAT,)).hint("x", "Some <b>.")) == '<abbr title="Some &lt;b&gt;.">x</abbr>'
    assert str(Glossary((CAT,)).hint("cats", "Pets.")) == hinted
    assert "<script" not in Glossary().hint("<script>", '"><script>')


def test_terms_have_own_anchor_and_sentence_and_find_themselves() -> None:
    anchors = [term.anchor for term in TERMS]
    assert len(set(anchors)) == len(anchors)
    assert all(re.fullmatch(r"term-[a-z0-9]+(-[a-z0-9]+)*", anchor) for anchor in anchors)
    assert [
        term.title
        for term in TERMS
        if not (term.definition[0].isupper() and term.definition.endswith("."))
    ] == []
    assert max(len(term.definition) for term in TERMS) < 420
    for term in TERMS:
        glossary = Glossary((term,))
        glossary.mark(term.title)
        if term.title not in ("P@k", "R@k"):
            assert glossary.used() == (term,), term.title


@given(st.text())
def test_marked_text_reads_as_the_text(text: str) -> None:
    read = markupsafe.Markup(Glossary().mark(text)).striptags() if "<" not in text else ""
    if read:
        assert read.split() == visible(text).split()


def test_marks_of_direction_are_visible() -> None:
    assert visible("a\u200eb\u200fc\u061cd") == r"a\u200eb\u200fc\u061cd"
    assert visible("a\u200cb") == "a\u200cb"  # Persian writes it within words


def test_a_template_is_compiled_once() -> None:
    first, second = (_environment().get_template("page.html") for _ in range(2))
    assert first is second
