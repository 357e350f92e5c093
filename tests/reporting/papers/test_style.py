"""Labels that fit: nothing hidden, no wider than their room, and legends in as many columns as there is room for."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt.reporting.papers import style
from ranktilt.reporting.papers.style import COLOURS, DASHES, INCH, MARKS, colour, dash, mark, paper_style
from tests.reporting.papers.drawn import collisions, outside

pytest.importorskip("matplotlib")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("bm25", "bm25"),
        ("$x_1$ \\frac", "$x_1$ \\frac"),
        ("a\nb\tc\rd", "a b c d"),
        ("\u202eabc", "\\u202eabc"),
        ("\x00\x1b", "\\u0000\\u001b"),
        ("\ufffe\ud800", "\\ufffe\\ud800"),
        ("Ω 日本 é", "Ω 日本 é"),
    ],
)
def test_a_label_hides_nothing(text: str, shown: str) -> None:
    assert style.label(text) == shown


@given(st.text(max_size=30))
@settings(max_examples=50)
def test_every_label_can_be_written_into_a_file(text: str) -> None:
    found = style.label(text)
    assert found.encode("utf-8").decode("utf-8") == found
    assert not any(ord(letter) < 32 for letter in found)


def test_a_text_twice_as_long_is_twice_as_wide() -> None:
    with paper_style():
        assert style.breadth("mmmm") == pytest.approx(2 * style.breadth("mm"), rel=0.05)
        assert style.breadth("mm", 14) == pytest.approx(2 * style.breadth("mm", 7), rel=0.01)
        assert 40 < style.breadth("nDCG@10", 10) < 55


def test_what_fits_stays_and_what_does_not_loses_its_middle() -> None:
    with paper_style():
        name = "cross-encoder/ms-marco-MiniLM-L6-v2"
        assert style.fitted(name, 200) == name
        short = style.fitted(name, 80)
        assert style.breadth(short) <= 80
        first, last = short.split("…")
        assert name.startswith(first)
        assert name.endswith(last)
        assert abs(len(first) - len(last)) <= 1


@given(st.text(max_size=60), st.floats(30, 200))
@settings(max_examples=30, deadline=None)
def test_a_fitted_text_is_no_wider_than_its_room(text: str, room: float) -> None:
    with paper_style():
        assert style.breadth(style.fitted(text, room)) <= room + 1e-6


def test_a_name_of_a_megabyte_is_cut_too() -> None:
    with paper_style():
        short = style.fitted("m" * 1_000_000, 100)
        assert style.breadth(short) <= 100
        assert "…" in short


def test_parts_share_a_line_while_they_fit() -> None:
    with paper_style():
        assert style.lines_of(["a", "b", "c"], 100) == "a, b, c"
        wide = "m" * 12
        assert style.lines_of([wide, wide, "x"], style.breadth(wide) * 1.5) == f"{wide}\n{wide}, x"


def test_signs_of_a_tilt_name_their_sides() -> None:
    with paper_style():
        assert style.favours("human", "llm", 300) == "+ favours human, − favours llm"
        assert style.favours("human", "llm", 90) == "+ favours human\n− favours llm"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("llama-2-7b-chat-tmp0.2", "llama-2-7b-chat-tmp0.2"),
        ("meta-llama/Llama 2", "meta-llama-llama-2"),
        ("../../etc/passwd", "etc-passwd"),
        ("日本", "x"),
        ("", "x"),
        ("a" * 300, "a" * 60),
    ],
)
def test_a_slug_is_safe_in_a_file_name(text: str, expected: str) -> None:
    assert style.slug(text) == expected


def test_sixteen_names_are_told_apart_by_mark_and_by_colour() -> None:
    assert len({(colour(n), mark(n)) for n in range(16)}) == 16
    assert len({mark(n) for n in range(8)}) == len(MARKS)
    assert len({colour(n) for n in range(8)}) == len(COLOURS)
    assert [str(dash(n)) for n in range(8)] == [str(one) for one in DASHES]


@pytest.mark.parametrize(("names", "columns"), [(["a", "b", "c"], 3), (["m" * 22] * 4, 1), (["m" * 22, "b", "c"], 2)])
def test_a_legend_has_as_many_columns_as_fit(names: list[str], columns: int) -> None:
    with paper_style():
        figure = style.blank(3.3, 2.0)
        handles = [figure.subplots().plot([0, 1])[0] for _ in names]
        style.legend(figure, handles, names)
        found = figure.legends[0]
        assert found._ncols == columns
        assert [text.get_text() for text in found.get_texts()] == names
        figure.draw_without_rendering()
        assert found.get_window_extent().width <= 3.3 * INCH * figure.dpi / INCH


def test_a_name_in_a_legend_that_is_too_long_is_cut_and_one_with_a_hyphen_below_stays() -> None:
    with paper_style():
        figure = style.blank(3.3, 2.0)
        axes = figure.subplots()
        axes.set_axis_off()
        style.legend(figure, [axes.plot([0, 1])[0] for _ in range(2)], ["_hidden", "long " * 40])
        figure.draw_without_rendering()
        first, second = (text.get_text() for text in figure.legends[0].get_texts())
        assert first == "_hidden"
        assert "…" in second
        assert not outside(figure)
        assert not collisions(figure)
