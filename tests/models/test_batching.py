"""Batches of texts and pairs: counted in tokens, cut where they do not fit, computed once, stored
as they come.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ranktilt.data.cache import VectorCache, Vectors, content_keys
from ranktilt.errors import UserError
from ranktilt.models import batching
from ranktilt.models import token_counts as module
from ranktilt.models.batching import (
    GPU_TOKENS,
    LOW_PRECISION_TOKENS,
    TOKENS,
    BatchJob,
    Ints,
    batch_tokens,
    compute_missing,
    plan_batches,
)
from ranktilt.models.device import inference
from ranktilt.models.scorer import TextPairs, TokenLimits, fit_texts, sigmoid
from ranktilt.models.token_counts import NO_LIMIT, Tokens
from ranktilt.progress import listening
from ranktilt.rankers.dense.retriever import Dense
from tests.rankers.tiny import LENGTH, write_json
from tests.rankers.tiny_rerankers import tiny_classifier, word_tokenizer
from tests.refusals import refused
from tests.toy import collection_of, no_room, versions, write

LENGTHS = st.lists(st.integers(0, 50), max_size=60)


def ints(*values: int) -> Ints:
    return np.array(values, dtype=np.int64)


@pytest.mark.parametrize(
    ("device", "precision", "tokens"),
    [
        ("cpu", "float32", TOKENS),
        ("cpu", "bfloat16", LOW_PRECISION_TOKENS),
        ("cpu", "float16", LOW_PRECISION_TOKENS),
        ("cuda:1", "float32", GPU_TOKENS),
        ("cuda", "bfloat16", GPU_TOKENS),
    ],
)
def test_batch_tokens_by_device_and_precision(device: str, precision: str, tokens: int) -> None:
    assert batch_tokens(device, precision) == tokens


@given(LENGTHS, st.integers(1, 100), st.integers(1, 10))
def test_every_plan_holds_each_item_once_within_its_limits(
    lengths: list[int], tokens: int, most: int
) -> None:
    batches = plan_batches(ints(*lengths), tokens, most=most)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        longest = max(lengths[i] for i in batch)
        assert len(batch) == 1 or (len(batch) <= most and len(batch) * longest <= tokens)
    assert [lengths[i] for batch in batches for i in batch] == sorted(lengths, reverse=True)


@dataclass
class Work:
    """Items named by their texts; their vectors are their length and first letter."""

    texts: list[str]
    batches: list[list[str]] = field(default_factory=list)
    entered: int = 0
    stop_after: int = 1 << 30
    tokens: int = 12

    def job(self) -> BatchJob:
        lengths = ints(*map(len, self.texts))
        return BatchJob(
            keys=content_keys(self.texts),
            lengths=lengths,
            compute=self.compute,
            take=self.take,
            context=self.computing,
            tokens=self.tokens,
        )

    def take(self, positions: Ints) -> list[str]:
        return [self.texts[i] for i in positions]

    def compute(self, texts: list[str]) -> Vectors:
        if len(self.batches) >= self.stop_after:
            raise KeyboardInterrupt
        self.batches.append(texts)
        return np.array([[len(text), ord(text[0])] for text in texts], dtype=np.float32)

    @contextmanager
    def computing(self) -> Iterator[None]:
        self.entered += 1
        yield


TEXTS = ["bbbbb", "a", "cccc", "ddddddd", "ee", "fff", "gg", "h"]


def all_of(work: Work, folder: Path) -> Vectors:
    return compute_missing(work.job(), VectorCache(folder), "x").read(0, len(work.texts))


def test_each_item_gets_its_vector_the_longest_first_in_batches_of_so_many_tokens(
    tmp_path: Path,
) -> None:
    work = Work(TEXTS)
    vectors = all_of(work, tmp_path)
    assert (work.entered, len(work.batches) > 2) == (1, True)  # one context around all
    assert vectors[:, 0].tolist() == [5, 1, 4, 7, 2, 3, 2, 1]
    assert [chr(int(v)) for v in vectors[:, 1]] == list("bacdefgh")
    batches = plan_batches(ints(3, 100, 1, 90, 20, 100, 2), 250, most=3)
    assert [batch.tolist() for batch in batches] == [[1, 5], [3, 4], [0, 6, 2]]


@pytest.mark.parametrize("done", [0, 2])
def test_work_that_is_taken_up_again_gives_the_same_bits(tmp_path: Path, done: int) -> None:
    uninterrupted = all_of(Work(TEXTS), tmp_path / "whole")
    first, second = Work(TEXTS, stop_after=done), Work(TEXTS)
    with pytest.raises(KeyboardInterrupt):
        all_of(first, tmp_path / "resumed")
    resumed = all_of(second, tmp_path / "resumed")
    computed = [text for work in (first, second) for batch in work.batches for text in batch]
    assert sorted(computed) == sorted(TEXTS), "only what is missing is computed"
    assert resumed.tobytes() == uninterrupted.tobytes()


@pytest.mark.parametrize(
    ("shard", "files"),
    [
        (2, [3, 2, 2, 1]),  # batches of lengths 7 | 5 || 4 | 3 2 || 2 1 || 1
        (3, [5, 3]),  # 7 | 5 | 4 || 3 2 | 2 1 1
        (100, [8]),
    ],
)
def test_whole_batches_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shard: int, files: list[int]
) -> None:
    put, sizes = VectorCache.put, list[int]()
    monkeypatch.setattr(
        VectorCache, "put", lambda cache, *of: (sizes.append(len(of[0])), put(cache, *of))
    )
    monkeypatch.setattr(batching, "WRITE_EVERY", shard)
    all_of(Work(TEXTS, tokens=7), tmp_path)
    assert sorted(sizes, reverse=True) == files


def test_a_full_disk_a_pruned_cache_and_none_at_all_are_one_clear_line(tmp_path: Path) -> None:
    many = [f"{i:03}" for i in range(400)]
    all_of(Work(many[:3]), tmp_path)
    with no_room(2000), pytest.raises(UserError, match=f"^{tmp_path}: cannot be written: "):
        all_of(Work(many), tmp_path)
    work = Work(many)
    all_of(work, tmp_path)
    assert sum(map(len, work.batches)) == 397

    class Pruned(VectorCache):
        def put(self, keys: Any, vectors: Vectors) -> None:
            """Store nothing, as if it was removed at once."""

    with pytest.raises(
        UserError, match=r"stored values are gone; if the cache was pruned meanwhile, run it again$"
    ):
        compute_missing(Work(TEXTS).job(), Pruned(tmp_path / "pruned"), "x")
    folder = write(tmp_path / "file", "x") / "below"
    work = Work(TEXTS)
    message = (
        "cannot be written: Not a directory; choose another place (RANKTILT_CACHE sets the "
        "cache folder)"
    )
    with refused(f"{folder}: {message}"):
        all_of(work, folder)
    assert work.batches == []


@pytest.mark.neural
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_products_are_computed_in_the_precision_and_without_gradients(precision: str) -> None:
    torch = pytest.importorskip("torch")
    ones = torch.ones(2, 2, requires_grad=True)
    with inference("cpu", precision):
        product = ones @ ones
        assert torch.is_inference_mode_enabled()
    assert str(product.dtype) == f"torch.{precision}"
    assert str((ones @ ones).dtype) == "torch.float32"
    assert not product.requires_grad


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"sentence_bert_config.json": {"max_seq_length": 24}}, 24),
        ({"tokenizer_config.json": {"model_max_length": 128}}, 128),
        ({"config.json": {"max_position_embeddings": 512}}, 512),
        (
            {
                "sentence_bert_config.json": {"max_seq_length": 24},
                "config.json": {"max_position_embeddings": 99},
            },
            24,
        ),
        (
            {
                "sentence_bert_config.json": {"max_seq_length": None},
                "config.json": {"max_position_embeddings": 9},
            },
            9,
        ),
        ({"tokenizer_config.json": {"model_max_length": int(1e30)}}, None),
        ({"0_Transformer/sentence_bert_config.json": {"max_seq_length": 64}}, 64),
        ({}, None),
    ],
)
def test_the_most_particular_file_counts(
    tmp_path: Path, files: dict[str, Any], expected: int | None
) -> None:
    for name, content in files.items():
        write_json(tmp_path / name, content)
    assert Tokens(folder=tmp_path).limit == expected
    assert Tokens(folder=tmp_path, max_tokens=7).limit == 7, "the user's own comes first"


def test_a_folder_without_a_tokenizer_cannot_be_read(tmp_path: Path) -> None:
    tokens = Tokens(folder=tmp_path)
    assert not tokens.readable
    with refused(f"{tmp_path}: no tokenizer.json, so its tokens cannot be counted"):
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
        assert Tokens(folder=tiny).counts(texts, "x").tolist() == [letters(t) for t in texts]

    def test_a_prompt_is_part_of_every_text(self, tiny: Path) -> None:
        assert Tokens(folder=tiny, prompt="doc: ").counts(["abc", ""], "x").tolist() == [
            letters("doc: abc"),
            letters("doc: "),
        ]

    def test_counts_are_kept_by_content(
        self, tiny: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first = Tokens(folder=tiny).counts(["abc", "de", "abc"], "x")
        monkeypatch.setattr(
            Tokens, "_tokenizer", property(lambda self: pytest.fail("was asked again"))
        )
        assert (
            Tokens(folder=tiny, max_tokens=9).counts(["de", "abc"], "x").tolist()
            == first[[1, 0]].tolist()
        )
        with pytest.raises(pytest.fail.Exception):
            Tokens(folder=tiny, prompt="other prompt").counts(["abc"], "x")

    def test_parts_are_as_the_whole(
        self, tiny: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "_TEXTS_AT_ONCE", 4)
        steps: list[tuple[str, int, int]] = []
        with listening(lambda *step: steps.append(step)):
            counts = Tokens(folder=tiny).counts(["a" * n for n in range(11)], "counting")
        assert counts.tolist() == [n + 2 for n in range(11)]
        assert steps == [("counting", 4, 11), ("counting", 8, 11), ("counting", 11, 11)]


@pytest.mark.neural
class TestEnds:
    @pytest.mark.parametrize(
        ("prompt", "text", "budget", "remaining"),
        [
            ("", "ab cde", 6, "ab cd"),
            ("", "ab cde", 4, "ab"),
            ("", "ÄBC def", 5, "ÄBC"),
            ("doc: ", "abcde", 8, "ab"),
            ("doc: ", "abcde", 3, ""),
        ],
    )
    def test_by_hand(self, tiny: Path, prompt: str, text: str, budget: int, remaining: str) -> None:
        (end,) = Tokens(folder=tiny, prompt=prompt).ends([text], np.array([budget]))
        assert text[:end] == remaining

    @given(st.lists(st.tuples(PLAIN, st.integers(0, 70)), max_size=8))
    @settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_what_is_kept_has_as_many_tokens_as_may_stay(
        self, tiny: Path, budgeted_texts: list[tuple[str, int]]
    ) -> None:
        texts = [text for text, _ in budgeted_texts]
        budgets = np.array([budget for _, budget in budgeted_texts], dtype=np.int64)
        ends = Tokens(folder=tiny).ends(texts, budgets)
        for text, budget, end in zip(texts, budgets.tolist(), ends, strict=True):
            assert letters(text[:end]) == min(letters(text), max(budget, 2))


@pytest.mark.neural
class TestARun:
    def collection(self) -> Any:
        lengths = {"human": (21, 22, 5, 30), "llm": (21, 20, 5, 6)}
        docs = [
            {**row, "title": "T"}
            for row in versions({s: ["x" * n for n in of] for s, of in lengths.items()})
        ]
        return collection_of(docs, {"q": "x"}, {"q": {"0-human": 1, "0-llm": 1}})

    @pytest.mark.parametrize(
        ("options", "limit", "human", "llm"),
        [
            (
                {},
                LENGTH,
                2 / 4,
                0,
            ),  # a letter of the title and two signs: 21 letters of text are read whole
            ({"text": "text"}, LENGTH, 1 / 4, 0),
            ({"max_tokens": 8}, 8, 3 / 4, 3 / 4),
            ({"max_tokens": 64}, 64, 0, 0),
        ],
    )
    def test_cuts_are_counted(
        self, tiny: Path, options: dict[str, Any], limit: int, human: float, llm: float
    ) -> None:
        run = Dense(str(tiny), device="cpu", **options).rank(self.collection())
        assert run.spec["truncated"] == {"limit": limit, "share": {"human": human, "llm": llm}}

    def test_without_a_readable_tokenizer_it_says_nothing(
        self, tiny: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(Tokens, "readable", property(lambda self: False))
        ranker = Dense(str(tiny), device="cpu")
        assert ranker.tokens() is None
        assert "truncated" not in ranker.rank(self.collection()).spec


FEW = st.lists(st.sampled_from(["", "a", "b", "a b", "b a"]), min_size=1, max_size=5)


def fitted(limits: TokenLimits, query: int, document: int, *, around: int = 0) -> tuple[int, int]:
    """Tokens that stay of a query and a document."""
    queries, documents = limits.fit(ints(query), ints(document), around)
    return int(queries[0]), int(documents[0])


def test_each_combination_of_texts_is_one_pair_and_own_limits_come_first() -> None:
    pairs = TextPairs.from_texts(
        ["q", "r", "q"], ["d", "e", "d"], ints(0, 0, 1, 2, 2, 0), ints(0, 1, 0, 0, 2, 2)
    )
    texts = [
        (pairs.queries[q], pairs.documents[d])
        for q, d in zip(pairs.query, pairs.document, strict=True)
    ]
    assert sorted(texts) == [("q", "d"), ("q", "e"), ("r", "d")]
    expected = [("q", "d"), ("q", "e"), ("r", "d"), ("q", "d"), ("q", "d"), ("q", "d")]
    assert [texts[pair] for pair in pairs.pair_of_entry] == expected
    limits = TokenLimits(query=2, document=5, pair=12)
    assert [side.tolist() for side in limits.fit(ints(1, 9, 9), ints(9, 1, 9), 3)] == [
        [1, 2, 2],
        [5, 1, 5],
    ]
    assert fitted(TokenLimits(query=2, document=8, pair=10), 9, 9, around=3) == (2, 5)
    assert fitted(TokenLimits(pair=NO_LIMIT), 700, 9000, around=3) == (700, 9000)
    assert fitted(TokenLimits(pair=7), 9, 9) == (3, 4), "the odd token is the document's"
    assert fitted(TokenLimits(pair=-3), 2, 2) == (0, 0)


@settings(max_examples=40)
@given(queries=FEW, documents=FEW, data=st.data())
def test_a_pairs_key_is_its_texts_and_nothing_else(
    queries: list[str], documents: list[str], data: Any
) -> None:
    rows = st.tuples(st.integers(0, len(queries) - 1), st.integers(0, len(documents) - 1))
    query, document = np.array(data.draw(st.lists(rows, min_size=1, max_size=12))).T
    pairs = TextPairs.from_texts(queries, documents, query, document)
    keys = {
        (queries[q], documents[d]): pairs.keys[pair].tobytes()
        for q, d, pair in zip(query, document, pairs.pair_of_entry, strict=True)
    }
    assert len(pairs) == len(keys) == len(set(keys.values()))
    for (text, document_text), expected in keys.items():
        assert (
            TextPairs.from_texts([text], [document_text], ints(0), ints(0)).keys[0].tobytes()
            == expected
        )


@settings(max_examples=80)
@given(st.integers(0, 20), st.integers(0, 20), st.integers(1, 24))
def test_pairs_are_cut_as_the_tokenizers_library_cuts_them(
    query: int, document: int, room: int
) -> None:
    reference = word_tokenizer()
    reference.enable_truncation(room + 3, strategy="longest_first")
    sides = reference.encode("a " * query, "a " * document).sequence_ids
    assert fitted(TokenLimits(pair=room), query, document) == (
        sides.count(0),
        sides.count(1),
    )


@pytest.mark.neural
@pytest.mark.parametrize(
    "limits",
    [
        TokenLimits(pair=20),
        TokenLimits(query=3, document=7, pair=64),
        TokenLimits(query=0, document=30, pair=20),
    ],
)
def test_texts_are_cut_behind_their_own_tokens(limits: TokenLimits, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_classifier(tmp_path))
    queries = ["Red apples", "", "a b c d e f g h i j k l m", "[SEP] what?"]
    documents = ["x y", "Grüße, naïve café!", "word " * 30, "abc def ghi jkl mno"]

    def tokens(texts: list[str]) -> list[list[int]]:
        return [list(ids) for ids in tokenizer(texts, add_special_tokens=False)["input_ids"]]

    stay = limits.fit(*(ints(*map(len, tokens(side))) for side in (queries, documents)), 3)
    fit = fit_texts(tokenizer, (queries, documents), limits, 3)
    for side, texts, counts in zip(fit, (queries, documents), stay, strict=True):
        assert tokens(side) == [
            ids[:n] for ids, n in zip(tokens(texts), counts.tolist(), strict=True)
        ]
        assert all(text.startswith(short) for text, short in zip(texts, side, strict=True))


@given(st.lists(st.floats(-800, 800), max_size=5))
def test_the_logistic_function_holds_for_numbers_of_any_size(values: list[float]) -> None:
    chances = sigmoid(np.array(values))
    assert chances.dtype == np.float64
    assert chances == pytest.approx([(1 + np.tanh(value / 2)) / 2 for value in values], abs=1e-15)
