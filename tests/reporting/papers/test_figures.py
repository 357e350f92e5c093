"""The figures of a paper: which there are, their names, and what every file of one is like."""

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ranktilt.auditing.audit import audit
from ranktilt.collection import Collection
from ranktilt.errors import MissingExtra, UserError
from ranktilt.rankers.lexical.bm25 import BM25, TFIDF
from ranktilt.reporting.papers.figures import Result, paper_figures
from ranktilt.reporting.reload import LoadedAudit
from tests.probes.validations import toy_validation
from tests.reporting.audits import clear, small, three
from tests.reporting.papers.drawn import SVG, inches, letters, words
from tests.reporting.studies import timeless_study, toy_study
from tests.toy import toy

matplotlib = pytest.importorskip("matplotlib")

WHOLE = toy()
RUNS = (BM25().rank(WHOLE), TFIDF().rank(WHOLE))
OPENED = LoadedAudit(audit(WHOLE, RUNS, ["nDCG@1", "AP@3"], resamples=200), WHOLE, RUNS)
EVERY: list[Result] = [OPENED, toy_validation(), toy_study()]


@pytest.fixture(scope="module")
def svg() -> dict[str, bytes]:
    return paper_figures(EVERY)


@pytest.fixture(scope="module")
def pdf() -> dict[str, bytes]:
    return paper_figures(EVERY, format="pdf")


def of_folder(path: str | None) -> Result:
    found = toy_study()
    return replace(found, spec={"level": 5.0, "primary": "nDCG@3"} if path is None else {**found.spec, "path": path})


def same_slug() -> Result:
    """Two pairs of groups whose names differ in what a file name does not keep."""
    found = clear()
    tilts = [replace(t, a=a, b=b) for a, b in (("A b", "a-B"), ("a-B", "A b")) for t in found.tilts]
    return replace(found, groups=("all", "A b", "a-B"), tilts=tuple(tilts))


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([OPENED.audit], "tilt effectiveness"),
        ([LoadedAudit(OPENED.audit)], "tilt effectiveness"),
        ([three()], "tilt-human-gpt effectiveness-human-gpt tilt-human-llama effectiveness-human-llama tilt-gpt-llama "
         "effectiveness-gpt-llama"),
        ([toy_validation(("human", "llm-0.2", "llm-0.6"))], "dai-figure-3 dai-figure-4-llm-0.2 dai-figure-5-llm-0.2 "
         "dai-figure-4-llm-0.6 dai-figure-5-llm-0.6 "
         "dai-figure-14"),
        ([replace(toy_validation(), similarities=())], "dai-figure-3"),
        ([toy_study(), of_folder("/data/SciFact + LLM"), toy_validation(map=False)],
         "toy-temperature scifact-llm-temperature dai-figure-3 dai-figure-5"),
        ([toy_study(), toy_study()], "1-temperature 2-temperature"),
        ([of_folder(None), toy_study()], "1-temperature toy-temperature"),
        ([of_folder("2"), of_folder(None)], "2-temperature 2-temperature-2"),
        ([same_slug()], "tilt-a-b-a-b effectiveness-a-b-a-b tilt-a-b-a-b-2 effectiveness-a-b-a-b-2"),
        ([timeless_study(), toy_study()], "toy-temperature"),
    ],
)  # fmt: skip
def test_names_tell_pairs_sources_and_results_apart(results: list[Result], expected: str) -> None:
    assert list(paper_figures(results)) == [f"{name}.svg" for name in expected.split()]


def test_one_result_of_a_kind_gives_plain_names(svg: dict[str, bytes], pdf: dict[str, bytes]) -> None:
    names = ["tilt", "effectiveness", "ranks", "dai-figure-3", "dai-figure-4", "dai-figure-5", "temperature"]
    assert list(svg) == [f"{name}.svg" for name in names]
    assert list(pdf) == [f"{name}.pdf" for name in names]


def test_the_same_results_give_the_same_bytes(svg: dict[str, bytes], pdf: dict[str, bytes]) -> None:
    assert paper_figures(EVERY) == svg
    assert paper_figures(EVERY[2:], format="pdf") == {"temperature.pdf": pdf["temperature.pdf"]}
    assert b"<dc:date>" not in b"".join(svg.values())
    assert b"/CreationDate" not in b"".join(pdf.values())


def test_a_file_has_a_column_s_width_small_letters_and_texts_as_text(
    svg: dict[str, bytes], pdf: dict[str, bytes]
) -> None:
    for name, data in (svg | pdf).items():
        width, height = inches(data)
        assert width == (7.0 if name.startswith("ranks") else 3.3)
        assert 1.0 < height < 9.0
    for data in svg.values():
        assert words(data)
        assert set() < letters(data) <= {7.0, 8.0}
    for data in pdf.values():
        assert b"/FontFile2" in data
        assert b"/Subtype /Type3" not in data
    assert {"bm25", "tfidf", "nDCG@1", "AP@3", "Relative Δ, %"} <= set(words(svg["tilt.svg"]))
    assert {"twins", "unrelated pairs", "cosine similarity"} <= set(words(svg["dai-figure-5.svg"]))
    assert "−20" in words(svg["temperature.svg"])
    assert not any(text.startswith("-") for text in words(svg["temperature.svg"]))


def test_the_caption_is_in_the_file_and_no_title_in_the_picture(svg: dict[str, bytes], pdf: dict[str, bytes]) -> None:
    root = ElementTree.fromstring(svg["tilt.svg"])
    title, says = (root.findtext(f"{SVG}{name}") for name in ("title", "desc"))
    assert title == "Relative Δ between human and llm"
    assert says is not None
    assert says.startswith("Above 0 a ranker puts relevant texts of human higher, below 0 those of llm.")
    assert root.get("role") == "img"
    assert title not in words(svg["tilt.svg"])
    assert "Relative Δ between human and llm".encode("utf-16-be") in pdf["tilt.pdf"]


HOSTILE = (
    "$\\alpha_{x}$", "<script>&amp;", "_first", "a\nb\tc", "\u202etext\x00", "日本", "\ufffe", "100 % %(a)s {x}",
)  # fmt: skip


@pytest.mark.parametrize("format", ["svg", "pdf"])
def test_any_name_is_drawn_as_it_is(format: Any) -> None:
    found, toys = small(), toy_study()
    a, b = (f"{side} {' '.join(HOSTILE)}" for side in "hl")
    runs = dict.fromkeys(HOSTILE, found.tilts[0].run)
    audit_ = replace(
        found,
        runs=HOSTILE,
        groups=("all", a, b),
        tilts=tuple(replace(t, run=name, a=a, b=b) for name, run in runs.items() for t in found.tilts if t.run == run),
        values=found.values[:1].repeat(len(HOSTILE), axis=0),
    )
    study = replace(
        toys, runs=HOSTILE, tilts=tuple(replace(t, run=name) for name in HOSTILE for t in toys.tilts if t.run == "bm25")
    )
    sources = HOSTILE if format == "svg" else HOSTILE[:2]
    made = paper_figures([audit_, toy_validation(("human", *sources)), study], format=format)
    assert len(made) == 5 + 2 * len(sources)
    if format == "svg":
        for name in HOSTILE:
            shown = name.replace("\n", " ").replace("\t", " ")
            for hidden in "\u202e\x00\ufffe":
                shown = shown.replace(hidden, f"\\u{ord(hidden):04x}")
            for file in ("tilt.svg", "effectiveness.svg", "temperature.svg", "dai-figure-3.svg"):
                assert shown in words(made[file])


def test_the_readers_settings_are_ignored_and_left_alone() -> None:
    before = dict(matplotlib.rcParams)
    plain = paper_figures([toy_study()])
    assert dict(matplotlib.rcParams) == before
    with matplotlib.rc_context({"font.size": 30, "text.usetex": True, "savefig.bbox": "tight", "svg.fonttype": "path"}):
        assert paper_figures([toy_study()]) == plain
        assert matplotlib.rcParams["font.size"] == 30


def test_an_unknown_format_is_named() -> None:
    with pytest.raises(UserError, match=r"^unknown format of a figure 'png'.* \(valid: svg, pdf\)$"):
        paper_figures([toy_study()], format="png")  # type: ignore[arg-type]


def without_judgments() -> Result:
    plain = toy()
    collection = Collection(plain.docs, plain.queries, plain.qrels.clear())
    return audit(collection, BM25().rank(collection), card=True, resamples=200)


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ([], "nothing to draw: no result was given"),
        ([without_judgments()], "nothing to draw: an audit needs two groups with a defined Relative Δ, or its "
         "collection and runs"),
        ([timeless_study(), toy_validation(("human",)), timeless_study()],
         "nothing to draw: a study needs a source whose temperature is known; a validation needs twins"),
    ],
)  # fmt: skip
def test_nothing_to_draw_is_said_in_one_line(results: list[Result], message: str) -> None:
    with pytest.raises(UserError) as caught:
        paper_figures(results)
    assert str(caught.value) == message


def test_without_matplotlib_the_reader_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra) as caught:
        paper_figures([toy_study()])
    assert str(caught.value) == 'drawing figures needs matplotlib. Install it with: pip install "ranktilt[plots]"'


SILENT = """
import sys
from ranktilt.auditing.study import Study
from ranktilt.reporting.papers.figures import paper_figures
loaded = [name for name in sys.modules if name.startswith("matplotlib")]
made = paper_figures([Study.load(sys.argv[1])])
print(loaded, list(made), "matplotlib.pyplot" in sys.modules)
"""


def test_it_is_quiet_in_a_home_that_cannot_be_written_and_loads_matplotlib_only_then(tmp_path: Path) -> None:
    file = toy_study().save(tmp_path / "study.json")
    (tmp_path / "home").write_text("no folder", encoding="utf-8")
    home = str(tmp_path / "home" / "below")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SILENT, str(file)], capture_output=True, text=True, check=False,
        env={"HOME": home, "PATH": "/usr/bin:/bin", "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("[] ['temperature.svg'] False\n", "")
