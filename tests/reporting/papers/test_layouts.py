"""The presets themselves, what they call rankers, measures and collections, and how they print numbers."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktilt.reporting.papers.cells import KEYS
from ranktilt.reporting.papers.layouts import (
    FIGURES,
    LAYOUTS,
    PAPER,
    first_stage,
    generator,
    is_reranked,
    measure_name,
    of_gpt,
    system_names,
    temperature,
)


def test_every_table_of_the_three_papers_is_there_in_order_and_says_what_it_needs() -> None:
    numbers = (("dai", 11), ("wang", 3), ("askari", 5))
    tables = [f"{paper}-{n}" for paper, last in numbers for n in range(1, last + 1)]
    assert list(LAYOUTS) == [*tables, *FIGURES]
    assert PAPER not in LAYOUTS
    for layout in LAYOUTS.values():
        keys = [*layout.rows, *layout.columns, *layout.panels]
        assert len(set(keys)) == len(keys)
        assert set(keys) <= set(KEYS)
        assert len(layout.columns) <= 2  # one line of spans above the titles
        assert layout.title
        assert layout.shows
        assert layout.command.startswith("ranktilt ") or layout.command == "a CSV file of its cells"
        number = layout.name.rpartition("-")[2]
        assert layout.paper.startswith(f"Figure {number[3:]} of " if layout.name in FIGURES else f"Table {number} of ")


@pytest.mark.parametrize(
    ("name", "measure", "value", "text"),
    [
        ("dai-3", "nDCG@1", 25.25, "25.2"),  # halves go to the even digit
        ("dai-3", "nDCG@1", 25.75, "25.8"),
        ("dai-3", "nDCG@1", -0.01, "0.0"),
        ("dai-3", "nDCG@1", math.nan, "–"),
        ("wang-1", "ExposureRatio", 1.94021, "1.9402"),
        ("askari-2", "AP@1000", 0.377, ".377"),
        ("askari-1", "queries train", 16788.0, "16788"),
        ("dai-1", "document words", 201.814, "201.81"),
    ],
)
def test_numbers_are_printed_as_in_the_paper(name: str, measure: str, value: float, text: str) -> None:
    assert LAYOUTS[name].printed(value, measure) == text


@given(st.floats(0, 10), st.sampled_from(["dai-3", "wang-1", "askari-2"]))
def test_a_printed_number_lies_within_half_of_its_last_digit(value: float, name: str) -> None:
    layout = LAYOUTS[name]
    assert abs(float(layout.printed(value, "P@20")) - value) <= layout.unit("P@20") * (1 + 1e-9)


@pytest.mark.parametrize(
    ("name", "key", "value", "label"),
    [
        ("dai-3", "target", "llm", "LLM-Generated"),
        ("dai-3", "dataset", "scifact", "SciFact"),
        ("dai-3", "dataset", "my-folder", "my-folder"),
        ("dai-5", "system", "BM25+MiniLM", "+MiniLM"),
        ("wang-2", "condition", "neutral window=10 step=3", "window 10, step 3"),
        ("askari-3", "dataset", "reddit_eli5", "Reddit"),
        ("askari-4", "dataset", "chatgpt-retrievalqa-test (chatgpt responses)", "Test, ChatGPT responses"),
    ],
)
def test_labels_are_the_papers(name: str, key: str, value: str, label: str) -> None:
    assert LAYOUTS[name].label(key, value) == label


@pytest.mark.parametrize(
    ("run", "name"),
    [
        ("bm25@100", "BM25"),
        ("bm25:dai@100>>monot5:base", "BM25+monoT5"),
        ("dense:facebook/contriever-msmarco", "Contriever"),
        ("bm25@100>>cross-encoder:cross-encoder/ms-marco-MiniLM-L-6-v2", "BM25+MiniLM"),
        ("replay:runs/gpt35.trec.gz", "gpt35"),
        ("bm25(k1=0.9,b=0.4)", "bm25(k1=0.9,b=0.4)"),  # another BM25 than the papers'
        ("dense:berm", "dense:berm"),  # no checkpoint of it is published
        ("a[b]&c", "a[b]&c"),
    ],
)
def test_known_rankers_have_the_papers_names_and_others_keep_their_text(run: str, name: str) -> None:
    assert system_names([run]) == {run: name}


def test_two_rankers_never_share_a_name_and_a_pipeline_starts_with_its_first_stage() -> None:
    found = system_names(["bm25", "bm25@5", "tfidf"])
    assert found == {"bm25": "bm25", "bm25@5": "bm25@5", "tfidf": "TF-IDF"}
    assert is_reranked("bm25@100>>monot5")
    assert not is_reranked("bm25@100")
    assert first_stage("bm25@100>>monot5") == first_stage("bm25") == "BM25"


def test_measures_have_the_papers_names() -> None:
    names = {
        "nDCG@10": "NDCG@10", "AP(rel=2)@5": "MAP(rel=2)@5", "RR": "MRR", "R@100": "Recall@100", "P@20": "P@20",
        "ExposureRatio": "ExposureRatio",
    }  # fmt: skip
    assert {measure: measure_name(measure) for measure in names} == names


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("llama-2-7b-chat-tmp0.2", ("llama-2-7b-chat", "0.2")),
        ("llm_1.0", ("llm", "1.0")),
        ("gpt_3.5", ("gpt_3.5", "")),
        ("llama_temp1", ("llama", "1.0")),
        ("gpt-4", ("gpt-4", "")),
        ("-tmp0.2", ("-tmp0.2", "")),
    ],
)
def test_a_source_is_split_into_model_and_temperature(source: str, found: tuple[str, str]) -> None:
    assert generator(source) == found


def test_temperatures_and_models_of_the_gpt_family_are_told_as_in_the_papers() -> None:
    assert [temperature(value) for value in (0.2, 1.0, 0.75, math.nan)] == ["0.2", "1.0", "0.75", ""]
    assert [of_gpt(model) for model in ("gpt-3.5-turbo-0613", "ChatGPT", "llama-2")] == [True, True, False]
