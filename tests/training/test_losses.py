"""The debiased loss and the evaluator: by hand, with other losses, in sentence-transformers' own
trainers.
"""

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktilt import Collection, audit, ranker
from ranktilt.training import DebiasedLoss, SourceBiasEvaluator
from tests.house import tree
from tests.rankers.tiny import tiny_model
from tests.rankers.tiny_rerankers import tiny_classifier
from tests.refusals import refused
from tests.training.material import WORDS, human_part, marked, marked_mix

pytestmark = pytest.mark.neural
torch = pytest.importorskip("torch")
library = pytest.importorskip("sentence_transformers")
bi_losses = pytest.importorskip("sentence_transformers.sentence_transformer.losses")
cross_losses = pytest.importorskip("sentence_transformers.cross_encoder.losses")

QUERIES = ["abc", "def", "ghi", "jkl"]
HUMAN = ["abc de", "def ab", "hig k", "lj kk"]
LLM = ["aabc dd", "dee fab", "", "jkl kl"]
NEGATIVES = ["xyz", "uvw a", "rst", "opq b"]
TWINS = np.array([1, 1, 0, 1], dtype=bool)
COLUMNS = [QUERIES, HUMAN, LLM, NEGATIVES]
ALPHA = 0.7


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A bi-encoder in float64, compared by dot product."""
    folder = tiny_model(tmp_path_factory.mktemp("dot"), similarity="dot")
    return library.SentenceTransformer(str(folder), device="cpu").double().eval()


@pytest.fixture(scope="module")
def reranker(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return (
        library.CrossEncoder(str(tiny_classifier(tmp_path_factory.mktemp("pairs"))), device="cpu")
        .double()
        .eval()
    )


def features(model: Any, columns: list[list[str]] = COLUMNS, **options: Any) -> list[Any]:
    return [model.preprocess(column, **options) for column in columns]


def gradient(model: Any, loss: Any) -> Any:
    """The gradient of a loss with respect to all weights, and its value."""
    model.zero_grad(set_to_none=True)
    loss.backward()
    parts = [
        p.grad.flatten() if p.grad is not None else torch.zeros(p.numel()).double()
        for p in model.parameters()
    ]
    return torch.cat(parts)


def pulled_back(model: Any, outputs: list[Any], slopes: list[np.ndarray]) -> Any:
    """The gradient with respect to all weights, from what is known by hand: slopes of the loss at
    the outputs.
    """
    pairs = zip(outputs, slopes, strict=True)
    return gradient(model, sum((output * torch.from_numpy(slope)).sum() for output, slope in pairs))


def cross_entropy(scores: np.ndarray, right: np.ndarray) -> tuple[float, np.ndarray]:
    """Mean cross-entropy and its slope at the scores, by hand."""
    chances, rows = np.exp(scores - scores.max(axis=1, keepdims=True)), np.arange(len(scores))
    chances /= chances.sum(axis=1, keepdims=True)
    value = -np.log(chances[rows, right]).mean()
    chances[rows, right] -= 1
    return float(value), chances / len(scores)


def code_by_hand(tables: list[np.ndarray]) -> tuple[float, list[np.ndarray]]:
    """The released loss and its slopes at the scores: human documents, twins and negatives by
    query.
    """
    rows, same_row = np.arange(4), np.eye(4, dtype=bool)
    human, llm, hard = (table.copy() for table in tables)
    llm[:, ~TWINS] = -np.inf
    first, slope = cross_entropy(np.hstack([human, np.where(same_row, -np.inf, llm), hard]), rows)
    slopes = np.split(slope, 3, axis=1)
    second, slope = cross_entropy(
        np.hstack([llm, np.where(same_row, -np.inf, human), hard])[TWINS], rows[TWINS]
    )
    of_llm, of_human, of_hard = np.split(slope, 3, axis=1)
    for total, part in zip(slopes, (of_human, of_llm, of_hard), strict=True):
        total[TWINS] += part
    gap = np.where(TWINS, llm.diagonal() - human.diagonal(), -1)
    over = (gap > 0) * ALPHA / TWINS.sum()
    slopes[0] -= np.diag(over)
    slopes[1] += np.diag(over)
    return first + second + float((over * np.maximum(gap, 0)).sum()), slopes


def test_gradient_of_the_paper_by_hand(encoder: Any) -> None:
    vectors = [encoder(column)["sentence_embedding"] for column in features(encoder)]
    query, human, llm, hard = (side.detach().numpy() for side in vectors)
    value, slope = cross_entropy(0.1 * query @ np.vstack([human, hard]).T, np.arange(4))
    gap = ((llm - human) * query).sum(axis=1)
    over = ((gap > 0) & TWINS)[:, None] * ALPHA
    assert 0 < over.sum() < ALPHA * TWINS.sum()  # some rows break the constraint, and some keep it
    slopes = [
        0.1 * slope @ np.vstack([human, hard]) + over * (llm - human),
        0.1 * slope[:, :4].T @ query - over * query,
        over * query,
        0.1 * slope[:, 4:].T @ query,
    ]
    check_dot_loss(
        encoder, "paper", value + (over[:, 0] * gap).sum(), pulled_back(encoder, vectors, slopes)
    )


def check_dot_loss(encoder: Any, variant: str, value: float, slope: Any) -> None:
    """Compare the debiased loss over dot products, scaled by 0.1, and its gradient."""
    inner = bi_losses.MultipleNegativesRankingLoss(
        encoder, scale=0.1, similarity_fct=library.util.dot_score
    )
    loss = DebiasedLoss(encoder, inner, alpha=ALPHA, variant=variant)(features(encoder), None)
    assert loss.item() == pytest.approx(value, rel=1e-12)
    torch.testing.assert_close(gradient(encoder, loss), slope, rtol=1e-9, atol=1e-12)


def test_gradient_of_the_released_code_by_hand(encoder: Any) -> None:
    vectors = [encoder(column)["sentence_embedding"] for column in features(encoder)]
    query, *documents = (side.detach().numpy() for side in vectors)
    value, tables = code_by_hand([0.1 * query @ side.T for side in documents])
    slopes = [0.1 * sum(table @ side for table, side in zip(tables, documents, strict=True))]
    slopes += [0.1 * table.T @ query for table in tables]
    check_dot_loss(encoder, "code", value, pulled_back(encoder, vectors, slopes))


def logits(model: Any, queries: list[str], documents: list[str]) -> Any:
    return model(model.preprocess(list(zip(queries, documents, strict=True))))["scores"].view(-1)


def test_gradient_of_the_paper_by_hand_of_a_cross_encoder(reranker: Any) -> None:
    labels = np.array([1.0, 0.0, 1.0, 1.0])
    human, llm = logits(reranker, QUERIES, HUMAN), logits(reranker, QUERIES, LLM)
    of_human, of_llm = human.detach().numpy(), llm.detach().numpy()
    gap = of_llm - of_human
    over = ((gap > 0) & TWINS) * ALPHA
    assert 0 < over.sum() < ALPHA * TWINS.sum()
    chance = 1 / (1 + np.exp(-of_human))
    value = (
        -(labels * np.log(chance) + (1 - labels) * np.log(1 - chance)).mean() + (over * gap).sum()
    )
    expected = pulled_back(reranker, [human, llm], [(chance - labels) / 4 - over, over])
    loss = DebiasedLoss(reranker, cross_losses.BinaryCrossEntropyLoss(reranker), alpha=ALPHA)
    debiased = loss(COLUMNS[:3], torch.from_numpy(labels))
    assert debiased.item() == pytest.approx(value, rel=1e-6)
    torch.testing.assert_close(gradient(reranker, debiased), expected, rtol=1e-6, atol=1e-8)


MARGINS = torch.tensor([0.5, 1.0, -0.5, 0.25]).double()
GRADES = torch.tensor([1.0, 0.0, 0.5, 0.25]).double()
WRAPPED = [
    ("MultipleNegativesRankingLoss", {}, 4, None),
    ("CachedMultipleNegativesRankingLoss", {"mini_batch_size": 3}, 4, None),
    ("MarginMSELoss", {}, 4, MARGINS),
    ("TripletLoss", {}, 4, None),
    ("CoSENTLoss", {}, 3, GRADES),
]


@pytest.mark.parametrize(
    ("name", "options", "columns", "labels"), WRAPPED, ids=[case[0] for case in WRAPPED]
)
def test_a_bi_encoders_losses_fit(
    encoder: Any, name: str, options: dict[str, Any], columns: int, labels: Any
) -> None:
    inner, texts = getattr(bi_losses, name)(encoder, **options), COLUMNS[:columns]
    alone = gradient(encoder, inner(features(encoder, [*texts[:2], *texts[3:]]), labels))
    query, human, llm = (
        encoder(column)["sentence_embedding"] for column in features(encoder, texts[:3])
    )
    over = torch.relu((query * (llm - human)).sum(dim=1))[torch.from_numpy(TWINS)].sum()
    expected = alone + ALPHA * gradient(encoder, over)
    for alpha, slope, tolerance in ((ALPHA, expected, 1e-8), (0, alone, 0)):
        wrapped = gradient(
            encoder, DebiasedLoss(encoder, inner, alpha=alpha)(features(encoder, texts), labels)
        )
        torch.testing.assert_close(wrapped, slope, rtol=tolerance, atol=tolerance / 10)


def test_a_loss_of_features_only_is_wrapped_and_gradient_caching_changes_nothing(
    encoder: Any,
) -> None:
    inner = bi_losses.MatryoshkaLoss(
        encoder, bi_losses.MultipleNegativesRankingLoss(encoder), [32, 8]
    )
    once = DebiasedLoss(encoder, inner, alpha=ALPHA)(features(encoder), None)
    alone = inner(features(encoder, [QUERIES, HUMAN, NEGATIVES]), None)
    plain = DebiasedLoss(encoder, bi_losses.MultipleNegativesRankingLoss(encoder), alpha=ALPHA)
    added = plain(features(encoder), None) - plain.loss(
        features(encoder, [QUERIES, HUMAN, NEGATIVES]), None
    )
    assert added.item() > 0.1
    assert once.item() == pytest.approx((alone + added).item(), rel=1e-9)
    gradients = []
    for name, options in (("MultipleNegativesRankingLoss", {}), WRAPPED[1][:2]):
        loss = DebiasedLoss(
            encoder, getattr(bi_losses, name)(encoder, **options), alpha=ALPHA, variant="code"
        )
        gradients.append(gradient(encoder, loss(features(encoder), None)))
    torch.testing.assert_close(*gradients, rtol=1e-8, atol=1e-9)


PAIRWISE = [
    ("CachedMultipleNegativesRankingLoss", {"num_negatives": None, "mini_batch_size": 3}, 4, None),
    ("BinaryCrossEntropyLoss", {}, 3, torch.tensor([1.0, 1.0, 0.0, 1.0])),
    ("MarginMSELoss", {}, 4, MARGINS.float()),
]


@pytest.mark.parametrize(
    ("name", "options", "columns", "labels"), PAIRWISE, ids=[case[0] for case in PAIRWISE]
)
def test_a_rerankers_losses_fit(
    reranker: Any, name: str, options: dict[str, Any], columns: int, labels: Any
) -> None:
    model = copy.deepcopy(reranker).float()
    inner, texts = getattr(cross_losses, name)(model, **options), COLUMNS[:columns]
    over = torch.relu(logits(model, QUERIES, LLM) - logits(model, QUERIES, HUMAN))[
        torch.from_numpy(TWINS)
    ].sum()
    expected = inner([*texts[:2], *texts[3:]], labels, prompt=None) + 100 * over
    loss = DebiasedLoss(model, inner, alpha=100)(texts, labels, prompt=None)
    assert 100 * over.item() > 1
    assert loss.item() == pytest.approx(expected.item(), rel=1e-4)


def test_a_row_without_a_twin_costs_nothing(
    encoder: Any, reranker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = bi_losses.MultipleNegativesRankingLoss(encoder)
    without = [QUERIES, HUMAN, [""] * 4]
    for prompts in ({}, {"document": "passage "}):
        monkeypatch.setattr(encoder, "prompts", prompts)
        options = {"prompt": "passage "} if prompts else {}
        expected = plain(features(encoder, without[:2], **options), None).item()
        for variant in ("paper", "code"):
            loss = DebiasedLoss(encoder, plain, alpha=1e6, variant=variant)
            assert loss(features(encoder, without, **options), None).item() == pytest.approx(
                expected, rel=1e-12
            )
    pairwise = cross_losses.BinaryCrossEntropyLoss(reranker)
    grades = torch.ones(4).double()
    loss = DebiasedLoss(reranker, pairwise, alpha=1e6)(
        [QUERIES, HUMAN, [None, "", None, ""]], grades
    )
    assert loss.item() == pairwise([QUERIES, HUMAN], grades).item()


def test_what_does_not_fit_is_refused(encoder: Any, reranker: Any) -> None:
    inner = bi_losses.TripletLoss(encoder)
    with refused(
        "unknown variant of DebiasedLoss 'papr'; did you mean 'paper'? (valid: paper, code)"
    ):
        DebiasedLoss(encoder, inner, alpha=1, variant="papr")
    for model, loss in (
        (encoder, inner),
        (reranker, cross_losses.MultipleNegativesRankingLoss(reranker)),
    ):
        with refused(
            "DebiasedLoss: variant='code' is a softmax over the batch: expected "
            "MultipleNegativesRankingLoss of a "
            f"bi-encoder, got {type(loss).__name__}"
        ):
            DebiasedLoss(model, loss, alpha=1, variant="code")
    for alpha in (-0.1, float("nan"), "much"):
        with refused(f"DebiasedLoss: expected an alpha of at least 0, got {alpha}"):
            DebiasedLoss(encoder, inner, alpha=alpha)
    with refused(
        "DebiasedLoss: TripletLoss trains another model; build it with the model given here"
    ):
        DebiasedLoss(reranker, inner, alpha=1)
    message = (
        "DebiasedLoss: expected columns query, human document, its LLM twin (and negatives), got 2"
    )
    with refused(message):
        DebiasedLoss(encoder, inner, alpha=1)(features(encoder, COLUMNS[:2]), None)
    listwise = DebiasedLoss(reranker, cross_losses.LambdaLoss(reranker), alpha=1)
    with refused("DebiasedLoss: expected one human document in a row, got list"):
        listwise([QUERIES, [HUMAN] * 4, LLM], None)


@pytest.fixture(scope="module")
def mixed() -> Collection:
    return marked_mix()


def by_hand(mixed: Collection, text: str) -> dict[str, float]:
    result = audit(
        mixed, ranker(text).rank(mixed), "nDCG@10", pairs=[("human", "llm")], resamples=2000
    )
    alone = audit(human_part(mixed), ranker(text).rank(human_part(mixed)), "nDCG@10", by=None)
    (effect,) = result.tilts
    means = dict(result.by_group().select("group", "mean").iter_rows())
    return {
        "dev_nDCG@10_human": means["human"],
        "dev_nDCG@10_llm": means["llm"],
        "dev_relative_delta_nDCG@10_llm": effect.value,
        "dev_relative_delta_nDCG@10_llm_low": effect.low,
        "dev_relative_delta_nDCG@10_llm_high": effect.high,
        "dev_nDCG@10_human_only": alone.by_group()["mean"][0],
    }


@pytest.mark.parametrize("kind", ["cosine", "dot", "cross-encoder"])
def test_a_model_is_measured_as_its_folder_would_be(
    mixed: Collection, tmp_path: Path, kind: str
) -> None:
    if kind == "cross-encoder":
        model = library.CrossEncoder(str(tiny_classifier(tmp_path)), device="cpu")
        text, options = f"bm25@9>>cross-encoder:{tmp_path}", {"depth": 9}
    else:
        model = library.SentenceTransformer(
            str(tiny_model(tmp_path, similarity=kind)), device="cpu"
        )
        text, options = f"dense:{tmp_path}@100", {}
    figures = SourceBiasEvaluator(mixed, name="dev", **options)(model)
    assert figures == pytest.approx(by_hand(mixed, text), abs=1e-6, nan_ok=True)
    assert 0 < figures["dev_nDCG@10_human"] <= figures["dev_nDCG@10_human_only"] < 1


def test_measures_have_numbers_and_what_has_none_is_refused(
    mixed: Collection, tiny: Path, tmp_path: Path
) -> None:
    evaluator = SourceBiasEvaluator(mixed, measures=("nDCG@3", "AP@5"))
    figures = evaluator(library.SentenceTransformer(str(tiny), device="cpu"))
    assert evaluator.primary_metric == "nDCG@3_human_only"
    assert {"nDCG@3_human_only", "AP@5_human_only", "relative_delta_AP@5_llm_low"} < set(figures)
    assert evaluator.get_config_dict()["measures"] == ["nDCG@3", "AP@5"]
    with refused("unknown source 'humna'; did you mean 'human'? (valid: human, llm)"):
        SourceBiasEvaluator(mixed, source="humna")
    with refused(
        "SourceBiasEvaluator: the collection has one source (human); mix it with rewrites first"
    ):
        SourceBiasEvaluator(human_part(mixed))
    with refused(
        "SourceBiasEvaluator: NDSR@20 is no measure of relevance; expected one such as nDCG@10"
    ):
        SourceBiasEvaluator(mixed, measures=["NDSR@20"])
    with refused("SourceBiasEvaluator: no document of source 'llm' is judged relevant"):
        SourceBiasEvaluator(marked(), source="llm")
    evaluator = SourceBiasEvaluator(mixed, depth=5)
    with refused("SourceBiasEvaluator: the model compares by 'euclidean'; expected cosine or dot"):
        evaluator(
            library.SentenceTransformer(str(tiny), device="cpu", similarity_fn_name="euclidean")
        )
    both = library.CrossEncoder(str(tiny_classifier(tmp_path / "two", labels=2)), device="cpu")
    with refused("SourceBiasEvaluator: expected a model with one score for a pair, got 2"):
        evaluator(both)
    model = library.CrossEncoder(str(tiny_classifier(tmp_path / "one")), device="cpu")
    model[0].auto_model.classifier.bias.data[:] = float("inf")
    with refused("SourceBiasEvaluator: the model gives NaN or infinite scores"):
        evaluator(model)


@pytest.mark.parametrize("kind", ["SentenceTransformer", "CrossEncoder"])
def test_the_constraint_turns_a_model_in_an_unmodified_trainer(
    mixed: Collection, tmp_path: Path, kind: str
) -> None:
    datasets = pytest.importorskip("datasets")
    pytest.importorskip("accelerate")
    folder, losses = (
        (tiny_classifier, cross_losses) if kind == "CrossEncoder" else (tiny_model, bi_losses)
    )
    folder = folder(tmp_path / "model")
    texts = dict(zip(mixed.ids, mixed.texts(), strict=True))
    columns = {side: [texts[f"{word}0-{side}"] for word in WORDS] for side in ("human", "llm")}
    deltas = {}
    for alpha in (0, 30):
        model = getattr(library, kind)(str(folder), device="cpu")
        arguments = getattr(library, f"{kind}TrainingArguments")(
            str(tmp_path / str(alpha)),
            max_steps=20,
            per_device_train_batch_size=5,
            learning_rate=3e-3,
            seed=0,
            eval_strategy="steps",
            eval_steps=20,
            report_to="none",
            save_strategy="no",
            disable_tqdm=True,
            use_cpu=True,
        )
        trainer = getattr(library, f"{kind}Trainer")(
            model,
            arguments,
            datasets.Dataset.from_dict({"query": WORDS, **columns}),
            loss=DebiasedLoss(model, losses.MultipleNegativesRankingLoss(model), alpha=alpha),
            evaluator=SourceBiasEvaluator(mixed, name="dev", depth=20),
        )
        trainer.train()
        (logged,) = [
            row for row in trainer.state.log_history if "eval_dev_nDCG@10_human_only" in row
        ]
        deltas[alpha] = logged["eval_dev_relative_delta_nDCG@10_llm"]
    assert deltas[30] > deltas[0] + 5


@pytest.mark.long
def test_the_example_trains(tiny: Path, tmp_path: Path) -> None:
    pytest.importorskip("datasets")
    pytest.importorskip("accelerate")
    script = tree.ROOT / "examples" / "train_debiased.py"
    command = [sys.executable, "-W", "ignore", str(script), "--model", str(tiny), "--steps", "2"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    logged = [
        line
        for line in done.stdout.splitlines()
        if "eval_dev_relative_delta_nDCG@10_claude_low" in line
    ]
    assert len(logged) == 2
    assert json.loads((tmp_path / "debiased" / "config_sentence_transformers.json").read_text())
    card = (tmp_path / "debiased" / "README.md").read_text()
    assert "DebiasedLoss" in card
    assert "dev_nDCG@10_human_only" in card
