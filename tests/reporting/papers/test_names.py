"""What the papers call rankers, measures and collections."""

import pytest

from ranktilt.reporting.papers.names import (
    dataset_name,
    first_stage,
    generator,
    is_reranked,
    measure_name,
    of_gpt,
    system_names,
    temperature,
)


@pytest.mark.parametrize(
    ("run", "name"),
    [
        ("tfidf", "TF-IDF"),
        ("bm25", "BM25"),
        ("bm25@100", "BM25"),
        ("dense:ance", "ANCE"),
        ("dense:tas-b", "TAS-B"),
        ("dense:contriever", "Contriever"),
        ("dense:facebook/contriever-msmarco", "Contriever"),
        ("bm25@100>>cross-encoder:minilm", "BM25+MiniLM"),
        ("bm25@100>>cross-encoder:cross-encoder/ms-marco-MiniLM-L-6-v2", "BM25+MiniLM"),
        ("bm25@100>>monot5:base", "BM25+monoT5"),
        ("bm25@100>>monot5", "BM25+monoT5"),
        ("bm25@100>>monobert:large", "BM25+MonoBERT"),
        ("/somewhere/runs/gpt35.trec", "gpt35"),
        ("replay:runs/gpt35.trec.gz", "gpt35"),
        ("mine.v2.tsv", "mine.v2"),
    ],
)
def test_known_rankers_have_the_papers_names(run: str, name: str) -> None:
    assert system_names([run]) == {run: name}


@pytest.mark.parametrize(
    "run",
    [
        "bm25(k1=0.9,b=0.4)",  # another BM25 than the papers'
        "dense:minilm",
        "dense:berm",  # no checkpoint of it is published
        "bm25@100>>dense:minilm",
        "bm25@100>>cross-encoder:/models/mine",
        "my run",
        "a[b]&c",
    ],
)
def test_a_ranker_that_no_paper_has_keeps_its_text(run: str) -> None:
    assert system_names([run]) == {run: run}


def test_two_rankers_never_share_a_name() -> None:
    found = system_names(["bm25", "bm25@5", "tfidf"])
    assert found == {"bm25": "bm25", "bm25@5": "bm25@5", "tfidf": "TF-IDF"}


@pytest.mark.parametrize(
    ("measure", "name"),
    [
        ("nDCG@10", "NDCG@10"),
        ("AP@1000", "MAP@1000"),
        ("AP(rel=2)@5", "MAP(rel=2)@5"),
        ("RR@10", "MRR@10"),
        ("RR", "MRR"),
        ("R@100", "Recall@100"),
        ("P@20", "P@20"),
        ("ExposureRatio", "ExposureRatio"),
    ],
)
def test_measures_have_the_papers_names(measure: str, name: str) -> None:
    assert measure_name(measure) == name


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("llama-2-7b-chat-tmp0.2", ("llama-2-7b-chat", "0.2")),
        ("llama_temp1", ("llama", "1.0")),
        ("gpt-4", ("gpt-4", "")),
        ("llm", ("llm", "")),
        ("-tmp0.2", ("-tmp0.2", "")),
    ],
)
def test_a_source_is_split_into_model_and_temperature(source: str, found: tuple[str, str]) -> None:
    assert generator(source) == found


@pytest.mark.parametrize(("value", "text"), [(0.2, "0.2"), (1.0, "1.0"), (0.75, "0.75"), (float("nan"), "")])
def test_temperatures_are_written_as_the_papers_do(value: float, text: str) -> None:
    assert temperature(value) == text


def test_known_collections_have_their_names_and_others_keep_theirs() -> None:
    assert [dataset_name(name) for name in ("scifact", "my-folder")] == ["SciFact", "my-folder"]


@pytest.mark.parametrize(("model", "found"), [("gpt-3.5-turbo-0613", True), ("ChatGPT", True), ("llama-2", False)])
def test_models_of_the_gpt_family_are_told_apart(model: str, found: bool) -> None:
    assert of_gpt(model) is found


def test_a_pipeline_starts_with_its_first_stage() -> None:
    assert is_reranked("bm25@100>>monot5")
    assert not is_reranked("bm25@100")
    assert first_stage("bm25@100>>monot5") == first_stage("bm25") == "BM25"
