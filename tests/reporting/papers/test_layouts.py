"""The presets themselves, and how they print numbers."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktilt.reporting.papers.cells import KEYS
from ranktilt.reporting.papers.layouts import LAYOUTS, PAPER, Layout, rounded

NAMES = [
    *(f"dai-{n}" for n in range(1, 12)),
    *(f"wang-{n}" for n in range(1, 4)),
    *(f"askari-{n}" for n in range(1, 6)),
]
every = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))


def test_every_table_of_the_three_papers_is_there_in_order() -> None:
    assert list(LAYOUTS) == NAMES
    assert PAPER not in LAYOUTS


@every
def test_no_key_stands_in_two_places(layout: Layout) -> None:
    keys = [*layout.rows, *layout.columns, *layout.panels]
    assert len(set(keys)) == len(keys)
    assert set(keys) <= set(KEYS)


@every
def test_a_preset_says_what_it_shows_and_what_makes_it(layout: Layout) -> None:
    assert layout.title
    assert layout.shows
    assert layout.command.startswith("ranktilt ") or layout.command == "a CSV file of its cells"
    assert f"Table {layout.name.rpartition('-')[2]} of " in layout.paper


@pytest.mark.parametrize(
    ("name", "measure", "value", "text"),
    [
        ("dai-3", "nDCG@1", 22.0, "22.0"),
        ("dai-3", "nDCG@1", 25.641, "25.6"),
        ("dai-3", "nDCG@1", -0.04, "0.0"),
        ("dai-3", "nDCG@1", math.nan, "–"),
        ("wang-1", "P@20", 0.0830, "0.0830"),
        ("wang-1", "ExposureRatio", 1.94021, "1.9402"),
        ("askari-2", "AP@1000", 0.377, ".377"),
        ("askari-2", "RR@10", 1.0, "1.000"),
        ("askari-2", "RR@10", 0.0, ".000"),
        ("askari-2", "RR@10", 10.5, "10.500"),
        ("askari-1", "queries train", 16788.0, "16788"),
        ("dai-1", "documents", 5183.0, "5183"),
        ("dai-1", "document words", 201.814, "201.81"),
    ],
)
def test_numbers_are_printed_as_in_the_paper(name: str, measure: str, value: float, text: str) -> None:
    assert LAYOUTS[name].printed(value, measure) == text


@pytest.mark.parametrize(
    ("value", "digits", "found"),
    [(0.25, 1, 0.2), (0.35, 1, 0.4), (2.5, 0, 2.0), (-0.01, 1, 0.0), (16788.0, 0, 16788.0)],
)
def test_halves_go_to_the_even_digit(value: float, digits: int, found: float) -> None:
    assert rounded(value, digits) == found
    assert math.copysign(1, rounded(value, digits)) == 1


@given(st.floats(0, 10), st.sampled_from(["dai-3", "wang-1", "askari-2"]))
def test_a_printed_number_lies_within_half_of_its_last_digit(value: float, name: str) -> None:
    layout = LAYOUTS[name]
    assert abs(float(layout.printed(value, "P@20")) - value) <= layout.unit("P@20") * (1 + 1e-9)


@pytest.mark.parametrize(
    ("name", "key", "value", "label"),
    [
        ("dai-3", "target", "human", "Human-Written"),
        ("dai-3", "target", "llm", "LLM-Generated"),
        ("dai-3", "target", "relative_delta", "Relative Δ"),
        ("dai-3", "target", "female", "female"),
        ("dai-3", "measure", "AP@3", "MAP@3"),
        ("dai-5", "system", "BM25+MiniLM", "+MiniLM"),
        ("dai-9", "system", "BM25+MiniLM", "BM25+MiniLM"),
        ("wang-3", "measure", "PairwiseRatio", "Ratio"),
        ("wang-2", "condition", "neutral window=10 step=3", "window 10, step 3"),
        ("askari-3", "dataset", "wiki_csai", "Wiki (CSAI)"),
    ],
)
def test_labels_are_the_papers(name: str, key: str, value: str, label: str) -> None:
    assert LAYOUTS[name].label(key, value) == label


def test_a_caption_says_who_wrote_and_how_warm() -> None:
    layout = LAYOUTS["dai-3"]
    assert layout.said("generator", "llama") == "LLM text by llama"
    assert layout.said("temperature", "0.2") == "temperature 0.2"
    assert layout.said("generator", "") == ""
