"""Conversion from llama2.c: its tokens, and what the converted model says."""

import itertools
import math
import random
from pathlib import Path

import pytest

from scripts.convert_llama2c import read_tokens, tokenizer
from tests.llm.stories import END, SENTENCES, STEPS

pytest.importorskip("tokenizers")


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
