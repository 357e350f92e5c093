"""Log perplexities against one text and one token at a time, in batches, in windows and out of the
cache.
"""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktilt.errors import UserError
from ranktilt.models import likelihood
from ranktilt.models.likelihood import Likelihood, PrefixedText
from tests.llm.stories import SENTENCES, known_model
from tests.rankers.tiny import language_model

pytestmark = pytest.mark.neural

TEXTS = [
    "a cat sat",
    "",
    "on the mat 42",
    "a",
    "a cat sat",
    "the quick brown fox jumps over the lazy dog " * 2,
]
REVERSED = " ".join(reversed(SENTENCES.split()))


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One of each kind, of random weights, that reads 32 tokens."""
    root = tmp_path_factory.mktemp("tiny-language-models")
    return {kind: language_model(kind, root / kind) for kind in NAIVE}


def loaded(folder: Path) -> tuple[Any, Any]:
    library = pytest.importorskip("transformers")
    auto = library.AutoModelForMaskedLM if folder.name == "masked" else library.AutoModelForCausalLM
    return auto.from_pretrained(folder).eval(), library.AutoTokenizer.from_pretrained(folder)


def naive_ids(folder: Path, ids: list[int], every: int = 0) -> list[float]:
    """Mask one token after the other, or every so many at once."""
    torch = pytest.importorskip("torch")
    model, tokenizer = loaded(folder)
    losses, count = [], len(ids) - 2
    for first in range(1, 1 + (every or count)):
        positions = range(first, 1 + count, every or count)
        hidden = [
            tokenizer.mask_token_id if position in positions else token
            for position, token in enumerate(ids)
        ]
        with torch.no_grad():
            chances = model(torch.tensor([hidden])).logits[0].log_softmax(-1)
        losses += [-float(chances[position, ids[position]]) for position in positions]
    return losses


def naive_causal(folder: Path, text: str, before: str = "") -> list[float]:
    """Read the text after the start token, and what is given."""
    torch = pytest.importorskip("torch")
    model, tokenizer = loaded(folder)
    before_ids, ids = (
        tokenizer(side, add_special_tokens=False)["input_ids"] for side in (before, text)
    )
    ids, first = [tokenizer.bos_token_id, *before_ids, *ids], len(before_ids) + 1
    with torch.no_grad():
        chances = model(torch.tensor([ids])).logits[0].log_softmax(-1)
    return [-float(chances[position - 1, ids[position]]) for position in range(first, len(ids))]


NAIVE: dict[str, Callable[[Path, str], list[float]]] = {
    "masked": lambda folder, text: naive_ids(folder, loaded(folder)[1](text)["input_ids"]),
    "causal": naive_causal,
}


def exact(folder: Path, **options: Any) -> Likelihood:
    return Likelihood(folder=folder, **{"precision": "float32", "every": 0, **options})


@pytest.mark.parametrize("kind", NAIVE)
def test_every_text_as_by_a_naive_loop(
    tiny_models: dict[str, Path], kind: str, own_cache: Path
) -> None:
    model, texts = exact(tiny_models[kind]), TEXTS[:5]
    model.check()
    expected = [NAIVE[kind](tiny_models[kind], text) for text in texts]
    scored = model.score(texts, label="scoring")
    assert model.resolved_kind == kind
    assert scored.tokens.tolist() == [len(losses) for losses in expected]
    means = [np.mean(losses) if losses else np.nan for losses in expected]
    np.testing.assert_allclose(scored.perplexity, means, atol=1e-5)
    assert np.isnan(scored.perplexity[1])
    again = exact(tiny_models[kind]).score(texts, label="scoring")
    np.testing.assert_array_equal(again.perplexity, scored.perplexity)


def test_golden_values_of_stories_in_pieces(
    stories: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored = exact(stories).score([SENTENCES, REVERSED], label="scoring")
    assert scored.perplexity.tolist() == pytest.approx([0.1804, 7.043], abs=2e-3)
    assert scored.tokens.tolist() == [31, 31]
    naive = [np.mean(naive_causal(stories, text)) for text in (SENTENCES, REVERSED)]
    np.testing.assert_allclose(scored.perplexity, naive, atol=1e-5)
    rounded = exact(stories, precision="bfloat16").score([SENTENCES, REVERSED], label="scoring")
    np.testing.assert_allclose(rounded.perplexity, naive, rtol=0.05)
    texts = [SENTENCES, "Lily", REVERSED, SENTENCES[:40]]
    together = exact(stories).score(texts, label="scoring").perplexity
    monkeypatch.setenv("RANKTILT_CACHE", str(own_cache / "pieces"))
    monkeypatch.setattr(likelihood, "_LOGITS_A_BATCH", 512 * 40)
    monkeypatch.setattr(likelihood, "_LOGITS_AT_ONCE", 512 * 3)
    model = exact(stories)
    sizes, plain = [], model._logits
    monkeypatch.setitem(
        model.__dict__, "_logits", lambda rows: sizes.append(len(rows)) or plain(rows)
    )
    np.testing.assert_allclose(model.score(texts, label="scoring").perplexity, together, atol=1e-5)
    assert sizes == [1, 1, 2]


def test_a_long_text_is_read_in_windows_that_share_a_half(
    tiny_models: dict[str, Path], own_cache: Path
) -> None:
    """After the first window of 31 tokens and the start token, each starts 15 tokens before its
    first scored one.
    """
    folder, text = tiny_models["causal"], TEXTS[-1]
    torch = pytest.importorskip("torch")
    model, tokenizer = loaded(folder)
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    losses, begin, done = [], 0, 0
    while done < len(ids):
        window = [tokenizer.bos_token_id, *ids[begin : begin + 31]]
        with torch.no_grad():
            chances = model(torch.tensor([window])).logits[0].log_softmax(-1)
        stop = min(begin + 31, len(ids))
        losses += [
            -float(chances[position - begin, ids[position]]) for position in range(done, stop)
        ]
        begin, done = stop - 15, stop
    assert len(losses) == len(ids) > 31
    value = exact(folder).score([text], label="scoring")
    assert value.tokens.tolist() == [len(ids)]
    assert value.perplexity[0] == pytest.approx(np.mean(losses), abs=1e-5)


@pytest.mark.parametrize(
    ("prefix", "fits"), [("a cat sat on " * 2, True), ("a cat sat on " * 4, False)]
)
def test_prefix_fills_rest_of_window(
    tiny_models: dict[str, Path], own_cache: Path, prefix: str, fits: bool
) -> None:
    """Of 32 tokens the start takes one and the text its own: the rest is more than half."""
    folder, text = tiny_models["causal"], "a cat"
    _, tokenizer = loaded(folder)
    prefix_ids = tokenizer(prefix, add_special_tokens=False)["input_ids"]
    text_ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    room = 32 - 1 - len(text_ids)
    assert (len(prefix_ids) <= room, len(prefix_ids) > 15) == (fits, True)
    model = exact(folder)
    assert model.reads_whole(prefix, text) is fits
    (row,) = model._rows([PrefixedText(text=text, prefix=prefix)])[0]
    assert row.ids.tolist() == [tokenizer.bos_token_id, *prefix_ids[:room], *text_ids]


def test_a_masked_model_reads_equal_parts_and_masks_every_third(
    tiny_models: dict[str, Path], own_cache: Path
) -> None:
    folder, text = tiny_models["masked"], TEXTS[-1]
    _, tokenizer = loaded(folder)
    count = len(tokenizer(text, add_special_tokens=False)["input_ids"])
    words, cut = text.split(), []
    edges = np.linspace(0, count, -(-count // 30) + 1).astype(int)
    pieces = [token for word in words for token in [word[0], *(f"##{sign}" for sign in word[1:])]]
    for begin, stop in itertools.pairwise(edges):
        cut += naive_ids(
            folder, tokenizer.convert_tokens_to_ids(["[CLS]", *pieces[begin:stop], "[SEP]"])
        )
    scored = exact(folder).score([text], label="scoring")
    assert scored.tokens.tolist() == [count]
    assert scored.perplexity[0] == pytest.approx(np.mean(cut), abs=1e-5)
    folder, text = tiny_models["masked"], "a cat sat on a mat"
    losses = naive_ids(folder, loaded(folder)[1](text)["input_ids"], every=3)
    scored = exact(folder, every=3).score([text], label="scoring")
    assert scored.perplexity[0] == pytest.approx(np.mean(losses), abs=1e-5)
    assert exact(folder, every=3).fingerprint != exact(folder).fingerprint


def test_another_text_is_read_first_and_distributions_give_the_same_losses(
    stories: Path, own_cache: Path
) -> None:
    model = exact(stories)
    scored = model.score([SENTENCES, SENTENCES], ["Lily is a girl.", ""], label="scoring")
    expected = [
        np.mean(naive_causal(stories, SENTENCES, before)) for before in ("Lily is a girl.", "")
    ]
    np.testing.assert_allclose(scored.perplexity, expected, atol=1e-5)
    long = model.score(["Lily played."], ["One day, " * 600], label="scoring")
    assert long.tokens.tolist() == model.score(["Lily played."], label="scoring").tokens.tolist()
    model, (_, tokenizer) = exact(stories), loaded(stories)
    logs, ids = (
        model.distributions(SENTENCES),
        tokenizer(SENTENCES, add_special_tokens=False)["input_ids"],
    )
    assert logs.shape == (31, 512)
    np.testing.assert_allclose(np.exp(logs.astype(float)).sum(1), 1, atol=1e-5)
    expected = model.score([SENTENCES], label="s").perplexity[0]
    assert -logs[np.arange(31), ids].mean() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("causal", {"kind": "masked"}, "a causal language model cannot be used as a masked one"),
        ("masked", {"kind": "causal"}, "a masked language model cannot be used as a causal one"),
        (
            "masked",
            {"kind": "mask"},
            "unknown kind of language model 'mask'; did you mean 'masked'?",
        ),
        ("masked", {"every": 1}, r"every must be 0 \(one token at a time\) or 2 or more, got 1"),
    ],
)
def test_what_cannot_be_is_said(
    tiny_models: dict[str, Path], kind: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        exact(tiny_models[kind], **options).check()


def test_models_that_are_no_language_models_are_refused(
    tiny: Path, tiny_models: dict[str, Path]
) -> None:
    with pytest.raises(
        UserError, match="no language model: expected one with a head that predicts tokens"
    ):
        exact(tiny).check()
    with pytest.raises(UserError, match="its weights lack"):
        exact(tiny, kind="causal").score(["a"], label="scoring")
    with pytest.raises(UserError, match="only a causal model can read another text first"):
        exact(tiny_models["masked"]).score(["a"], ["b"], label="scoring")


def test_nan_is_refused_and_known_chances_found(
    tmp_path: Path, tiny_models: dict[str, Path], own_cache: Path
) -> None:
    model, tokenizer = loaded(tiny_models["causal"])
    model.model.norm.weight.data.fill_(float("nan"))
    model.save_pretrained(tmp_path / "causal")
    tokenizer.save_pretrained(tmp_path / "causal")
    with pytest.raises(UserError, match="NaN or infinite log-probabilities"):
        exact(tmp_path / "causal").score(["a cat"], label="scoring")
    assert not list(own_cache.rglob("*.vectors"))
    folder = known_model(tmp_path / "known", {"a": 0.5, "b": 0.25, "</s>": 0.25})
    scored = np.exp(exact(folder).distributions("aab"))[
        1:
    ]  # the first token is the space before the text
    a, b = (loaded(folder)[1].convert_tokens_to_ids(letter) for letter in "ab")
    np.testing.assert_allclose(scored[:, [a, b]], [[0.5, 0.25]] * 3, atol=1e-6)
