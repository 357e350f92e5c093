"""Answers with citations in every layout, as engines and libraries write them."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ranktilt.data.answers import Answers
from ranktilt.data.formats.citations.answer_file import read_answers
from ranktilt.errors import DataError, DataWarning
from tests.data.test_damaged_files import CUTS, DAMAGES


@dataclass(frozen=True, kw_only=True)
class Case:
    """A recorded answer, and what it cites and consulted."""

    name: str
    answer: dict[str, Any]
    cited: list[str]
    consulted: list[str] | None = None
    retrieved: list[str] = field(default_factory=list)
    words: dict[str, float] | None = None


OWN = {
    "query_id": "q1",
    "run": 2,
    "cited": ["https://a.org/x", "https://b.org", "https://www.a.org/x/?utm_source=chat"],
    "not_cited": ["https://c.org/y#top"],
}
SERPAPI = {
    "search_parameters": {"q": "q1", "engine": "google"},
    "organic_results": [
        {"position": 1, "link": "https://b.org/", "title": "B"},
        {"position": 2, "link": "https://d.org/", "title": "D"},
    ],
    "ai_overview": {
        "text_blocks": [
            {"type": "paragraph", "snippet": "one two three", "reference_indexes": [1]},
            {
                "type": "list",
                "list": [{"snippet": "four five", "reference_indexes": [0, 1]}],
            },
        ],
        "references": [
            {"index": 0, "link": "https://a.org/x", "title": "A"},
            {"index": 1, "link": "https://b.org/", "title": "B"},
        ],
    },
}
RESPONSES = {
    "custom_id": "q1",
    "response": {
        "status_code": 200,
        "body": {
            "object": "response",
            "output": [
                {
                    "type": "web_search_call",
                    "status": "completed",
                    "action": {
                        "type": "search",
                        "sources": [
                            {"type": "url", "url": "https://a.org/x"},
                            {"type": "url", "url": "https://c.org/y"},
                        ],
                    },
                },
                {
                    "type": "message",
                    "content": [
                        {
                            "type": "output_text",
                            "text": "Buy it (b.org).",
                            "annotations": [
                                {
                                    "type": "url_citation",
                                    "start_index": 7,
                                    "end_index": 14,
                                    "url": "https://b.org/?utm_source=openai",
                                    "title": "B",
                                },
                                {"type": "url_citation", "url": "https://a.org/x", "title": "A"},
                            ],
                        }
                    ],
                },
            ],
        },
    },
}
CHAT = {
    "query": "q1",
    "choices": [
        {
            "message": {
                "role": "assistant",
                "content": "Buy it.",
                "annotations": [
                    {
                        "type": "url_citation",
                        "url_citation": {"url": "https://b.org/", "title": "B", "start_index": 0},
                    }
                ],
            }
        }
    ],
}
PERPLEXITY = {
    "query": "q1",
    "citations": ["https://a.org/x", "https://b.org/", "https://c.org/y"],
    "search_results": [
        {"title": "A", "url": "https://a.org/x", "date": "2026-01-02"},
        {"title": "B", "url": "https://b.org/"},
        {"title": "C", "url": "https://c.org/y"},
    ],
    "choices": [
        {"message": {"role": "assistant", "content": "Two words.[2] One two three.[1][2]"}}
    ],
}
GEMINI = {
    "query": "q1",
    "response": {
        "candidates": [
            {
                "content": {"parts": [{"text": "One two. Three."}]},
                "groundingMetadata": {
                    "groundingChunks": [
                        {"web": {"uri": "https://a.org/x", "title": "a.org"}},
                        {
                            "web": {
                                "uri": "https://v.example/grounding-api-redirect/AbC",
                                "title": "b.org",
                            }
                        },
                        {"web": {"uri": "https://c.org/y", "title": "c.org"}},
                    ],
                    "groundingSupports": [
                        {"segment": {"text": "One two."}, "groundingChunkIndices": [1]},
                        {"segment": {"text": "Three."}, "groundingChunkIndices": [0, 1]},
                    ],
                },
            }
        ]
    },
}
ANTHROPIC = {
    "query": "q1",
    "content": [
        {
            "type": "web_search_tool_result",
            "content": [
                {"type": "web_search_result", "url": "https://a.org/x", "title": "A"},
                {"type": "web_search_result", "url": "https://b.org/", "title": "B"},
            ],
        },
        {"type": "text", "text": "I looked."},
        {
            "type": "text",
            "text": "One two.",
            "citations": [
                {
                    "type": "web_search_result_location",
                    "url": "https://b.org/",
                    "cited_text": "one",
                }
            ],
        },
    ],
}
TREC_RAG = {
    "metadata": {"team_id": "t", "run_id": "r", "narrative_id": "q1"},
    "references": ["msmarco_a", "msmarco_b", "msmarco_c"],
    "answer": [
        {"text": "One two.", "citations": [2]},
        {"text": "Three.", "citations": [0, 2]},
    ],
}
NUMBERED = {
    "question": "q1",
    "answer": "One two [2]. Three four five [1, 2].",
    "source_documents": [
        {"page_content": "…", "metadata": {"source": "https://a.org/x"}},
        {"page_content": "…", "metadata": {"source": "https://b.org/"}},
        {"page_content": "…", "metadata": {"source": "https://c.org/y"}},
    ],
}
NODES = {
    "query": "q1",
    "response": "One [1].",
    "source_nodes": [
        {"node": {"id_": "n1", "metadata": {"url": "https://a.org/x"}}, "score": 0.8},
        {"node": {"id_": "n2", "metadata": {}}, "score": 0.7},
    ],
}
CASES = [
    Case(
        name="own",
        answer=OWN,
        cited=["a.org/x", "b.org"],
        consulted=["a.org/x", "b.org", "c.org/y"],
    ),
    Case(
        name="SerpAPI",
        answer=SERPAPI,
        cited=["b.org", "a.org/x"],
        retrieved=["b.org", "d.org"],
        words={"b.org": 4.0, "a.org/x": 1.0},
    ),
    Case(
        name="OpenAI responses",
        answer=RESPONSES,
        cited=["b.org", "a.org/x"],
        consulted=["a.org/x", "b.org", "c.org/y"],
    ),
    Case(name="OpenAI chat", answer=CHAT, cited=["b.org"]),
    Case(
        name="Perplexity",
        answer=PERPLEXITY,
        cited=["b.org", "a.org/x"],
        consulted=["a.org/x", "b.org", "c.org/y"],
        words={"b.org": 3.5, "a.org/x": 1.5},
    ),
    Case(
        name="Gemini",
        answer=GEMINI,
        cited=["b.org", "a.org/x"],
        consulted=["a.org/x", "b.org", "c.org/y"],
        words={"b.org": 2.5, "a.org/x": 0.5},
    ),
    Case(
        name="Anthropic",
        answer=ANTHROPIC,
        cited=["b.org"],
        consulted=["a.org/x", "b.org"],
        words={"b.org": 2.0},
    ),
    Case(
        name="TREC RAG",
        answer=TREC_RAG,
        cited=["msmarco_c", "msmarco_a"],
        consulted=["msmarco_a", "msmarco_b", "msmarco_c"],
        words={"msmarco_c": 2.5, "msmarco_a": 0.5},
    ),
    Case(
        name="LangChain",
        answer=NUMBERED,
        cited=["b.org", "a.org/x"],
        consulted=["a.org/x", "b.org", "c.org/y"],
        words={"b.org": 3.5, "a.org/x": 1.5},
    ),
    Case(
        name="LlamaIndex",
        answer=NODES,
        cited=["a.org/x"],
        consulted=["a.org/x", "n2"],
        words={"a.org/x": 1.0},
    ),
]


def written(path: Path, *records: Any) -> Path:
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    return path


def cited_pages(answers: Answers) -> list[str]:
    return answers.cited.sort("answer", "citation_rank")["page"].to_list()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_layout(case: Case, tmp_path: Path) -> None:
    answers = read_answers(written(tmp_path / "answers.jsonl", case.answer))
    assert answers.queries == ["q1"]
    assert cited_pages(answers) == case.cited
    pages = answers.pages
    assert answers.has_consulted == (case.consulted is not None)
    assert sorted(pages.filter("is_consulted")["page"]) == (case.consulted or [])
    retrieved = pages.drop_nulls("retrieval_rank").sort("retrieval_rank")
    assert retrieved["page"].to_list() == case.retrieved
    words = dict(pages.drop_nulls("cited_words").select("page", "cited_words").iter_rows())
    assert words == (case.words or {})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_same_answers_as_list_and_in_folder(case: Case, tmp_path: Path) -> None:
    lines = read_answers(written(tmp_path / "answers.jsonl", case.answer))
    listed = tmp_path / "answers.json"
    listed.write_text(json.dumps([case.answer]), encoding="utf-8")
    assert cited_pages(read_answers(listed)) == cited_pages(lines)
    folder = tmp_path / "answers"
    folder.mkdir()
    written(folder / "q1.1.json", case.answer)
    in_folder = read_answers(folder)
    assert cited_pages(in_folder) == cited_pages(lines)
    assert in_folder.queries == ["q1"]


IN_TEXT = ("NaN", "infinity", "a word for a number")
"""Damages of a number that stands in a text, as [2] does: what is left is a text too."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_damaged_answers_are_one_line(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "file"
    second = json.loads(json.dumps(case.answer).replace('"q1"', '"q2"'))
    data = written(path, case.answer, second).read_bytes()
    undamaged = read_answers(path).pages
    for damage in DAMAGES:
        path.write_bytes(damage.harm(data))
        pages, message, is_warned = outcome(path)
        if message:
            assert message.startswith(str(path)), damage.name
            assert "\n" not in message, damage.name
            assert not damage.is_harmless, damage.name
            continue
        is_same = pages.equals(undamaged)
        assert is_same or is_warned or damage.name in (*CUTS, *IN_TEXT), damage.name


def outcome(path: Path) -> tuple[pl.DataFrame, str, bool]:
    """Return what is read of a file, or what is said of it, and whether it is warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            answers = read_answers(path)
        except DataError as error:
            return pl.DataFrame(), str(error), bool(caught)
    return answers.pages, "", bool(caught)


def test_repeats_are_numbered_where_unnamed(tmp_path: Path) -> None:
    first = {"query": "q", "cited": ["a"]}
    second = {"query": "q", "cited": ["b"]}
    answers = read_answers(written(tmp_path / "a.jsonl", first, second))
    assert answers.answers["repeat"].to_list() == ["1", "2"]


def test_copies_are_left_out(tmp_path: Path) -> None:
    record = {"query": "q", "cited": ["a"]}
    with pytest.warns(DataWarning, match="1 answer is a copy of another; left out"):
        answers = read_answers(written(tmp_path / "a.jsonl", record, record))
    assert answers.answers.height == 1


def test_queries_by_order(tmp_path: Path) -> None:
    record = {"cited": ["a"]}
    path = written(tmp_path / "a.jsonl", record, record)
    assert read_answers(path, queries=["q1", "q2"]).queries == ["q1", "q2"]
    with pytest.raises(DataError, match="there are more answers than the 1 queries"):
        read_answers(path, queries=["q1"])
    with pytest.raises(DataError, match="2 answers and 3 queries; expected a query each"):
        read_answers(path, queries=["q1", "q2", "q3"])


REFUSED = [
    ([], "the file is empty"),
    ([{"query": "q", "cited": ["https://a.org/lo…"]}], "is cut off; export whole addresses"),
    ([{"cited": ["a"]}], "the answer does not name its query"),
    ([{"query": "q", "cited": []}], "none of 1 answer cites a page"),
    ([{"query": "q", "cited": "a"}], "expected a list of pages in 'cited'"),
    ([{"query": "q", "cited": [None]}], "expected a page as an address"),
    (
        [{"query": "q", "cited": ["a"], "consulted": ["a"], "not_cited": ["b"]}],
        r"got both",
    ),
    (
        [{"query": "q", "run": 1, "cited": ["a"]}, {"query": "q", "run": 1, "cited": ["b"]}],
        "query 'q' has two answers of run '1'",
    ),
    (
        [{"query": "q", "cited": ["a"]}, {"query": "q", "text": "One [1].", "sources": ["a"]}],
        "expected records with cited pages as in the first answer",
    ),
    (
        [{"query": "q", "text": "One [3].", "sources": ["a"]}],
        r"the text cites \[3\], and the list has 1 pages",
    ),
    ([{"query": "q", "text": "One.", "sources": ["a"]}], "none of 1 answer cites a page"),
    (
        [{"query": "q", "answer": [{"text": "a", "citations": [1]}], "references": ["x"]}],
        "counted from 0",
    ),
    ([{"a": 1}], "expected answers with citations"),
    ([[1, 2]], "expected a record for each answer"),
    (
        [{"search_parameters": {"q": "q"}, "ai_overview": {"page_token": "x"}}],
        "the overview was not fetched",
    ),
]


@pytest.mark.parametrize(("records", "message"), REFUSED)
def test_refused(records: list[Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read_answers(written(tmp_path / "a.jsonl", *records))


ENGINES = [
    {"query": "q", "engine": "alpha", "cited": ["a"]},
    {"query": "q", "engine": "beta", "cited": ["b"]},
]


def test_engine_is_chosen(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", *ENGINES)
    answers = read_answers(path, engine="beta")
    assert cited_pages(answers) == ["b"]
    assert answers.spec["engine"] == "beta"


def test_copies_of_other_engines_do_not_count(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", *ENGINES, ENGINES[1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_answers(path, engine="alpha").spec["copies"] == 0
    with pytest.warns(DataWarning, match="1 answer is a copy"):
        assert read_answers(path, engine="beta").spec["copies"] == 1


def test_several_engines_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", *ENGINES)
    with pytest.raises(DataError, match=r"'alpha' and 'beta'.; name one: --engine alpha"):
        read_answers(path)
    with pytest.raises(DataError, match=r"unknown engine 'gamma' .valid: alpha, beta"):
        read_answers(path, engine="gamma")
    with pytest.raises(DataError, match="no answer names its engine; add a field 'engine'"):
        read_answers(written(path, {"query": "q", "cited": ["a"]}), engine="alpha")


def test_web_page_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("<!DOCTYPE html><html></html>", encoding="utf-8")
    with pytest.raises(DataError, match="got a web page"):
        read_answers(path)
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(
        DataError, match=r"expected a folder of answers, with a \.json file for each"
    ):
        read_answers(folder)
    path.rename(folder / "q1.json")
    with pytest.raises(DataError, match=r"q1\.json: .*got a web page"):
        read_answers(folder)


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    deep = "[" * 400 + "]" * 400
    path.write_text(f'{{"query": "q", "cited": ["a"], "text": {deep}}}\n', encoding="utf-8")
    with pytest.raises(DataError, match="nested deeper than any answer is"):
        read_answers(path)


def test_exact_urls_are_kept_apart(tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl", OWN)
    pages = read_answers(path, exact_urls=True).pages
    assert "https://www.a.org/x/?utm_source=chat" in pages["page"].to_list()
