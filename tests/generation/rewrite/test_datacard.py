"""The data card: each fact it must state, and the figures by hand."""

import re
from pathlib import Path
from typing import Any

import pytest

from ranktilt.generation.pooling import pool
from ranktilt.generation.rewrite.datacard import datacard
from ranktilt.generation.rewrite.rewrite import rewrite
from ranktilt.generation.settings import Rewriting
from ranktilt.llm.base import Failure
from ranktilt.llm.journal import Journal
from ranktilt.rankers.lexical.bm25 import BM25
from tests.generation.scripted import TEXTS, Scripted, answer, good, humans


@pytest.fixture
def card(tmp_path: Path) -> Any:
    """Make the card of a rewriting."""

    def run(llm: Scripted | None = None, texts: dict[str, str] | None = None, only: Any = None, **how: Any) -> str:
        given = humans(texts)
        chosen = pool(given, [BM25()], depth=1) if only == "pool" else only
        journal = Journal(tmp_path / "journal")
        rewritten = rewrite(given, llm or Scripted(), Rewriting(**how), only=chosen, journal=journal)
        return datacard(rewritten, ("dev", "test"))

    return run


def cells(card: str, name: str) -> list[str]:
    """Cells of a table's row."""
    row = next(line for line in card.splitlines() if line.startswith(f"| {name} |"))
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[2:-1]]


def test_model_asked_for_and_answered_are_told_apart(card: Any) -> None:
    text = card(Scripted(lambda p, n: answer(good(p, n), model="other" if "river" in p else "tiny-v1")))
    assert cells(text, "asked for") == ["`lab/tiny`"]
    assert cells(text, "answered") == ["`tiny-v1` (2), `other` (1)"]
    assert cells(text, "revision") == ["`fp_1`"]
    assert "Another name answered than was asked for" in text


def test_sampling_and_dates_are_there(card: Any) -> None:
    text = card(temperatures=(0.2, 1.0), max_tokens=400, seed=7, top_p=0.9)
    assert cells(text, "temperature") == ["0.2 and 1.0"]
    assert cells(text, "top_p") == ["0.9"]
    assert cells(text, "most tokens of an answer") == ["400"]
    assert cells(text, "seed") == ["7"]
    for name in ("first answer", "last answer"):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", cells(text, name)[0])


def test_the_prompt_is_given_in_full(card: Any, tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_text("```\nAnew: {title}\n{text}\n```\nOnly the text.\n", encoding="utf-8")
    text = card(prompt=file)
    assert "````text\n```\nAnew: {title}\n{text}\n```\nOnly the text.\n````" in text
    assert f"From `{file}`; `{{text}}` stands for the document. It is given the document's text and title," in text
    assert "nothing of the queries or judgments" in text
    assert "```text\nPlease rewrite the following text: {text}\n```" in card()


def test_counts_are_those_of_each_source(card: Any) -> None:
    def says(prompt: str, times: int) -> str:
        return TEXTS["d2"] if "river" in prompt else good(prompt, times)

    text = card(Scripted(says), {**TEXTS, "d4": ""}, attempts=2, temperatures=(0.2, 1.0))
    assert cells(text, "documents") == ["4", "4"]
    assert cells(text, "rewritten") == ["2", "2"]
    assert cells(text, "left out: empty") == ["1", "1"]
    assert cells(text, "left out: flagged") == ["1", "1"]
    assert cells(text, "answers") == ["4", "4"]
    assert cells(text, "answers flagged: copied") == ["2", "2"]
    assert cells(text, "tokens read") == ["80", "80"]
    assert cells(text, "tokens written") == ["40", "40"]


@pytest.mark.parametrize(
    ("titles", "sentence"),
    [
        ("keep", "Both twins carry the human title."),
        ("rewrite", "Titles were rewritten too, each by a request of its own"),
        ("drop", "Rewrites have no title, human documents keep theirs"),
    ],
)
def test_it_says_what_became_of_titles(card: Any, titles: str, sentence: str) -> None:
    llm = Scripted(lambda prompt, times: "A title" if "title" in prompt else good(prompt, times))
    assert f"## Titles\n\n{sentence}" in card(llm, titles=titles)


def test_it_says_who_chose_the_documents(card: Any) -> None:
    pooled, named = card(only="pool"), card(only=["d1"])
    assert "Queries chose the documents" in pooled
    assert "- pool: 2 of 3 documents chosen by 2 queries" in pooled
    assert "- top 1 of bm25" in pooled
    assert "- only documents that were named were rewritten" in named
    assert "Queries chose" not in named
    assert "## Pool" not in card()


def test_cut_texts_are_counted(card: Any) -> None:
    long = "abcd " * 100 + "end."

    def says(prompt: str, times: int) -> Any:
        return Failure("too long", "full") if len(prompt.split()) > 60 else "dcba " * 30 + "end."

    text = card(Scripted(says), {"d1": long}, truncate=True, attempts=1)
    assert cells(text, "made of a text that was cut") == ["1"]
    assert "`cut_to`" in text


def test_licence_files_and_splits_are_there(card: Any) -> None:
    text = card()
    assert "The source texts keep the licence they came with" in text
    assert "The terms of the model" in text
    judgments = ("qrels/dev.tsv", "qrels/test.tsv")
    for name in ("corpus.jsonl", *judgments, "left-out.jsonl", "answers.jsonl.gz", "manifest.json"):
        assert f"| `{name}` |" in text
    assert "Judgments (dev, test) hold for a document and its rewrites alike." in text
