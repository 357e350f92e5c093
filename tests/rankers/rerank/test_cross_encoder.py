"""Cross-encoders, monoBERT and monoT5: the scores of the reference libraries, kept by content; no
other models.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktilt import Collection, Run, UserError
from ranktilt.data.cache import KEY_BYTES
from ranktilt.data.inventory import cache_contents
from ranktilt.models import batching
from ranktilt.models.scorer import TextPairs, fit_texts
from ranktilt.rankers.rerank.cross_encoder import CrossEncoder, MonoBERT
from ranktilt.rankers.rerank.monot5 import LIMIT, MonoT5
from tests.rankers.tiny import with_weights
from tests.rankers.tiny_rerankers import ANSWERS, change, tiny_classifier, tiny_t5
from tests.refusals import refused
from tests.toy import collection_of, run_of

pytestmark = pytest.mark.neural

Texts = Sequence[str]
QUERIES = ["red apples", "", "Grüße, café?", "a b c d e f g h i j k l m n o p q r s t u v w x y z"]
DOCUMENTS = [
    "red apples grow on trees",
    "",
    "x",
    "a b c d e f g h",
    " ".join("word" * 3),
    "[SEP] [CLS]",
    "a " * 90,
]


@pytest.fixture(scope="session")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_classifier(tmp_path_factory.mktemp("one"))


def candidates_of(queries: Texts, documents: Texts) -> tuple[Collection, Run]:
    """A collection of these texts, and a run of all documents for each query."""
    docs = [{"id": f"d{n}", "text": text} for n, text in enumerate(documents)]
    names = {f"q{n}": text for n, text in enumerate(queries)}
    collection = collection_of(docs, names, {query: {"d0": 1} for query in names})
    return collection, run_of(
        collection, {query: dict.fromkeys(collection.ids, 0.0) for query in names}
    )


def scores(
    reranker: CrossEncoder, queries: Texts = QUERIES, documents: Texts = DOCUMENTS
) -> np.ndarray[Any, Any]:
    """Scores of each query and each document by a re-ranker."""
    run = reranker.rank(*candidates_of(queries, documents))
    table = np.full((len(queries), len(documents)), np.nan)
    table[run.entry_queries, run.docs] = run.scores
    return table


def reference(
    folder: Path, queries: Texts = QUERIES, documents: Texts = DOCUMENTS, **options: Any
) -> Any:
    """Scores by sentence-transformers' own class."""
    from sentence_transformers import CrossEncoder as Reference

    pairs = [(query, document) for query in queries for document in documents]
    scored = Reference(str(folder), device="cpu").predict(pairs, show_progress_bar=False, **options)
    return np.asarray(scored, dtype=np.float64).reshape(len(queries), len(documents), -1)


def exact(folder: Path, **options: Any) -> CrossEncoder:
    return CrossEncoder(str(folder), precision="float32", **options)


def test_one_label_scores_as_the_reference_does_and_so_does_a_folder_that_it_saved(
    classifier: Path, tmp_path: Path
) -> None:
    expected = reference(classifier)[:, :, 0]
    assert expected.std() > 0.05
    assert scores(exact(classifier)) == pytest.approx(expected, abs=1e-5)
    from sentence_transformers import CrossEncoder as Reference
    from torch.nn import Identity

    saved = Reference(str(classifier), device="cpu", activation_fn=Identity(), max_length=20)
    saved.prompts, saved.default_prompt_name = {"ask": "please: "}, "ask"
    saved.save_pretrained(str(tmp_path))
    expected = reference(tmp_path)[:, :, 0]
    assert np.abs(expected).max() > 1
    assert scores(exact(tmp_path)) == pytest.approx(expected, abs=2e-5)
    assert exact(tmp_path).scorer().limits.pair == 20


def test_two_labels_score_the_probability_of_relevance_and_monobert_takes_no_other(
    tmp_path: Path, classifier: Path
) -> None:
    folder = tiny_classifier(tmp_path, labels=2, seed=3)
    expected = reference(folder, apply_softmax=True)[:, :, 1]
    assert expected.std() > 0.05
    bert = MonoBERT(str(folder), precision="float32")
    assert scores(exact(folder)) == pytest.approx(expected, abs=1e-5)
    assert scores(bert) == pytest.approx(expected, abs=1e-5)
    change(folder / "config.json", id2label={"0": "relevant", "1": "irrelevant"}, label2id=None)
    assert scores(bert) == pytest.approx(1 - expected, abs=1e-5)
    with pytest.raises(
        UserError, match=rf"got 'bert' with 1 label; cross-encoder:{classifier} takes it$"
    ):
        MonoBERT(str(classifier)).rank(*candidates_of(QUERIES, DOCUMENTS))
    folder = tiny_classifier(tmp_path / "electra")
    change(
        folder / "config.json",
        model_type="electra",
        architectures=["ElectraForSequenceClassification"],
    )
    with pytest.raises(
        UserError, match="expected a BERT with 2 labels for monobert, got 'electra' with 1 label"
    ):
        MonoBERT(str(folder)).scorer()


def test_the_models_own_activation_is_applied(tmp_path: Path) -> None:
    for value in (
        {"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"},
        {"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Tanh"}},
    ):
        folder = tiny_classifier(tmp_path)
        change(folder / "config.json", **value)
        assert scores(exact(folder)) == pytest.approx(reference(folder)[:, :, 0], abs=2e-5)


def test_own_limits_cut_as_if_the_texts_were_shorter(tmp_path: Path) -> None:
    folder = tiny_classifier(tmp_path, length=300)
    query, document = [" ".join("abcdefg"[i % 7] for i in range(n)) for n in (40, 250)]
    for options, short in (
        (
            {"limits": "paper"},
            (query[: 2 * 30], document[: 2 * 200]),
        ),  # a word is a letter and a blank
        ({"max_query_tokens": 3, "max_document_tokens": 50}, (query[: 2 * 3], document[: 2 * 50])),
    ):
        expected = reference(folder, [short[0]], [short[1]])[:, :, 0]
        assert scores(exact(folder, **options), [query], [document]) == pytest.approx(
            expected, abs=1e-5
        )


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-5), ("bfloat16", 0.05)])
def test_sizes_of_batches_and_the_cache_change_a_score_within_the_stated_tolerance(
    classifier: Path,
    precision: str,
    tolerance: float,
    own_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ranker = CrossEncoder(str(classifier), precision=precision)
    usual = scores(ranker)
    monkeypatch.setenv("RANKTILT_CACHE", str(own_cache / "pieces"))
    monkeypatch.setattr(batching, "WRITE_EVERY", 5)
    monkeypatch.setattr(batching, "MOST_ROWS", 2)
    first = scores(ranker, QUERIES[:1], DOCUMENTS[2:3])
    pieces = scores(ranker)
    assert pieces[:1, 2:3].tobytes() == first.tobytes()
    assert pieces == pytest.approx(usual, abs=tolerance)
    assert pieces == pytest.approx(scores(exact(classifier)), abs=tolerance)


def test_the_cache_holds_one_raw_score_a_pair(classifier: Path, own_cache: Path) -> None:
    fingerprint = exact(classifier).scorer().fingerprint
    assert exact(classifier, k=3, text="title").scorer().fingerprint == fingerprint
    assert exact(classifier, max_document_tokens=9).scorer().fingerprint != fingerprint
    scores(exact(classifier))
    assert (own_cache / "pairs" / fingerprint).is_dir()
    scores(exact(classifier, max_document_tokens=9))
    keys = [
        sum(file.stat().st_size for file in row.folder.glob("*.keys"))
        for row in cache_contents()[:2]
    ]
    assert keys == 2 * [KEY_BYTES * len(QUERIES) * len(DOCUMENTS)]


def headless(weights: dict[str, Any]) -> dict[str, Any]:
    return {name: weight for name, weight in weights.items() if not name.startswith("classifier")}


def spoiled(weights: dict[str, Any]) -> dict[str, Any]:
    return {**weights, "classifier.bias": weights["classifier.bias"] + float("nan")}


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda folder: with_weights(folder, headless),
            "its weights lack classifier.bias and 1 more",
        ),
        (lambda folder: with_weights(folder, spoiled), "the model gives NaN or infinite scores"),
        (
            lambda folder: change(folder / "config.json", vocab_size=80),
            "have another shape than its config.json says",
        ),
        (lambda folder: (folder / "model.safetensors").write_text("x"), "cannot be loaded"),
        (lambda folder: (folder / "tokenizer.json").write_text("{}"), "tokenizer"),
    ],
)
def test_a_damaged_model_is_one_clear_line(tmp_path: Path, damage: Any, message: str) -> None:
    folder = tiny_classifier(tmp_path)
    damage(folder)
    with pytest.raises(UserError, match=rf"^{folder}[^\n]*{message}[^\n]*\Z"):
        scores(exact(folder))


# monoT5: the probability of true that transformers computes for the literal prompt, which always
# stays whole


PROMPTED = [
    "red apples grow on trees",
    "",
    "x",
    "Two  blanks,\nand a line!",
    "Relevant: Query: Document:",
    "ü",
    "</s> a",
]
LONG = ["abc " * 70, "query " * 40]


@pytest.fixture(scope="session")
def t5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_t5(tmp_path_factory.mktemp("t5"), limit=150)


def exact_t5(folder: Path, **options: Any) -> MonoT5:
    return MonoT5(str(folder), precision="float32", **options)


def probability(folder: Path, prompts: list[list[int]]) -> np.ndarray[Any, Any]:
    """P(true) after each prompt, of true and false alone, one prompt at a time."""
    import torch
    from transformers import AutoTokenizer, T5ForConditionalGeneration

    model = T5ForConditionalGeneration.from_pretrained(folder).eval()
    answers = AutoTokenizer.from_pretrained(folder).convert_tokens_to_ids(list(ANSWERS))
    chances = []
    for ids in prompts:
        with torch.inference_mode():
            out = model(
                input_ids=torch.tensor([ids]), decoder_input_ids=torch.tensor([[0]])
            ).logits[0, 0]
        chances.append(torch.softmax(out[answers].double(), dim=0)[0].item())
    return np.array(chances)


def tokens(folder: Path, text: str) -> list[int]:
    from transformers import AutoTokenizer

    return list(AutoTokenizer.from_pretrained(folder)(text, verbose=False)["input_ids"])


def test_the_score_is_the_probability_of_true_after_the_literal_prompt_or_of_other_answers(
    t5: Path, tmp_path: Path
) -> None:
    prompts = [
        f"Query: {query} Document: {document} Relevant:"
        for query in QUERIES
        for document in PROMPTED
    ]
    expected = probability(t5, [tokens(t5, prompt) for prompt in prompts])
    assert expected.std() > 0.02
    assert scores(exact_t5(t5), documents=PROMPTED).ravel() == pytest.approx(expected, abs=1e-5)
    folder = tiny_t5(tmp_path, answers=("▁true", "▁false", "▁oui", "▁non"))
    usual = scores(exact_t5(folder), documents=PROMPTED)
    renamed = scores(exact_t5(folder, true_token="oui", false_token="non"), documents=PROMPTED)
    turned = scores(exact_t5(folder, true_token="▁false", false_token="true"), documents=PROMPTED)
    assert np.abs(usual - renamed).max() > 0.01
    assert turned == pytest.approx(1 - usual, abs=1e-6)


def test_a_long_document_is_cut_and_a_query_of_more_than_half_the_room_too_and_the_prompt_stays(
    t5: Path,
) -> None:
    end = tokens(t5, "Relevant:")
    for query in ("red apples", "Grüße, café?"):
        front = tokens(t5, f"Query: {query} Document: {LONG[0]}")[:-1]
        assert len(front) > 150
        prompt = front[: 150 - len(end)] + end
        assert scores(exact_t5(t5), [query], [LONG[0]])[0, 0] == pytest.approx(
            probability(t5, [prompt])[0], abs=1e-5
        )
    before, between, behind = (
        tokens(t5, part)[:-1] for part in ("Query:", "Document:", "Relevant:")
    )
    query, document = (tokens(t5, text)[:-1] for text in (LONG[1], LONG[0]))
    room = 150 - len(before) - len(between) - len(behind) - 1
    half = room // 2
    assert (
        len(document) > len(query) > room - half
    )  # the document is longer here, and so gets the odd token
    prompt = before + query[:half] + between + document[: room - half] + behind + [1]
    assert len(prompt) == 150
    assert scores(exact_t5(t5), [LONG[1]], [LONG[0]])[0, 0] == pytest.approx(
        probability(t5, [prompt])[0], abs=1e-5
    )


@pytest.mark.parametrize(
    ("query", "options"), [("red", {}), (LONG[1], {}), (LONG[1], {"max_document_tokens": 10})]
)
def test_what_is_said_to_be_cut_is_what_is_cut(
    t5: Path, query: str, options: dict[str, Any]
) -> None:
    documents = ["abc " * n for n in (0, 1, 3, 10, 20, 24, 25, 26, 27, 28, 29, 30, 31, 40, 60)]
    pairs = TextPairs.from_texts(
        [query], documents, np.zeros(len(documents), dtype=np.int64), np.arange(len(documents))
    )
    scorer: Any = exact_t5(t5, **options).scorer()
    around = scorer.special_token_count()
    _, read = fit_texts(
        scorer.tokenizer, ([query] * len(pairs), pairs.documents), scorer.limits, around
    )
    cut = [text != document for text, document in zip(read, pairs.documents, strict=True)]
    assert scorer.truncated(pairs, "").tolist() == cut
    assert 0 < sum(cut) < len(pairs)


def test_what_is_no_monot5_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"of its family, for monot5, got BertForSequenceClassification$"
    ):
        exact_t5(tiny_classifier(tmp_path / "bert")).scorer()
    folder = tiny_t5(tmp_path, answers=("▁oui", "▁non"))
    with refused(f"{folder}: its vocabulary has no token '▁true'; set true_token and false_token"):
        scores(exact_t5(folder))
    for saved, expected in ((150, 150), (10**30, LIMIT), (None, LIMIT)):
        change(folder / "tokenizer_config.json", model_max_length=saved)
        assert exact_t5(folder).scorer().limits.pair == expected
    change(folder / "config.json", decoder_start_token_id=None)
    with pytest.raises(UserError, match="no decoder_start_token_id"):
        exact_t5(folder).scorer()
    change(folder / "config.json", architectures=["T5EncoderModel"])
    with pytest.raises(UserError, match=r"of its family, for monot5, got T5EncoderModel$"):
        exact_t5(folder).scorer()
