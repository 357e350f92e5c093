"""Which pairs there are, what of them fits, and their tokens: as the reference libraries have it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt.models.pairs import PairInputs, PairTemplate, TextPairs, Tokenized, TokenLimits, fit_pairs, pair_template
from ranktilt.models.token_counts import NO_LIMIT
from tests.rankers.tiny_rerankers import tiny_classifier

tokenizers = pytest.importorskip("tokenizers")

FEW = st.lists(st.sampled_from(["", "a", "b", "a b", "b a"]), min_size=1, max_size=5)


def whole(*numbers: int) -> Any:
    return np.array(numbers, dtype=np.int64)


def letters(n: int, *, roberta: bool = False) -> Any:
    """A tokenizer of single letters, one token a word."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    vocabulary = {"<s>": 0, "</s>": 1, "?": 2, **{chr(97 + i): 3 + i for i in range(n)}}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="?"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if roberta:
        made.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0))
    else:
        made.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>",
            pair="<s> $A </s> $B:1 </s>:1",
            special_tokens=[("<s>", 0), ("</s>", 1)],
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
        (8, 9, 7, (3, 4)),
        (9, 9, 7, (3, 4)),
        (0, 9, 7, (0, 7)),
        (2, 2, 0, (0, 0)),
        (2, 2, -3, (0, 0)),
    ],
)
def test_the_longer_side_is_cut_first(query: int, document: int, room: int, expected: tuple[int, int]) -> None:
    found = fit_pairs(whole(query), whole(document), room)
    assert (int(found[0][0]), int(found[1][0])) == expected


@settings(max_examples=80)
@given(st.integers(0, 20), st.integers(0, 20), st.integers(1, 24))
def test_pairs_are_cut_as_the_tokenizers_library_cuts_them(query: int, document: int, room: int) -> None:
    reference = letters(2)
    reference.enable_truncation(room + 3, strategy="longest_first")
    sides = reference.encode("a " * query, "b " * document).sequence_ids
    found = fit_pairs(whole(query), whole(document), room)
    assert (int(found[0][0]), int(found[1][0])) == (sides.count(0), sides.count(1))


def test_own_limits_come_before_the_pairs() -> None:
    limits = TokenLimits(2, 5, 12)
    assert [side.tolist() for side in limits.fit(whole(1, 9, 9), whole(9, 1, 9), 3)] == [[1, 2, 2], [5, 1, 5]]
    assert [side.tolist() for side in TokenLimits(2, 8, 10).fit(whole(9), whole(9), 3)] == [[2], [5]]
    assert [side.tolist() for side in TokenLimits(None, None, NO_LIMIT).fit(whole(700), whole(9000), 3)] == [
        [700],
        [9000],
    ]


@pytest.mark.parametrize(
    ("roberta", "typed", "expected"),
    [
        (False, True, PairTemplate((0,), (1,), (1,), (0, 0, 0, 1, 1))),
        (False, False, PairTemplate((0,), (1,), (1,))),
        (True, True, PairTemplate((0,), (1, 1), (1,), (0, 0, 0, 0, 0))),
    ],
)
def test_the_template_is_the_tokenizers(roberta: bool, typed: bool, expected: PairTemplate) -> None:
    assert pair_template(letters(3, roberta=roberta), typed=typed) == expected


def test_a_template_is_found_where_nothing_stands_around() -> None:
    plain = letters(3)
    plain.post_processor = tokenizers.processors.TemplateProcessing(single="$A", pair="$A $B", special_tokens=[])
    assert pair_template(plain, typed=False) == PairTemplate((), (), ())


@pytest.mark.parametrize("pair", ["<s> $B $A </s>", "$A $B $A"])
def test_a_template_of_another_order_is_none(pair: str) -> None:
    strange = letters(3)
    special = [("<s>", 0), ("</s>", 1)]
    strange.post_processor = tokenizers.processors.TemplateProcessing(single="$A", pair=pair, special_tokens=special)
    assert pair_template(strange, typed=True) is None


def test_texts_are_kept_to_their_first_tokens_and_counted_whole() -> None:
    texts = ["a b c", "", "c"] * 400
    found = Tokenized.of(letters(3), texts, 2)
    assert found.counts.tolist() == [3, 0, 1] * 400
    assert [found.first(i, 9).tolist() for i in (0, 1, 2, 1197)] == [[3, 4], [], [5], [3, 4]]
    assert found.first(0, 1).tolist() == [3]
    assert Tokenized.of(letters(3), texts, None).first(1197, 9).tolist() == [3, 4, 5]


@pytest.mark.neural
@pytest.mark.parametrize(
    ("limits", "left"),
    [
        (TokenLimits(None, None, 64), True),
        (TokenLimits(None, None, 20), False),
        (TokenLimits(3, 7, 64), False),
        (TokenLimits(9, 30, 20), True),
    ],
)
def test_batches_are_what_transformers_makes_of_the_pairs(limits: TokenLimits, left: bool, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_classifier(tmp_path))
    queries = ["Red apples", "", "a b c d e f g h i j k l m", "[SEP] what?"]
    documents = ["x " * n for n in (0, 1, 6, 7, 8, 16, 40, 70)] + ["Grüße, naïve café!", "[MASK] of [CLS]"]
    combined = np.array([(q, d) for q in range(len(queries)) for d in range(len(documents))])
    pairs = TextPairs.of(queries, documents, combined[:, 0], combined[:, 1])

    def shortened(texts: list[str], limit: int | None) -> list[str]:
        if limit is None:
            return texts
        found = (tokenizer.backend_tokenizer.encode(text, add_special_tokens=False).offsets[:limit] for text in texts)
        return [text[: offsets[-1][1] if offsets else 0] for text, offsets in zip(texts, found, strict=True)]

    tokenizer.padding_side = "left" if left else "right"
    one, two = shortened(queries, limits.query), shortened(documents, limits.document)
    expected = tokenizer(
        [one[q] for q in pairs.query],
        [two[d] for d in pairs.document],
        truncation="longest_first",
        max_length=limits.pair,
        padding=True,
        return_tensors="np",
    )
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    template = pair_template(tokenizer.backend_tokenizer, typed=True)
    assert template is not None
    inputs = PairInputs.of(tokenizer.backend_tokenizer, pairs, template, limits)
    found = inputs.batch(np.arange(len(pairs)), tokenizer.pad_token_id, left=left)
    assert set(found) == set(expected)
    for name, values in found.items():
        assert values.dtype == np.int64
        assert np.array_equal(values, expected[name])
    assert inputs.lengths.tolist() == expected["attention_mask"].sum(axis=1).tolist()
