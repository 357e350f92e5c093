"""The call that makes a report: of results, files and what is at hand, several on one page;
pictures for the docs.
"""

import gzip
import re
import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ranktilt as rt
from ranktilt import Audit, audit
from ranktilt.errors import DataError
from ranktilt.reporting.headline import headline
from ranktilt.reporting.reload import LoadedAudit, reload
from ranktilt.reporting.render.html import render as html_document
from ranktilt.reporting.report import laid_out, opened, read_result, report, report_page
from ranktilt.reporting.views.audit.audit import view as audit_view
from scripts import pictures
from tests.explaining.checks import toy_check
from tests.house import tree
from tests.refusals import refused
from tests.reporting.audits import clear, ordered, toy_source_audits, twins
from tests.reporting.browser import Browser, program
from tests.reporting.openings import TOY_RUN, audited
from tests.reporting.readers import Markup, explorers, html
from tests.reporting.results import result
from tests.toy import run_of, toy, write

QUICK: dict[str, Any] = {"resamples": 100}
CHECK, SOURCES = toy_check(), toy_source_audits()


def loaded(name: str = "ground", *, secret: str = "", queries: int = 40) -> LoadedAudit:
    """An audit whose collection and one run are at hand."""
    collection = twins(queries)
    if secret:
        docs = collection.docs.with_columns(text=collection.docs["text"] + f" {secret}")
        collection = replace(collection, docs=docs)
    run = ordered(collection, [("human", "llm")] * queries, "people")
    result = audit(collection, run, ["nDCG@1"], **QUICK)
    spec = {**result.spec, "collection": {"path": f"data/{name}"}}
    return LoadedAudit(replace(result, spec=spec), collection, (run,))


def headings(page: str, level: str) -> list[str]:
    return [
        re.sub("<.*?>", "", heading)
        for heading in re.findall(rf"<{level}[^>]*>(.*?)</{level}>", page, re.DOTALL)
    ]


def read(file: Path) -> str:
    return file.read_text("utf-8")


class TestGiven:
    def test_a_result_or_its_file_becomes_a_page_with_its_queries(self, here: Path) -> None:
        audited_twins, _, _ = audited()
        audited_twins.save("audit.json")
        path = rt.report(audited_twins, "report.html")
        assert path == Path("report.html")
        (carried,) = explorers(read(path))
        assert carried["runs"] == ["bm25"]
        assert {query["id"] for query in carried["queries"]} == {"q1", "q2", "q3"}
        assert read(rt.report("audit.json", "two.html")) == read(path)

    def test_a_layout_is_written_in_the_format_of_its_ending(self, here: Path) -> None:
        pytest.importorskip("vl_convert")
        audited_twins, _, _ = audited()
        audited_twins.save("audit.json")
        starts = {
            "t.tex": ("dai-3", "\\begin"),
            "t.md": ("paper", "**"),
            "t.csv": ("dai-3", "table,"),
        }
        for file, (layout, start) in starts.items():
            assert start in read(rt.report("audit.json", file, layout=layout))[:300]
        assert read(
            rt.report(result("check, every part, three sources"), "f.svg", layout="dai-fig14")
        ).startswith("<svg")
        with refused(
            "dai-fig10 is 3 figures of these results; write all of them: ranktilt report "
            "RESULT.json …"
        ):
            rt.report(result("bench"), "f.svg", layout="dai-fig10")
        endings = ".tex, .md, .csv, .svg, .pdf, .png"
        with refused(
            "unknown ending of a file with a layout '.txt'; did you mean '.tex'? (valid: "
            f"{endings})"
        ):
            rt.report(audited_twins, "t.txt", layout="dai-3")

    def test_results_keep_order_and_file_named_twice_counts_once(self, here: Path) -> None:
        audited_twins, _, _ = audited()
        audited_twins.save("audit.json")
        path = rt.report([SOURCES, "audit.json", clear()], "report.html", texts=False)
        assert headings(read(path), "h2")[1:-1] == [
            "Audit of the sources of toy",
            *(f"Audit of the sources of toy: human | llama-tmp{t}" for t in ("0.2", "0.6", "1")),
            "Audit of bm25 on toy",
            "Audit of people, machines and nobody",
        ]
        twice = opened(["audit.json", here / "audit.json", audited_twins, audited_twins])
        assert [type(part) for part in twice] == [LoadedAudit, LoadedAudit]

    def test_a_collection_and_runs_at_hand_are_used(self, tmp_path: Path) -> None:
        collection = toy()
        run = run_of(collection, TOY_RUN, ranker="mine")
        result = rt.audit(collection, run, **QUICK)
        assert explorers(read(rt.report(result, tmp_path / "without.html"))) == []
        for runs in (run, (only_run for only_run in [run])):
            page = read(rt.report(result, tmp_path / "with.html", collection=collection, runs=runs))
            assert explorers(page)[0]["runs"] == ["mine"]

    @pytest.mark.parametrize(
        "name", ["audit", "check", "comparison", "gate", "replayed log", "check, every part"]
    )
    def test_each_kind_of_result_is_reported_from_its_file(self, tmp_path: Path, name: str) -> None:
        case_result = result(name)
        file = case_result.save(tmp_path / "found.json")
        (tmp_path / "found.json.gz").write_bytes(gzip.compress(file.read_bytes()))
        assert read_result(file) == read_result(tmp_path / "found.json.gz") == case_result
        again = reload(case_result) if name == "audit" else case_result
        assert read(rt.report(file, tmp_path / "page.html")) == report_page([again])


class TestRefused:
    def test_what_cannot_be_reported_or_written(self, here: Path) -> None:
        audits = [audited()[0], audited(rankers=("tfidf",))[0]]
        for results in ([CHECK], audits, [SOURCES, audits[0]]):
            count = 2 if len(results) == 2 else 0
            with refused(f"a collection or runs belong to one audit, got {count} audits"):
                rt.report(results, "report.html", collection=rt.load("toy"))
        with refused("runs belong to an audit of one source, got an audit of several sources"):
            rt.report(SOURCES, "report.html", runs=run_of(toy(), TOY_RUN))
        with refused("expected a result of RankTilt, or its file, got {'a': 1}"):
            rt.report([{"a": 1}], "report.html")  # type: ignore[list-item]
        with refused("a report needs a result, such as an audit"):
            report_page([])
        audits[0].save("audit.json")
        with refused(
            f"{here / 'audit.json'}: this file is read too; choose another file for the page"
        ):
            report("audit.json", here / "audit.json")
        assert Audit.load("audit.json") == audits[0]

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("gone.json", None, "cannot be read: No such file or directory"),
            ("", None, "cannot be read: Is a directory"),
            ("empty.json", "", "the file is empty"),
            ("page.html", "<!DOCTYPE html>", "expected a result of RankTilt as JSON: "),
            (
                "plain.json",
                '{"a": 1}',
                "expected a result of RankTilt, got JSON without a format; ranktilt audit, ",
            ),
            (
                "other.json",
                '{"format": "geojson"}',
                "expected a result of RankTilt, got format 'geojson'; ",
            ),
            (
                "old.json",
                '{"format": "ranktilt-audit", "version": 99}',
                "is an audit of version 99, but this RankTilt reads version 1",
            ),
            (
                "half.json",
                '{"format": "ranktilt-audit", "version": 1}',
                "was changed after ranktilt wrote it",
            ),
        ],
    )
    def test_files_that_hold_no_result(
        self, tmp_path: Path, name: str, content: str | None, message: str
    ) -> None:
        path = tmp_path / name if content is None else write(tmp_path / name, content)
        with pytest.raises(DataError, match="^" + re.escape(f"{path}: {message}")):
            read_result(path)

    def test_papers_take_some_kinds_of_results_only(self, tmp_path: Path) -> None:
        path = result("gate").save(tmp_path / "found.json")
        kinds = (
            "an audit, an audit of several sources, an explanation, a pairwise audit, a bench, a "
            "training study, "
            "a comparison or a check"
        )
        verbs = "ranktilt audit, explain, pairwise, mitigate, train study, compare and check"
        with refused(
            f"{path}: expected {kinds}, got a gate's report; {verbs} write one with --json FILE",
            DataError,
        ):
            read_result(path, laid_out())


RESULTS: Sequence[Any] = (
    loaded(),
    CHECK,
    SOURCES,
    LoadedAudit(clear(), notes=("It has changed.",)),
)
NAMES = (
    "Audit of people on ground",
    "Check of toy",
    "Audit of the sources of toy",
    "Audit of people, machines and nobody",
)


@pytest.fixture(scope="module")
def joined() -> str:
    return report_page(RESULTS)


class TestJoined:
    def test_one_result_is_its_own_page(self) -> None:
        assert report_page([CHECK]) == html(CHECK)
        assert report_page(RESULTS[:1]) == html_document(audit_view(RESULTS[0]))

    def test_every_result_is_a_part_with_its_sections_and_numbers(self, joined: str) -> None:
        assert re.findall(r"<title>(.*)</title>", joined) == ["Report on 4 results"]
        assert headings(joined, "h1") == [
            f"{NAMES[0]}: people favours human text (by nDCG@1). And 3 other results."
        ]
        assert headings(joined, "h2")[1:-1] == [*NAMES]
        single = [report_page([single_result]) for single_result in RESULTS]
        expected = [title for page in single for title in headings(page, "h2")[:-1]]
        expected = [title for title in expected if title != "Findings"]
        assert [title for title in headings(joined, "h3") if title in set(expected)] == expected
        grids = [vars(grid) for grid in Markup(joined).grids]
        assert [
            vars(grid)
            for page in single[1:]
            for grid in Markup(page).grids
            if vars(grid) not in grids
        ] == []

    def test_links_and_figures_find_anchors_and_verdicts_are_on_top(self, joined: str) -> None:
        page = Markup(joined)
        ids = Counter(
            attributes["id"] or "" for _, attributes in page.elements if "id" in attributes
        )
        assert [name for name, count in ids.items() if count > 1] == []
        links = [
            str(link["href"])[1:]
            for link in page.of("a")
            if str(link.get("href", "")).startswith("#")
        ]
        figures = re.findall(r'data-figure="([\w-]+)"', joined)
        assert len(figures) > 5
        anchors = {"part1-made", "part2-answer", "part2-made", "part3-made", "part4-tilt"}
        assert {*links, *figures, *anchors} <= set(ids)
        blocks = "".join(re.findall(r'<ul class="verdicts">(.*?)</ul>', joined, re.DOTALL))
        lines = [Markup(listed).text for listed in re.findall(r"<li.*?</li>", blocks, re.DOTALL)]
        fronts = [next(name for name in NAMES if f"{name}:" in line) for line in lines]
        assert tuple(dict.fromkeys(fronts)) == NAMES
        assert fronts.count("Audit of people, machines and nobody") == 3

    def test_headlines_are_joined_names_numbered_and_notes_come_once(
        self,
    ) -> None:
        first, second = loaded("<b>{{ 7 * 7 }}"), loaded("<b>{{ 7 * 7 }}")
        page = report_page([first, second], texts=False)
        names = [f"Audit of people on &lt;b&gt;{{{{ 7 * 7 }}}} ({n})" for n in (1, 2)]
        assert headings(page, "h2")[1:-1] == names
        assert headings(page, "h1") == [
            " ".join(f"{name}: {headline(first.audit)}" for name in names)
        ]
        assert (
            Markup(report_page([SOURCES, SOURCES])).text.count(
                "few temperatures show an order, not a law."
            )
            == 1
        )


class TestTexts:
    def test_texts_can_be_kept_out_and_several_explorers_share_the_room(self) -> None:
        opened_audit = loaded(secret="kumquat")
        with_texts, hidden = report_page([opened_audit]), report_page([opened_audit], texts=False)
        assert (len(explorers(with_texts)), len(explorers(hidden))) == (1, 0)
        assert "kumquat" not in hidden
        assert "Queries, ranked lists and texts are left out, as you asked." in Markup(hidden).text
        assert headings(hidden, "h2") == headings(with_texts, "h2")
        room = 20_000
        page = report_page([loaded("a", queries=400), loaded("b", queries=400)], budget=room)
        blocks = re.findall(
            r'<script type="[^"]*" id="[^"]*-(?:lists|texts)"[^>]*>([^<]*)</script>', page
        )
        assert 0.8 * room < sum(map(len, blocks)) <= room
        counts = [len(explorer["queries"]) for explorer in explorers(page)]
        assert [20 < count < 400 for count in counts] == [True, True]
        assert f"{counts[1]} of 400 queries" in Markup(page).text

    def test_each_explorer_of_a_joined_page_opens_its_own_queries(
        self, browser: Browser, tmp_path: Path
    ) -> None:
        page = tmp_path / "report.html"
        page.write_text(report_page([loaded("a"), CHECK, loaded("b", queries=41)]), "utf-8")
        browser.open(page, width=360)
        assert browser.overflow == 0
        for part, count in (("part1", 40), ("part3", 41)):
            inside = f"#{part}-queries .explorer"
            browser.run(
                f"document.querySelector('{inside}').scrollIntoView({{behavior: 'instant'}})"
            )
            browser.until(f"document.querySelector('{inside} .controls')")
            status = str(
                browser.run(f"document.querySelector('{inside} [role=status]').textContent")
            )
            assert f"{count} queries" in status
            browser.click(f"{inside} .open")
            browser.until(f"document.querySelector('{inside} h3')")
        assert browser.complaints == []
        assert browser.stopped == []
        assert browser.requests == [page.as_uri()]


IMAGES = tree.ROOT / "docs" / "images"


def png_size(picture: Path) -> tuple[int, int]:
    start = picture.read_bytes()[:24]
    assert start.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", start[16:])
    return width, height


def test_every_picture_is_shown() -> None:
    pages = [tree.ROOT / "README.md", *(tree.ROOT / "docs").rglob("*.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert [
        picture.name for picture in IMAGES.iterdir() if f"images/{picture.name}" not in text
    ] == []


@pytest.mark.long
@pytest.mark.neural
def test_both_pictures_are_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program()
    pytest.importorskip("playwright", reason="needs Playwright, which is not installed")
    assert pictures.main([str(tmp_path / "new")]) == 0
    paths = sorted((tmp_path / "new").iterdir())
    assert [picture.name for picture in paths] == ["explorer.png", "report.png"]
    assert png_size(paths[1])[0] == 1280
    assert capsys.readouterr().out.count(" kB\n") == 2
