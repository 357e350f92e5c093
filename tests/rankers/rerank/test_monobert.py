"""monoBERT: the probability of relevance that transformers computes, from nothing but a BERT with two labels."""

from pathlib import Path

import numpy as np
import pytest

from ranktilt import UserError
from ranktilt.rankers.rerank.cross_encoder import MonoBERT
from tests.rankers.rerank.test_cross_encoder import DOCUMENTS, QUERIES, combined, scores
from tests.rankers.tiny_rerankers import LENGTH, change, tiny_classifier


@pytest.mark.neural
@pytest.mark.parametrize("seed", [3, 4])
def test_the_score_is_the_softmax_of_the_second_logit(tmp_path: Path, seed: int) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = tiny_classifier(tmp_path, labels=2, seed=seed)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    expected = np.empty((len(QUERIES), len(DOCUMENTS)))
    for q, query in enumerate(QUERIES):
        for d, document in enumerate(DOCUMENTS):
            features = tokenizer([query], [document], truncation=True, max_length=LENGTH, return_tensors="pt")
            with torch.inference_mode():
                expected[q, d] = torch.softmax(model(**features).logits.double(), dim=1)[0, 1]
    assert expected.std() > 0.05
    assert scores(MonoBERT(str(folder), precision="float32")) == pytest.approx(expected, abs=1e-5)


@pytest.mark.neural
def test_what_the_labels_are_called_turns_the_scores_around(tmp_path: Path) -> None:
    folder = tiny_classifier(tmp_path, labels=2, seed=3)
    usual = scores(MonoBERT(str(folder), precision="float32"))
    change(folder / "config.json", id2label={"0": "relevant", "1": "irrelevant"}, label2id=None)
    assert scores(MonoBERT(str(folder), precision="float32")) == pytest.approx(1 - usual, abs=1e-5)


@pytest.mark.neural
def test_another_classifier_is_refused(tmp_path: Path) -> None:
    folder = tiny_classifier(tmp_path, labels=1)
    with pytest.raises(UserError, match=rf"got 'bert' with 1 label; cross-encoder:{folder} takes it$"):
        MonoBERT(str(folder)).rank(*combined(QUERIES, DOCUMENTS))
    change(folder / "config.json", model_type="electra", architectures=["ElectraForSequenceClassification"])
    with pytest.raises(UserError, match="expected a BERT with 2 labels for monobert, got 'electra' with 1 label"):
        MonoBERT(str(folder)).scorer()
