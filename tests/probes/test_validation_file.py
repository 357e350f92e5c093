"""A validation as a file: it comes back equal, and stays small."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ranktilt.datasets.load import load
from ranktilt.probes.distribution import Cosines, Distribution
from ranktilt.probes.overlap import Overlap
from ranktilt.probes.validation import Validation, validate
from ranktilt.registry import ranker
from tests.probes.lexical_vectors import LetterVectors
from tests.probes.validations import toy_validation
from tests.toy import write_cocktail

FOUND = {
    "every part": toy_validation(),
    "no map": toy_validation(map=False),
    "three sources": toy_validation(("human", "llm", "gpt")),
    "one source": toy_validation(("human",)),
}


@pytest.fixture(params=FOUND)
def found(request: pytest.FixtureRequest) -> Validation:
    return FOUND[request.param]


def test_it_comes_back_equal(found: Validation, tmp_path: Path) -> None:
    back = Validation.load(found.save(tmp_path / "validation.json"))
    assert back == found
    assert hash(back) == hash(found)
    assert back.to_json() == found.to_json()


def test_one_that_was_made_comes_back_equal(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    whole = load(write_cocktail(tmp_path / "toy"))
    made = validate(whole, [ranker("bm25")], similarity=LetterVectors("abcdefghijklmnopqrstuvwxyz"))
    assert made.similarities
    assert Validation.load(made.save(tmp_path / "validation.json")) == made


def test_a_large_one_stays_below_ten_megabytes() -> None:
    pairs = 110_000
    drawn = np.random.default_rng(0).uniform(0, 1, (3, pairs))
    near = toy_validation().similarities[0]
    near = replace(near, cosine=Cosines("twins", drawn[2]),
                   baseline=Cosines("other pairs", drawn[0, :10_000]))  # fmt: skip
    terms = Overlap("llm", Distribution("Jaccard", drawn[0]), Distribution("overlap", drawn[1]))
    assert len(replace(toy_validation(), overlaps=(terms,), similarities=(near,)).to_json()) < 10_000_000
