"""Which pairs there are, what of them fits, and their tokens: as the reference libraries have it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt.models.scorer import TextPairs, TokenLimits, fit_texts
from ranktilt.models.token_counts import NO_LIMIT
from tests.rankers.tiny_rerankers import tiny_classifier

pytest.importorskip("tokenizers")

FEW = st.lists(st.sampled_from(["", "a", "b", "a b", "b a"]), min_size=1, max_size=5)


def whole(*numbers: int) -> Any:
    return np.array(numbers, dtype=np.int64)


def letters() -> Any:
    """A tokenizer of single letters, one token a word."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    made = Tokenizer(models.WordLevel({"<s>": 0, "</s>": 1, "a": 2, "b": 3}, unk_token="a"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B:1 </s>:1", special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    return made


def test_each_combination_of_texts_is_one_pair() -> None:
    found = TextPairs.of(["q", "r", "q"], ["d", "e", "d"], whole(0, 0, 1, 2, 2, 0), whole(0, 1, 0, 0, 2, 2))
    texts = [(found.queries[q], found.documents[d]) for q, d in zip(found.query, found.document, strict=True)]
    assert len(found) == 3
    assert set(texts) == {("q", "d"), ("q", "e"), ("r", "d")}
    expected = [("q", "d"), ("q", "e"), ("r", "d"), ("q", "d"), ("q", "d"), ("q", "d")]
    assert [texts[pair] for pair in found.entry] == expected


@settings(max_examples=40)
@given(queries=FEW, documents=FEW, data=st.data())
def test_a_pairs_key_is_its_texts_and_nothing_else(queries: list[str], documents: list[str], data: Any) -> None:
    size = data.draw(st.integers(1, 12))
    query = np.array([data.draw(st.integers(0, len(queries) - 1)) for _ in range(size)])
    document = np.array([data.draw(st.integers(0, len(documents) - 1)) for _ in range(size)])
    found = TextPairs.of(queries, documents, query, document)
    key = {
        (queries[q], documents[d]): found.keys[e].tobytes()
        for q, d, e in zip(query, document, found.entry, strict=True)
    }
    assert len(found) == len(key) == len(set(key.values()))
    for (one, two), expected in key.items():
        assert TextPairs.of([one], [two], whole(0), whole(0)).keys[0].tobytes() == expected


@pytest.mark.parametrize(
    ("query", "document", "room", "expected"),
    [
        (3, 4, 7, (3, 4)),
        (3, 9, 7, (3, 4)),
        (9, 3, 7, (4, 3)),
        (9, 8, 7, (4, 3)),
        (9, 9, 7, (3, 4)),
        (0, 9, 7, (0, 7)),
        (2, 2, -3, (0, 0)),
    ],
)
def test_the_longer_side_is_cut_first(query: int, document: int, room: int, expected: tuple[int, int]) -> None:
    found = TokenLimits(None, None, room).fit(whole(query), whole(document), 0)
    assert (int(found[0][0]), int(found[1][0])) == expected


@settings(max_examples=80)
@given(st.integers(0, 20), st.integers(0, 20), st.integers(1, 24))
def test_pairs_are_cut_as_the_tokenizers_library_cuts_them(query: int, document: int, room: int) -> None:
    reference = letters()
    reference.enable_truncation(room + 3, strategy="longest_first")
    sides = reference.encode("a " * query, "b " * document).sequence_ids
    found = TokenLimits(None, None, room).fit(whole(query), whole(document), 0)
    assert (int(found[0][0]), int(found[1][0])) == (sides.count(0), sides.count(1))


def test_own_limits_come_before_the_pairs() -> None:
    limits = TokenLimits(2, 5, 12)
    assert [side.tolist() for side in limits.fit(whole(1, 9, 9), whole(9, 1, 9), 3)] == [[1, 2, 2], [5, 1, 5]]
    assert [side.tolist() for side in TokenLimits(2, 8, 10).fit(whole(9), whole(9), 3)] == [[2], [5]]
    assert [side.tolist() for side in TokenLimits(None, None, NO_LIMIT).fit(whole(700), whole(9000), 3)] == [
        [700],
        [9000],
    ]


@pytest.mark.neural
@pytest.mark.parametrize("limits", [TokenLimits(None, None, 20), TokenLimits(3, 7, 64), TokenLimits(0, 30, 20)])
def test_texts_are_cut_behind_their_own_tokens(limits: TokenLimits, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_classifier(tmp_path))
    queries = ["Red apples", "", "a b c d e f g h i j k l m", "[SEP] what?"]
    documents = ["x y", "Grüße, naïve café!", "word " * 30, "abc def ghi jkl mno"]

    def tokens(texts: list[str]) -> list[list[int]]:
        return [list(ids) for ids in tokenizer(texts, add_special_tokens=False)["input_ids"]]

    counts = [whole(*map(len, tokens(side))) for side in (queries, documents)]
    kept = limits.fit(counts[0], counts[1], 3)
    found = fit_texts(tokenizer, (queries, documents), limits, 3)
    for side, texts, count in zip(found, (queries, documents), kept, strict=True):
        assert tokens(side) == [ids[:n] for ids, n in zip(tokens(texts), count.tolist(), strict=True)]
        assert all(text.startswith(short) for text, short in zip(texts, side, strict=True))
