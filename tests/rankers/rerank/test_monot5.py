"""monoT5: the probability of true that transformers computes for the literal prompt, which always stays whole."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktilt import UserError
from ranktilt.models.scorer import TextPairs, fit_texts
from ranktilt.rankers.rerank.monot5 import LIMIT, MonoT5
from tests.rankers.rerank.test_cross_encoder import QUERIES, scores
from tests.rankers.tiny_rerankers import ANSWERS, change, tiny_classifier, tiny_t5
from tests.refusals import refused

DOCUMENTS = [
    "red apples grow on trees", "", "x", "Two  blanks,\nand a line!", "Relevant: Query: Document:", "ü", "</s> a",
]  # fmt: skip
LONG = ["abc " * 70, "query " * 40]


@pytest.fixture(scope="session")
def t5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_t5(tmp_path_factory.mktemp("t5"), limit=150)


def exact(folder: Path, **options: Any) -> MonoT5:
    return MonoT5(str(folder), precision="float32", **options)


def probability(folder: Path, prompts: list[list[int]]) -> np.ndarray[Any, Any]:
    """P(true) after each prompt, of true and false alone, one prompt at a time."""
    import torch
    from transformers import AutoTokenizer, T5ForConditionalGeneration

    model = T5ForConditionalGeneration.from_pretrained(folder).eval()
    answers = AutoTokenizer.from_pretrained(folder).convert_tokens_to_ids(list(ANSWERS))
    found = []
    for ids in prompts:
        with torch.inference_mode():
            out = model(input_ids=torch.tensor([ids]), decoder_input_ids=torch.tensor([[0]])).logits[0, 0]
        found.append(torch.softmax(out[answers].double(), dim=0)[0].item())
    return np.array(found)


def tokens(folder: Path, text: str) -> list[int]:
    from transformers import AutoTokenizer

    return list(AutoTokenizer.from_pretrained(folder)(text, verbose=False)["input_ids"])


@pytest.mark.neural
def test_the_score_is_the_probability_of_true_after_the_literal_prompt(t5: Path) -> None:
    prompts = [f"Query: {query} Document: {document} Relevant:" for query in QUERIES for document in DOCUMENTS]
    expected = probability(t5, [tokens(t5, prompt) for prompt in prompts])
    assert expected.std() > 0.02
    found = scores(exact(t5), documents=DOCUMENTS)
    assert found.ravel() == pytest.approx(expected, abs=1e-5)


@pytest.mark.neural
def test_a_long_document_is_cut_and_the_prompt_stays(t5: Path) -> None:
    end = tokens(t5, "Relevant:")
    for query in ("red apples", "Grüße, café?"):
        front = tokens(t5, f"Query: {query} Document: {LONG[0]}")[:-1]
        assert len(front) > 150
        whole = front[: 150 - len(end)] + end
        assert scores(exact(t5), [query], [LONG[0]])[0, 0] == pytest.approx(probability(t5, [whole])[0], abs=1e-5)


@pytest.mark.neural
def test_a_query_of_more_than_half_the_room_is_cut_too(t5: Path) -> None:
    before, between, behind = (tokens(t5, part)[:-1] for part in ("Query:", "Document:", "Relevant:"))
    query, document = (tokens(t5, text)[:-1] for text in (LONG[1], LONG[0]))
    room = 150 - len(before) - len(between) - len(behind) - 1
    half = room // 2
    assert len(document) > len(query) > room - half  # the document is longer here, and so gets the odd token
    whole = before + query[:half] + between + document[: room - half] + behind + [1]
    assert len(whole) == 150
    assert scores(exact(t5), [LONG[1]], [LONG[0]])[0, 0] == pytest.approx(probability(t5, [whole])[0], abs=1e-5)


@pytest.mark.neural
@pytest.mark.parametrize(("query", "options"), [("red", {}), (LONG[1], {}), (LONG[1], {"max_document_tokens": 10})])
def test_what_is_said_to_be_cut_is_what_is_cut(t5: Path, query: str, options: dict[str, Any]) -> None:
    documents = ["abc " * n for n in (0, 1, 3, 10, 20, 24, 25, 26, 27, 28, 29, 30, 31, 40, 60)]
    pairs = TextPairs.of([query], documents, np.zeros(len(documents), dtype=np.int64), np.arange(len(documents)))
    scorer: Any = exact(t5, **options).scorer()
    around = scorer.special_token_count()
    _, read = fit_texts(scorer.tokenizer, ([query] * len(pairs), pairs.documents), scorer.limits, around)
    cut = [text != whole for text, whole in zip(read, pairs.documents, strict=True)]
    assert scorer.truncated(pairs, "").tolist() == cut
    assert 0 < sum(cut) < len(pairs)


@pytest.mark.neural
def test_other_answers_are_other_scores(tmp_path: Path) -> None:
    folder = tiny_t5(tmp_path, answers=("▁true", "▁false", "▁oui", "▁non"))
    usual = scores(exact(folder), documents=DOCUMENTS)
    other = scores(exact(folder, true_token="oui", false_token="non"), documents=DOCUMENTS)
    turned = scores(exact(folder, true_token="▁false", false_token="true"), documents=DOCUMENTS)
    assert np.abs(usual - other).max() > 0.01
    assert turned == pytest.approx(1 - usual, abs=1e-6)


@pytest.mark.neural
def test_what_is_no_monot5_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"of its family, for monot5, got BertForSequenceClassification$"):
        exact(tiny_classifier(tmp_path / "bert")).scorer()
    folder = tiny_t5(tmp_path, answers=("▁oui", "▁non"))
    with refused(f"{folder}: its vocabulary has no token '▁true'; set true_token and false_token"):
        scores(exact(folder))
    for named, expected in ((150, 150), (10**30, LIMIT), (None, LIMIT)):
        change(folder / "tokenizer_config.json", model_max_length=named)
        assert exact(folder).scorer().limits.pair == expected
    change(folder / "config.json", decoder_start_token_id=None)
    with pytest.raises(UserError, match="no decoder_start_token_id"):
        exact(folder).scorer()
    change(folder / "config.json", architectures=["T5EncoderModel"])
    with pytest.raises(UserError, match=r"of its family, for monot5, got T5EncoderModel$"):
        exact(folder).scorer()
