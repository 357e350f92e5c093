"""Tokens without the model: counts, limits, ends, and what a run says of truncated text."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ranktilt.errors import UserError
from ranktilt.models import token_counts as module
from ranktilt.models.token_counts import Tokens
from ranktilt.progress import listening
from ranktilt.rankers.dense.retriever import Dense
from tests.rankers.tiny import LENGTH, write_json
from tests.refusals import refused
from tests.toy import collection_of


class TestLimit:
    """The files of a model that say after how many tokens it cuts."""

    @pytest.mark.parametrize(
        ("files", "expected"),
        [
            ({"sentence_bert_config.json": {"max_seq_length": 24}}, 24),
            ({"tokenizer_config.json": {"model_max_length": 128}}, 128),
            ({"config.json": {"max_position_embeddings": 512}}, 512),
            ({"sentence_bert_config.json": {"max_seq_length": 24}, "config.json": {"max_position_embeddings": 99}}, 24),
            ({"sentence_bert_config.json": {"max_seq_length": None}, "config.json": {"max_position_embeddings": 9}}, 9),
            ({"tokenizer_config.json": {"model_max_length": int(1e30)}}, None),
            ({"0_Transformer/sentence_bert_config.json": {"max_seq_length": 64}}, 64),
            ({}, None),
        ],
    )  # fmt: skip
    def test_the_most_particular_file_counts(self, tmp_path: Path, files: dict[str, Any], expected: int | None) -> None:
        for name, content in files.items():
            write_json(tmp_path / name, content)
        assert Tokens(tmp_path, None).limit == expected

    def test_the_users_own_comes_first(self, tmp_path: Path) -> None:
        write_json(tmp_path / "sentence_bert_config.json", {"max_seq_length": 24})
        assert Tokens(tmp_path, 7).limit == 7


def test_a_folder_without_a_tokenizer_cannot_be_read(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path, None)
    assert not tokens.readable
    with refused(f"{tmp_path}: no tokenizer.json, so its tokens cannot be counted"):
        tokens.counts(["a"], "counting")


def test_a_broken_tokenizer_is_named(tmp_path: Path, own_cache: Path) -> None:
    pytest.importorskip("tokenizers")
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    tokens = Tokens(tmp_path, None)
    assert tokens.readable
    with pytest.raises(UserError, match=r"tokenizer\.json: cannot be read as a tokenizer: "):
        tokens.counts(["a"], "counting")


def letters(text: str) -> int:
    """Tokens of the tiny model: a letter or digit each, a sign each, and two around all."""
    return sum(not c.isspace() for c in text) + 2


PLAIN = st.text(alphabet="abcz 09", max_size=60)


@pytest.mark.neural
class TestCounts:
    @given(st.lists(PLAIN, max_size=12))
    @settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_tokens_of_each_text_before_any_cut(self, tiny: Path, texts: list[str]) -> None:
        assert Tokens(tiny, None).counts(texts, "x").tolist() == [letters(t) for t in texts]

    def test_a_prompt_is_part_of_every_text(self, tiny: Path) -> None:
        assert Tokens(tiny, None, "doc: ").counts(["abc", ""], "x").tolist() == [letters("doc: abc"), letters("doc: ")]

    def test_counts_are_kept_by_content(self, tiny: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        first = Tokens(tiny, None).counts(["abc", "de", "abc"], "x")
        monkeypatch.setattr(Tokens, "_tokenizer", property(lambda self: pytest.fail("was asked again")))
        assert Tokens(tiny, 9).counts(["de", "abc"], "x").tolist() == first[[1, 0]].tolist()
        with pytest.raises(pytest.fail.Exception):
            Tokens(tiny, None, "other prompt").counts(["abc"], "x")

    def test_some_at_a_time_are_as_all_at_once(
        self, tiny: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        texts = ["a" * n for n in range(11)]
        monkeypatch.setattr(module, "_TEXTS_AT_ONCE", 4)
        steps: list[tuple[str, int, int]] = []
        with listening(lambda *step: steps.append(step)):
            found = Tokens(tiny, None).counts(texts, "counting")
        assert found.tolist() == [n + 2 for n in range(11)]
        assert steps == [("counting", 4, 11), ("counting", 8, 11), ("counting", 11, 11)]


@pytest.mark.neural
class TestEnds:
    @pytest.mark.parametrize(
        ("text", "budget", "kept"),
        [
            ("abcde", 7, "abcde"),
            ("abcde", 6, "abcd"),
            ("ab cde", 6, "ab cd"),
            ("ab cde", 4, "ab"),
            ("abcde", 2, ""),
            ("abcde", 0, ""),
            ("ÄBC def", 5, "ÄBC"),
        ],
    )
    def test_by_hand(self, tiny: Path, text: str, budget: int, kept: str) -> None:
        (end,) = Tokens(tiny, None).ends([text], np.array([budget]))
        assert text[:end] == kept

    @given(st.lists(st.tuples(PLAIN, st.integers(0, 70)), max_size=8))
    @settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_what_is_kept_has_as_many_tokens_as_may_stay(self, tiny: Path, given: list[tuple[str, int]]) -> None:
        texts, budgets = [t for t, _ in given], np.array([b for _, b in given], dtype=np.int64)
        ends = Tokens(tiny, None).ends(texts, budgets)
        for text, budget, end in zip(texts, budgets.tolist(), ends, strict=True):
            assert letters(text[:end]) == min(letters(text), max(budget, 2))

    def test_a_prompt_takes_its_tokens_and_none_of_the_characters(self, tiny: Path) -> None:
        tokens = Tokens(tiny, None, "doc: ")
        assert tokens.ends(["abcde", "abcde", "abcde"], np.array([8, 6, 3])) == [2, 0, 0]


@pytest.mark.neural
class TestARun:
    def collection(self) -> Any:
        docs = [
            {"id": f"{n}-{s}", "title": "T", "text": "x" * length, "source": s, "origin": f"{n}-human"}
            for s, lengths in (("human", (21, 22, 5, 30)), ("llm", (21, 20, 5, 6)))
            for n, length in enumerate(lengths)
        ]
        return collection_of(docs, {"q": "x"}, {"q": {"0-human": 1, "0-llm": 1}})

    @pytest.mark.parametrize(
        ("options", "limit", "human", "llm"),
        [
            ({}, LENGTH, 2 / 4, 0),  # a letter of the title and two signs: 21 letters of text are read whole
            ({"text": "text"}, LENGTH, 1 / 4, 0),
            ({"max_tokens": 8}, 8, 3 / 4, 3 / 4),
            ({"max_tokens": 64}, 64, 0, 0),
        ],
    )
    def test_its_spec_says_how_many_documents_of_each_source_are_cut(
        self, tiny: Path, options: dict[str, Any], limit: int, human: float, llm: float
    ) -> None:
        run = Dense(str(tiny), device="cpu", **options).rank(self.collection())
        assert run.spec["truncated"] == {"limit": limit, "share": {"human": human, "llm": llm}}

    def test_without_a_readable_tokenizer_it_says_nothing(self, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Tokens, "readable", property(lambda self: False))
        ranker = Dense(str(tiny), device="cpu")
        assert ranker.tokens() is None
        assert "truncated" not in ranker.rank(self.collection()).spec
