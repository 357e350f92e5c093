"""Conversion from llama2.c: the file format, the tokenizer, and what the converted model says."""

import itertools
import math
import random
import struct
from pathlib import Path

import numpy as np
import pytest

from scripts.convert_llama2c import BYTES, Shape, main, merges, read_model, read_tokens, tokenizer
from tests.llm.stories import END, SENTENCES, STEPS

pytest.importorskip("tokenizers")

HEADER = (8, 12, 2, 4, 2, 262, 16)
"""Width 8, feed-forward 12, 2 layers, 4 heads, 2 of keys and values, 262 tokens, 16 of context."""


def model_file(path: Path, header: tuple[int, ...] = HEADER) -> Path:
    """A model whose weights are 0, 1, 2, …, so that each tells where in the file it was."""
    dim, hidden, layers, heads, kv, vocabulary, context = header
    head = dim // heads
    layer = dim + dim * dim + 2 * kv * head * dim + dim * dim + dim + 3 * hidden * dim
    count = abs(vocabulary) * dim + layers * layer + dim + context * head + (-vocabulary * dim if vocabulary < 0 else 0)
    path.write_bytes(struct.pack("<7i", *header) + np.arange(count, dtype="<f4").tobytes())
    return path


def tokens_file(path: Path, extra: tuple[tuple[str, float], ...] = ()) -> Path:
    pieces = [
        ("<unk>", 0.0),
        ("\n<s>\n", 0.0),
        ("\n</s>\n", 0.0),
        *((f"<0x{i:02X}>", 0.0) for i in range(BYTES)),
        *extra,
    ]
    packed = b"".join(struct.pack("<fi", score, len(t.encode())) + t.encode() for t, score in pieces)
    path.write_bytes(struct.pack("<i", 9) + packed)
    return path


ABC = ((" ", -9.0), ("a", -9.0), ("b", -9.0))


# The format


def test_rotary_pairs_become_halves_of_a_head(tmp_path: Path) -> None:
    header = (8, 12, 1, 2, 2, 262, 16)  # heads of 4: rows 0 1 2 3 are two pairs
    _, weights = read_model(model_file(tmp_path / "m.bin", header))
    start = 262 * 8 + 8
    rows = (weights["model.layers.0.self_attn.q_proj.weight"][:, 0] - start) / 8
    assert rows.tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
    values = weights["model.layers.0.self_attn.v_proj.weight"][:, 0]
    assert np.diff(values).tolist() == [8.0] * 7, "values turn with no angle"


def test_a_last_layer_of_its_own_stands_at_the_end(tmp_path: Path) -> None:
    path = model_file(tmp_path / "m.bin", (8, 12, 2, 4, 2, -262, 16))
    shape, weights = read_model(path)
    assert shape == Shape(8, 12, 2, 4, 2, 262, 16, shared=False)
    assert weights["lm_head.weight"].shape == (262, 8)
    assert weights["lm_head.weight"][-1, -1] == (path.stat().st_size - 28) // 4 - 1
    assert "lm_head.weight" not in read_model(model_file(path))[1]


def test_what_cannot_be_read_is_said_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, tokens, none = model_file(tmp_path / "m.bin"), tokens_file(tmp_path / "t.bin", ABC), tmp_path / "none"
    (tmp_path / "short.bin").write_bytes(model.read_bytes()[:-4])
    for first, second, message in (
        (tokens, tokens, "expected a model of llama2.c in its legacy format"),
        (tmp_path / "short.bin", tokens, "as the header says"),
        (model, model, "expected the tokenizer of a llama2.c model"),
        (none, tokens, "No such file"),
    ):
        assert main([str(first), str(second), str(tmp_path / "out")]) == 2
        said = capsys.readouterr().err
        assert message in said
        assert said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_the_best_score_is_merged_first(tmp_path: Path) -> None:
    extra = (*ABC, ("ab", -3.0), ("ba", -1.0), ("aba", -2.0), (" a", -4.0))
    found = read_tokens(tokens_file(tmp_path / "t.bin", extra), 266)
    assert merges(found) == [("b", "a"), ("a", "ba"), ("ab", "a"), ("a", "b"), (" ", "a")]
    encoded = tokenizer(found).encode("abab")
    assert encoded.tokens == ["<s>", " ", "aba", "b"]


# The command


# The model of stories


def encoded_as_in_c(text: str, tokens: list[tuple[str, float]]) -> list[int]:
    """Tokens of a text as llama2.c finds them: characters, then the best neighbours joined one by one."""
    numbers = {piece: number for number, (piece, _) in enumerate(tokens)}
    found = [numbers[" "]] if text else []
    for character in text:
        found += [numbers[character]] if character in numbers else [3 + byte for byte in character.encode()]
    while True:
        best, at = -math.inf, -1
        for place, (left, right) in enumerate(itertools.pairwise(found)):
            number = numbers.get(tokens[left][0] + tokens[right][0])
            if number is not None and tokens[number][1] > best:
                best, at = tokens[number][1], place
        if at < 0:
            return [1, *found]
        found[at : at + 2] = [numbers[tokens[found[at]][0] + tokens[found[at + 1]][0]]]


@pytest.mark.data
def test_texts_are_encoded_as_llama2c_does(shared_data: Path) -> None:
    tokens = read_tokens(shared_data / "stories260k" / "tok512.bin", 512)
    made, chance = tokenizer(tokens), random.Random(0)
    pieces = [piece for piece, _ in tokens[259:]]
    texts = ["", " ", "  ", "a", "aaaaaaaa", SENTENCES, "größer\n\n日本 🙂", "<0x41> <|x|>", "\u00a0\r\t"]
    texts += ["".join(chance.choices(pieces, k=chance.randrange(30))) for _ in range(300)]
    texts += ["".join(chance.choices("aehlnot ,.\n\"'é", k=chance.randrange(60))) for _ in range(300)]
    for text in texts:
        assert made.encode(text).ids == encoded_as_in_c(text, tokens), text
        assert made.decode(made.encode(text).ids) == text


@pytest.mark.data
@pytest.mark.neural
def test_the_converted_model_has_the_documented_likelihood_and_text(stories: Path) -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    words = transformers.AutoTokenizer.from_pretrained(stories)
    model = transformers.AutoModelForCausalLM.from_pretrained(stories)

    def loss(text: str) -> float:
        ids = words(text, return_tensors="pt").input_ids
        assert ids.shape == (1, 32), "31 tokens after the beginning"
        with torch.no_grad():
            return float(model(ids, labels=ids).loss)

    assert loss(SENTENCES) == pytest.approx(0.180, abs=0.0005)
    assert loss(" ".join(reversed(SENTENCES.split()))) == pytest.approx(7.04, abs=0.005)
    written = model.generate(torch.tensor([[1]]), max_new_tokens=STEPS - 1, do_sample=False)
    text = words.decode(written[0], skip_special_tokens=True)
    assert text.startswith(SENTENCES)
    assert text.endswith(END)
