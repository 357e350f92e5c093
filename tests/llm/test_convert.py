"""Conversion from llama2.c: the file format, the tokenizer, and what the converted model says."""

import itertools
import json
import math
import random
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scripts.convert_llama2c import BYTES, Shape, Unfit, main, merges, read_model, read_tokens, tokenizer
from tests.house import tree
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


def test_a_header_says_what_follows(tmp_path: Path) -> None:
    shape, weights = read_model(model_file(tmp_path / "m.bin"))
    assert shape == Shape(8, 12, 2, 4, 2, 262, 16, shared=True)
    assert shape.head == 2
    assert {name: values.shape for name, values in weights.items() if "layers.1" not in name} == {
        "model.embed_tokens.weight": (262, 8),
        "model.layers.0.input_layernorm.weight": (8,),
        "model.layers.0.self_attn.q_proj.weight": (8, 8),
        "model.layers.0.self_attn.k_proj.weight": (4, 8),
        "model.layers.0.self_attn.v_proj.weight": (4, 8),
        "model.layers.0.self_attn.o_proj.weight": (8, 8),
        "model.layers.0.post_attention_layernorm.weight": (8,),
        "model.layers.0.mlp.gate_proj.weight": (12, 8),
        "model.layers.0.mlp.down_proj.weight": (8, 12),
        "model.layers.0.mlp.up_proj.weight": (12, 8),
        "model.norm.weight": (8,),
    }
    assert len(weights) == 2 + 2 * 9


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("model.embed_tokens.weight", 0),
        ("model.layers.0.input_layernorm.weight", 2096),
        ("model.layers.1.input_layernorm.weight", 2104),
        ("model.layers.0.self_attn.q_proj.weight", 2112),
        ("model.layers.1.self_attn.q_proj.weight", 2176),
        ("model.layers.0.self_attn.k_proj.weight", 2240),
        ("model.layers.0.self_attn.v_proj.weight", 2304),
        ("model.layers.0.self_attn.o_proj.weight", 2368),
        ("model.layers.0.post_attention_layernorm.weight", 2496),
        ("model.layers.0.mlp.gate_proj.weight", 2512),
        ("model.layers.0.mlp.down_proj.weight", 2704),
        ("model.layers.0.mlp.up_proj.weight", 2896),
        ("model.norm.weight", 3088),
    ],
)
def test_weights_lie_layer_by_layer_within_each_kind(tmp_path: Path, name: str, first: int) -> None:
    _, weights = read_model(model_file(tmp_path / "m.bin"))
    assert weights[name].flat[0] == first


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
    assert not shape.shared
    assert weights["lm_head.weight"].shape == (262, 8)
    assert weights["lm_head.weight"][-1, -1] == (path.stat().st_size - 28) // 4 - 1
    assert "lm_head.weight" not in read_model(model_file(path))[1]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "expected a model of llama2.c, got 0 bytes"),
        (struct.pack("<7i", 0x616B3432, 1, 8, 12, 2, 4, 2), "expected a model of llama2.c in its legacy format"),
        (struct.pack("<7i", 8, 12, 2, 3, 2, 262, 16), "expected a model of llama2.c in its legacy format"),
        (struct.pack("<7i", *HEADER), r"expected 12,\d\d\d bytes, as the header says, got 28"),
    ],
)
def test_another_file_is_no_model(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "m.bin"
    path.write_bytes(data)
    with pytest.raises(Unfit, match=rf"m\.bin: {message}"):
        read_model(path)


def test_tokens_are_read_with_their_scores(tmp_path: Path) -> None:
    found = read_tokens(tokens_file(tmp_path / "t.bin", (*ABC, ("é", -2.5))), 263)
    assert found[:4] == [("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0), ("<0x00>", 0.0)]
    assert found[259:] == [(" ", -9.0), ("a", -9.0), ("b", -9.0), ("é", -2.5)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data, "expected 300 tokens, as the model has, got 262"),
        (lambda data: data[:-1], "expected the tokenizer of a llama2.c model: "),
        (lambda data: data[:-9] + b"\xff" * 9, "expected the tokenizer of a llama2.c model: "),
        (lambda data: data + struct.pack("<fi", 0.0, 0), "expected the tokenizer of a llama2.c model: a token is cut"),
    ],
)
def test_another_file_is_no_tokenizer(tmp_path: Path, change: Any, message: str) -> None:
    path = tokens_file(tmp_path / "t.bin", ABC)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(Unfit, match=message):
        read_tokens(path, 300)


def test_a_vocabulary_without_bytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.bin"
    path.write_bytes(struct.pack("<i", 9) + struct.pack("<fi", 0.0, 1) + b"a")
    with pytest.raises(Unfit, match="expected the 256 bytes behind the first three tokens"):
        read_tokens(path, 1)


def test_the_best_score_is_merged_first(tmp_path: Path) -> None:
    extra = (*ABC, ("ab", -3.0), ("ba", -1.0), ("aba", -2.0), (" a", -4.0))
    found = read_tokens(tokens_file(tmp_path / "t.bin", extra), 266)
    assert merges(found) == [("b", "a"), ("a", "ba"), ("ab", "a"), ("a", "b"), (" ", "a")]
    encoded = tokenizer(found).encode("abab")
    assert encoded.tokens == ["<s>", " ", "aba", "b"]


def test_what_the_vocabulary_lacks_becomes_bytes(tmp_path: Path) -> None:
    made = tokenizer(read_tokens(tokens_file(tmp_path / "t.bin", ABC), 262))
    encoded = made.encode("aé\n")
    assert encoded.tokens == ["<s>", " ", "a", "<0xC3>", "<0xA9>", "<0x0A>"]
    assert encoded.ids[3] == 3 + 0xC3
    assert made.decode(encoded.ids) == "aé\n"
    assert made.encode("").tokens == ["<s>"]


# The command


def test_a_folder_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, tokens = model_file(tmp_path / "m.bin"), tokens_file(tmp_path / "t.bin", ABC)
    assert main([str(model), str(tokens), str(tmp_path / "new" / "out")]) == 0
    assert capsys.readouterr().out == f"wrote {tmp_path / 'new' / 'out'}\n"
    assert {path.name for path in (tmp_path / "new" / "out").iterdir()} == {
        "config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
    }  # fmt: skip
    config = json.loads((tmp_path / "new" / "out" / "config.json").read_text())
    assert config["max_position_embeddings"] == 16
    assert config["num_key_value_heads"] == 2


def test_what_cannot_be_read_is_said_in_one_line(tmp_path: Path) -> None:
    script = tree.ROOT / "scripts" / "convert_llama2c.py"
    tokens = tokens_file(tmp_path / "t.bin", ABC)
    for name, message in [("t.bin", "expected a model of llama2.c in its legacy format"), ("no", "No such file")]:
        command = [sys.executable, str(script), str(tmp_path / name), str(tokens), str(tmp_path / "out")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert message in done.stderr
        assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


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


@pytest.mark.data
@pytest.mark.neural
def test_the_chat_template_joins_messages_and_nothing_else(stories: Path) -> None:
    words = pytest.importorskip("transformers").AutoTokenizer.from_pretrained(stories)
    messages = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Once"}]
    assert words.apply_chat_template(messages, tokenize=False, add_generation_prompt=True) == "<s>Be kind.\nOnce"
    assert words.padding_side == "left"
    assert words.model_max_length == 512
