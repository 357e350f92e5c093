"""What the figures of a paper show: every mark stands at its number, and no text on another."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

from ranktilt.auditing.audit import audit
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.result import Audit
from ranktilt.measures.base import measure as to_measure
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.probes.distribution import Cosines, Distribution
from ranktilt.probes.validation import Validation
from ranktilt.rankers.lexical.bm25 import BM25, TFIDF
from ranktilt.reporting.papers.figures import Result, drawn_figures, paper_figures
from ranktilt.reporting.papers.results import cells_of, tables_of
from ranktilt.reporting.papers.style import PaperFigure
from ranktilt.reporting.reload import LoadedAudit
from tests.probes.validations import toy_overlap, toy_validation
from tests.reporting.audits import clear, small, twins, uneven
from tests.reporting.papers.drawn import collisions, gallery, outside, texts
from tests.reporting.studies import TEMPERATURES, VALUES, toy_study
from tests.toy import run_of, toy

pytest.importorskip("matplotlib")

LONG = (
    "cross-encoder/ms-marco-MiniLM-L6-v2", "bm25(k1=0.9,b=0.4)@100>>monot5-base", "dense:sentence-t5-base-nli-stsb",
    "_$x_1$_with_thirty_letters_or_so",
)  # fmt: skip
SIX = ("nDCG@10", "nDCG@3", "nDCG@5", "AP@10", "AP@30", "AP@50")
GROUPS = ("human-written-by-thirty-letters", "meta-llama/Llama-2-7b-chat-hf")
EIGHTEEN = tuple(f"ranker-{n}" for n in range(18))
Figures = Callable[[str], list[PaperFigure]]


def tilt(run: str, measure: str, value: float, half: float, groups: tuple[str, str] = GROUPS) -> Effect:
    return Effect(
        run, RelativeDelta(of=to_measure(measure)), *groups, value=value, low=value - half, high=value + half,
        error=half / 2, p=0.001, p_corrected=0.004 if abs(value) > half else 0.4, queries=323,
        parts={"mean_a": 0.3, "mean_b": 0.2},
    )  # fmt: skip


@cache
def wide(runs: tuple[str, ...] = LONG, measures: tuple[str, ...] = SIX) -> Audit:
    """Rankers × measures with real names; their values fall from one to the next."""
    found = audit(twins(4, GROUPS), run_of(twins(4, GROUPS), {}, ranker="x"), measures, resamples=100)
    tilts = [
        tilt(run, measure, 60.0 - 7 * place - 20 * number, 8.0 + 3 * place)
        for number, run in enumerate(runs)
        for place, measure in enumerate(measures)
    ]
    rng = np.random.default_rng(0)
    return replace(found, runs=runs, tilts=tuple(tilts), values=rng.uniform(size=(len(runs), len(measures), 3, 4)))


@cache
def one_undefined() -> Audit:
    """One ranker; its second tilt is undefined, and two queries of its first measure."""
    found = wide(LONG[:1])
    nothing = replace(found.tilts[1], value=np.nan, low=np.nan, high=np.nan, error=np.nan)
    values = found.values.copy()
    values[0, 0, 0] = [0.5, 1.0, np.nan, np.nan]
    return replace(found, tilts=(found.tilts[0], nothing, *found.tilts[2:]), values=values)


def mostly_undefined() -> Audit:
    """Seventy rankers over several pages, of which only the first has a Relative Δ."""
    found = no_twins()
    gone = dict.fromkeys(("value", "low", "high", "error", "p", "p_corrected", "band_low", "band_high"), np.nan)
    runs = tuple(f"r{n:02}" for n in range(70))
    tilts = tuple(replace(t, run=run, **(gone if run > "r00" else {})) for run in runs for t in found.tilts)
    return replace(found, runs=runs, tilts=tilts, values=found.values.repeat(len(runs), axis=0))


@cache
def ranked() -> LoadedAudit:
    collection = toy()
    runs = (BM25().rank(collection), TFIDF().rank(collection))
    return LoadedAudit(audit(collection, runs, ["nDCG@1"], resamples=100), collection, runs)


def of_run(scores: dict[str, dict[str, float]]) -> LoadedAudit:
    collection = twins(40)
    run = run_of(collection, scores, ranker="mostly")
    return LoadedAudit(audit(collection, run, ["nDCG@1"], resamples=100), collection, (run,))


def two_ranks() -> LoadedAudit:
    """Thirty queries with human text first, ten with LLM text."""
    scores = {f"q{n}": {f"{n}-human": 2.0 if n < 30 else 1.0, f"{n}-llm": 1.0 if n < 30 else 2.0} for n in range(40)}
    return of_run(scores)


def twenty_ranks() -> LoadedAudit:
    return of_run({"q0": {f"{n}-{'human' if n < 12 else 'llm'}": -float(n) for n in range(20)}})


def of_terms() -> Validation:
    values = np.array([0.1, 0.1, 0.11, 0.5, 0.9, np.nan])
    terms = replace(toy_overlap(), jaccard=Distribution("Jaccard", values))
    return replace(toy_validation(), overlaps=(terms,))


def of_cosines(cosine: Cosines | None, baseline: Cosines) -> Validation:
    found = toy_validation()
    near = found.similarities[0]
    return replace(found, similarities=(replace(near, cosine=cosine or near.cosine, baseline=baseline),))


def two_measures() -> Any:
    found = toy_study()
    more = tuple(replace(t, estimand=RelativeDelta(of=to_measure("AP@3"))) for t in found.tilts)
    return replace(found, measures=("nDCG@3", "AP@3"), tilts=found.tilts + more)


def without_a_temperature() -> Any:
    found = toy_study()
    gone = {"value": np.nan, "low": np.nan, "high": np.nan}
    return replace(found, tilts=tuple(replace(t, **gone) if t.b.endswith("0.6") else t for t in found.tilts))


no_twins, all_outcomes, few_queries = cache(uneven), cache(clear), cache(small)
RESULTS: dict[str, Callable[[], Result]] = {
    "long names": wide,
    "twelve rankers": partial(wide, EIGHTEEN[:12]),
    "eighteen rankers": partial(wide, EIGHTEEN),
    "one of each": partial(wide, LONG[:1], SIX[:1]),
    "one undefined": one_undefined,
    "mostly undefined": mostly_undefined,
    "no twins": no_twins,
    "all outcomes": all_outcomes,
    "few queries": few_queries,
    "ranks": ranked,
    "two ranks": two_ranks,
    "twenty ranks": twenty_ranks,
    "validation": toy_validation,
    "terms": of_terms,
    "two sources": lambda: toy_validation(("human", "llm", "gpt")),
    "three sources": lambda: toy_validation(("human", *GROUPS, "gpt-4o-mini-2024-07-18-tmp0.7")),
    "no unrelated pairs": lambda: of_cosines(None, Cosines("other pairs", np.full(3, np.nan))),
    "all alike": lambda: of_cosines(Cosines("twins", np.ones(5)), Cosines("twins", np.ones(5))),
    "study": toy_study,
    "two measures": two_measures,
    "without a temperature": without_a_temperature,
    "a long series": lambda: toy_study("meta-llama/Llama-2-7b-chat-hf, prompt number 3"),
}


def drawing(result: Callable[[], Result]) -> Iterator[PaperFigure]:
    return drawn_figures(result())


@pytest.fixture(scope="module")
def figures() -> Iterator[Figures]:
    with gallery({name: partial(drawing, result) for name, result in RESULTS.items()}) as found:
        yield found


def named(found: list[PaperFigure], name: str) -> PaperFigure:
    (one,) = (one for one in found if one.name == name)
    return one


def marks(axes: Any) -> list[tuple[float, float]]:
    """Places of the single marks of a panel, in the order in which they were drawn."""
    found = []
    for line in axes.lines:
        x, y = (np.asarray(values, dtype=float) for values in line.get_data())
        if len(x) == 1 and line.get_marker() not in ("None", "", "_", "|"):
            found.append((float(x[0]), float(y[0])))
    return found


def flat(line: Any) -> bool:
    """Whether a collection of lines is one horizontal line."""
    segments = line.get_segments() if hasattr(line, "get_segments") else []
    return len(segments) == 1 and segments[0][0][1] == segments[0][1][1]


def spans(bars: Any) -> list[Any]:
    return [pytest.approx((bar.get_x(), bar.get_x() + bar.get_width()), rel=0.01) for bar in bars]


def legend(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


@pytest.mark.parametrize("name", RESULTS)
def test_no_text_lies_on_another_or_leaves_the_figure_and_a_caption_is_whole_sentences(
    figures: Figures, name: str
) -> None:
    assert figures(name)
    for one in figures(name):
        assert len(texts(one.figure)) >= 2
        assert (one.name, collisions(one.figure)) == (one.name, [])
        assert (one.name, outside(one.figure)) == (one.name, [])
        assert one.says.endswith(".")
        assert ".." not in one.says
        assert "nan" not in one.says


def test_texts_that_do_collide_or_leave_are_found() -> None:
    with gallery({"study": lambda: drawn_figures(toy_study())}) as found:
        figure = found("study")[0].figure
        figure.text(0.5, 0.5, "one")
        figure.text(0.51, 0.5, "two")
        figure.text(0.99, 0.9, "beyond")
        assert ("one", "two") in collisions(figure)
        assert outside(figure) == ["beyond"]


class TestForest:
    def test_every_mark_stands_at_its_tilt_and_every_bar_at_its_ends_in_rows_that_are_named(
        self, figures: Figures
    ) -> None:
        found = wide()
        figure = named(figures("long names"), "tilt").figure
        (axes,) = figure.axes
        assert [x for x, _ in marks(axes)] == [t.value for t in found.tilts]
        bars = [tuple(line.get_segments()[0][:, 0]) for line in axes.collections if flat(line)]
        assert bars == [(t.low, t.high) for t in found.tilts]
        rows = [y for _, y in marks(axes)]
        assert rows == sorted(rows) == axes.get_yticks().tolist()
        assert [text.get_text() for text in axes.get_yticklabels()] == [t.measure for t in found.tilts]
        assert axes.yaxis_inverted()
        headings = [text.get_text() for text in axes.texts if text.get_fontweight() == "bold"]
        assert headings == list(LONG)
        low, high = axes.get_xlim()
        assert low < min(t.low for t in found.tilts) < -5
        assert high > max(t.high for t in found.tilts) > 5
        width, height = figure.get_size_inches()
        assert width == 3.3
        assert height < 5.5

    def test_grey_is_what_would_not_have_been_detected_and_what_is_undefined_keeps_its_row(
        self, figures: Figures
    ) -> None:
        found = one_undefined()
        (axes,) = named(figures("one undefined"), "tilt").figure.axes
        assert spans(axes.patches) == [(-2.8 * t.error, 2.8 * t.error) for t in found.tilts if t.error == t.error]
        assert (len(marks(axes)), len(axes.get_yticklabels())) == (5, 6)

    def test_each_verdict_has_a_mark_of_its_own_and_only_those_there_are_are_explained(self, figures: Figures) -> None:
        found = all_outcomes()
        kinds = [t.verdict(found.level) for t in found.tilts]
        assert set(kinds) == {"a", "b", "level", "inconclusive"}
        figure = named(figures("all outcomes"), "tilt").figure
        lines = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 1]
        looks = {kind: (line.get_marker(), line.get_markerfacecolor()) for kind, line in zip(kinds, lines, strict=True)}
        assert len(set(looks.values())) == 4
        assert legend(figure)[:4] == ["favours human", "favours llm", "level", "inconclusive"]
        few = legend(named(figures("few queries"), "tilt").figure)
        assert not any(text.startswith("favours") for text in few)

    def test_groups_that_are_no_twins_show_their_random_band(self, figures: Figures) -> None:
        found, one = no_twins(), named(figures("no twins"), "tilt")
        bands = [bar for bar in one.figure.axes[0].patches if bar.get_hatch()]
        assert spans(bands) == [(t.band_low, t.band_high) for t in found.tilts]
        low, high = one.figure.axes[0].get_xlim()
        assert low < min(t.band_low for t in found.tilts)
        assert high > max(t.band_high for t in found.tilts)
        assert "Hatched: what random labels give in 95 %." in one.says
        assert "level is the median of what random labels give, not 0" in one.says
        assert "below 0" not in one.says

    def test_a_page_of_rankers_that_have_no_relative_delta_is_drawn_too(self, figures: Figures) -> None:
        pages = [one for one in figures("mostly undefined") if one.name.startswith("tilt")]
        assert len(pages) > 1
        low, high = pages[-1].figure.axes[0].get_xlim()
        assert low < 0 < high

    def test_twelve_rankers_fit_into_two_columns(self, figures: Figures) -> None:
        figure = named(figures("twelve rankers"), "tilt").figure
        assert figure.get_size_inches()[0] == 7.0
        assert [len(marks(axes)) for axes in figure.axes] == [36, 36]

    def test_more_than_a_page_goes_on_a_figure_of_its_own(self, figures: Figures) -> None:
        parts = [one for one in figures("eighteen rankers") if one.name.startswith("tilt")]
        assert [one.name for one in parts] == [f"tilt-{n}" for n in range(1, len(parts) + 1)]
        assert len(parts) > 1
        assert all(one.figure.get_size_inches()[1] <= 9.3 for one in parts)
        shown = [text.get_text() for one in parts for text in texts(one.figure) if text.get_fontweight() == "bold"]
        assert shown == list(EIGHTEEN)


class TestEffectiveness:
    def test_points_stand_at_the_mean_and_the_tilt_of_the_first_measure(self, figures: Figures) -> None:
        found, one = wide(), named(figures("long names"), "effectiveness")
        (axes,) = one.figure.axes
        first = [t.value for t in found.tilts if t.measure == SIX[0]]
        assert marks(axes) == [pytest.approx((found.values[n, 0, 0].mean(), value)) for n, value in enumerate(first)]
        assert legend(one.figure) == list(LONG)
        assert axes.get_xlabel() == "nDCG@10, all relevant documents"

    def test_queries_without_a_value_do_not_count_and_an_interval_stays_between_0_and_1(self, figures: Figures) -> None:
        assert marks(named(figures("one undefined"), "effectiveness").figure.axes[0])[0][0] == 0.75
        low, high = named(figures("few queries"), "effectiveness").figure.axes[0].dataLim.intervalx
        assert low >= 0
        assert high <= 1

    def test_groups_that_are_no_twins_have_no_signs_for_sides(self, figures: Figures) -> None:
        one = named(figures("no twins"), "effectiveness")
        assert "favours" not in one.figure.axes[0].get_ylabel()
        assert "Level is the median of what random labels give, not 0." in one.says


class TestRanks:
    def test_a_panel_a_ranker_with_the_shares_of_its_groups(self, figures: Figures) -> None:
        one = named(figures("two ranks"), "ranks")
        (axes,) = one.figure.axes
        human, llm = (line for line in axes.lines if len(line.get_xdata()) == 2 and line.get_marker() != "None")
        assert human.get_xdata().tolist() == [1.0, 2.0]
        assert human.get_ydata() == pytest.approx([75.0, 25.0])
        assert llm.get_ydata() == pytest.approx([25.0, 75.0])
        assert axes.get_title(loc="left") == "mostly"
        assert one.figure.get_size_inches()[0] == 3.3

    def test_several_rankers_share_the_width_of_a_page(self, figures: Figures) -> None:
        one = named(figures("ranks"), "ranks")
        assert [axes.get_title(loc="left") for axes in one.figure.axes] == ["bm25", "tfidf"]
        assert one.figure.get_size_inches()[0] == 7.0
        assert "11 to 15, 16 to 20, 21 to 30, 31 to 50, 51 to 75, 76 to 100" in one.says

    def test_below_the_tenth_rank_a_mark_is_a_mean(self, figures: Figures) -> None:
        (axes,) = named(figures("twenty ranks"), "ranks").figure.axes
        human = next(line for line in axes.lines if line.get_marker() != "None")
        assert human.get_xdata().tolist() == pytest.approx([*range(1, 11), (11 * 15) ** 0.5, (16 * 20) ** 0.5])
        assert human.get_ydata() == pytest.approx([100.0] * 10 + [40.0, 0.0])

    def test_without_runs_or_a_collection_it_is_left_out(self, figures: Figures) -> None:
        assert [one.name for one in figures("ranks")] == ["tilt", "effectiveness", "ranks"]
        for part in (replace(ranked(), runs=()), replace(ranked(), collection=None)):
            assert [one.name for one in drawn_figures(part)] == ["tilt", "effectiveness"]


class TestValidation:
    def test_bars_are_shares_of_the_pairs(self, figures: Figures) -> None:
        left, right = named(figures("terms"), "dai-figure-3").figure.axes
        (stairs,) = left.patches
        heights, edges, _ = stairs.get_data()
        held = {round(float(low), 2): float(h) for low, h in zip(edges[:-1], heights, strict=True) if h}
        assert held == pytest.approx({0.08: 60.0, 0.48: 20.0, 0.88: 20.0})
        assert left.get_ylim() == right.get_ylim()
        assert left.get_ylim()[1] > 60

    def test_each_source_has_colour_and_hatch_of_its_own(self, figures: Figures) -> None:
        figure = named(figures("two sources"), "dai-figure-3").figure
        looks = [(one.get_edgecolor(), one.get_hatch(), one.get_linestyle()) for one in figure.axes[0].patches]
        assert len(looks) == 2
        assert all(a != b for a, b in zip(*looks, strict=True))
        assert legend(figure) == ["llm", "gpt"]

    def test_of_three_sources_no_hatch_hides_another(self, figures: Figures) -> None:
        shown = named(figures("three sources"), "dai-figure-3").figure.axes[0].patches
        assert [one.get_hatch() for one in shown] == [None] * 3
        assert len({one.get_linestyle() for one in shown} | {str(one.get_edgecolor()) for one in shown}) >= 4

    def test_all_sources_stand_in_one_histogram_of_cosines_which_the_layout_draws_alone(self, figures: Figures) -> None:
        drawn = named(figures("two sources"), "dai-figure-14")
        assert legend(drawn.figure) == ["llm", "gpt"]
        heights = [sum(one.get_data().values) for one in drawn.figure.axes[0].patches]
        assert heights == pytest.approx([100, 100])
        found = toy_validation(("human", "llm", "gpt"))
        assert list(paper_figures([found], layout="dai-fig14")) == ["dai-figure-14.svg"]
        cells = [cell for cell in cells_of(found, "dai-fig14") if cell.measure in ("pairs", "mean")]
        expected = [x for one in found.similarities for x in (one.cosine.count, one.cosine.mean)]
        assert [cell.value for cell in cells] == pytest.approx(expected)
        assert tables_of(found)[-1] == "dai-fig14"

    def test_the_map_has_every_point_and_joins_twins(self, figures: Figures) -> None:
        drawn_map, one = toy_validation().similarities[0].map, named(figures("validation"), "dai-figure-4")
        assert drawn_map is not None
        (axes,) = one.figure.axes
        human, llm = (np.asarray(part.get_offsets()) for part in axes.collections)
        points = np.column_stack([drawn_map.x, drawn_map.y])
        assert np.array_equal(np.concatenate([human, llm]), points)
        path = axes.lines[0].get_xydata().reshape(-1, 3, 2)
        assert np.array_equal(path[:, 0], points[:20])
        assert np.array_equal(path[:, 1], points[20:])
        assert np.isnan(path[:, 2]).all()
        assert "20 of 40 pairs, drawn by chance" in one.says

    def test_similarities_are_two_distributions_on_one_scale(self, figures: Figures) -> None:
        near, one = toy_validation().similarities[0], named(figures("validation"), "dai-figure-5")
        for stairs, values in zip(one.figure.axes[0].patches, (near.cosine, near.baseline), strict=True):
            heights, edges, _ = stairs.get_data()
            assert heights.sum() == pytest.approx(100.0)
            assert edges[0] <= values.defined.min()
            assert edges[-1] >= values.defined.max()
        assert f"twins: 40, mean {near.cosine.mean:.2f}" in one.says

    def test_without_unrelated_pairs_twins_are_drawn_alone(self, figures: Figures) -> None:
        assert legend(named(figures("no unrelated pairs"), "dai-figure-5").figure) == ["twins"]

    def test_all_texts_alike_have_one_bar(self, figures: Figures) -> None:
        heights, edges, _ = named(figures("all alike"), "dai-figure-5").figure.axes[0].patches[0].get_data()
        assert (heights.tolist(), edges[-1]) == ([100.0], 1.0)


class TestStudy:
    def test_lines_go_through_the_tilts(self, figures: Figures) -> None:
        (one,) = figures("study")
        (axes,) = one.figure.axes
        found = [line for line in axes.lines if len(line.get_xdata()) == 3 and line.get_linestyle() != "None"]
        assert [line.get_ydata().tolist() for line in found] == [list(values) for values in VALUES.values()]
        for line in found:
            assert line.get_xdata() == pytest.approx(TEMPERATURES, abs=0.02)
        assert found[0].get_xdata()[0] < found[1].get_xdata()[0]
        assert [text.get_text() for text in axes.get_xticklabels()] == ["0.2", "0.6", "1"]
        assert "bm25 +12.4 at 0.2, +6.1 at 0.6, +1.0 at 1" in one.says

    def test_a_panel_a_measure(self, figures: Figures) -> None:
        (one,) = figures("two measures")
        assert [axes.get_title(loc="left") for axes in one.figure.axes] == ["nDCG@3", "AP@3"]
        assert one.figure.get_size_inches()[0] == 7.0

    def test_a_temperature_without_a_value_is_left_out(self, figures: Figures) -> None:
        (one,) = figures("without a temperature")
        (axes,) = one.figure.axes
        assert [text.get_text() for text in axes.get_xticklabels()] == ["0.2", "1"]
        assert "undefined at 0.6" in one.says
