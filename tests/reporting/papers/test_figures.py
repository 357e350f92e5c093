"""Figures of papers: which results have which, how their files are called, and what a reader finds in them."""

import re
import sys
from pathlib import Path

import pytest

from ranktilt import MissingExtra, UserError
from ranktilt.reporting.papers.figures import for_paper, paper_figures
from ranktilt.reporting.reload import LoadedAudit
from tests.probes.validations import toy_validation
from tests.refusals import refused
from tests.reporting.openings import opened
from tests.reporting.results import result
from tests.reporting.studies import toy_study

pytest.importorskip("vl_convert")
MANY = toy_validation(("human", "llm-0.2", "llm-0.6"))


def texts(svg: bytes) -> list[str]:
    return re.findall(r"<text[^>]*>(.*?)</text>", svg.decode())


def test_an_audit_has_those_of_its_page() -> None:
    drawn = paper_figures([opened()])
    assert list(drawn) == [
        "relative-delta-human-against-llm.svg",
        "ndcg-1-over-all-documents-and-how-far-it-tilts-between-human-and-llm.svg",
        "who-fills-the-first-ranks-human.svg", "whose-right-answers-are-found-sooner-human-less-llm.svg",
    ]  # fmt: skip
    first = drawn["relative-delta-human-against-llm.svg"]
    assert {"people", "favours human"} <= set(texts(first))
    assert b"var(--" not in first


def test_letters_have_the_size_of_print_and_colours_are_those_of_the_page() -> None:
    (svg,) = (drawn.decode() for drawn in paper_figures([toy_study()]).values())
    assert {float(size) for size in re.findall(r'font-size="([\d.]+)px"', svg)} <= {7.0, 8.0}
    assert "#b8578f" in svg  # --d of the light theme
    assert '"width": 240' in for_paper({"width": "container", "height": 300, "layer": []})


@pytest.mark.parametrize(("format", "front"), [("svg", b"<svg"), ("pdf", b"%PDF"), ("png", b"\x89PNG")])
def test_each_format(format: str, front: bytes) -> None:
    assert all(one.startswith(front) for one in paper_figures([result("spiral")], format=format).values())


def test_a_validation_of_several_sources_has_figure_14() -> None:
    names = list(paper_figures([MANY]))
    assert names[-1] == "dai-figure-14.svg"
    assert sum(name.startswith("figure-4-") for name in names) == 2
    assert "dai-figure-14.svg" not in paper_figures([toy_validation()])
    drawn = paper_figures([MANY], layout="dai-fig14")
    assert list(drawn) == ["dai-figure-14.svg"]
    assert {"llm-0.2", "llm-0.6"} <= set(texts(drawn["dai-figure-14.svg"]))


def test_two_of_a_kind_are_told_apart() -> None:
    names = list(paper_figures([opened(), LoadedAudit(result("audit"))]))
    assert {name.split("-")[0] for name in names} == {"1", "2"}


def test_what_cannot_be_drawn_is_refused() -> None:
    with refused("nothing to draw: no result was given"):
        paper_figures([])
    with refused("unknown format of a figure 'gif' (valid: svg, pdf, png)"):
        paper_figures([toy_study()], format="gif")
    with pytest.raises(UserError, match=r"dai-fig10 shows interventions of rising strength .* makes one"):
        paper_figures([toy_study()], layout="dai-fig10")


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(MissingExtra, match=r"ranktilt\[plots\]"):
        paper_figures([toy_study()])


class TestFiguresOfANotebook:
    def test_one_shows_itself_in_vega_and_in_words(self) -> None:
        found = result("audit, controls").figure("tilt")
        shown = found._repr_mimebundle_()
        assert shown["application/vnd.vegalite.v5+json"]["width"] == 520
        assert "var(--" not in str(shown)
        assert shown["text/plain"] == repr(found)
        assert "Right of 0: human; left: llm." in repr(found)

    @pytest.mark.parametrize(("ending", "front"), [("svg", b"<svg"), ("pdf", b"%PDF"), ("PNG", b"\x89PNG")])
    def test_one_is_written(self, ending: str, front: bytes, tmp_path: Path) -> None:
        file = result("pairwise").figure().save(tmp_path / f"looks.{ending}")
        assert file.read_bytes().startswith(front)

    def test_names_are_listed_and_guessed(self) -> None:
        for name, asked, message in (
            ("study", "", r"name one .*: 'tilt-1' \(Relative Δ of nDCG@1, human against llm\), 'tilt-2' "),
            ("audit", "effectivenes", r"unknown figure .*; did you mean 'effectiveness'\? \(valid: tilt, eff"),
            ("gate", "", "nothing to draw: Gate has no figures"),
        ):
            with pytest.raises(UserError, match=message):
                result(name).figure(asked)
        with pytest.raises(UserError, match="unknown format of a figure 'gif'"):
            result("pairwise").figure().save("looks.gif")
        assert result("validation, three sources").figure("dai-fig14").figure.title.startswith("Cosine similarity")
