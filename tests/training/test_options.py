"""Options of a training: what is refused, and what they come to."""

import pytest

from ranktilt.errors import UserError
from ranktilt.training.options import Training, learning_rate
from tests.refusals import refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"negatives": 0}, "expected negatives of at least 1, got 0"),
        ({"positives": 0}, "expected positives of at least 1, got 0"),
        ({"depth": -1}, "expected depth of at least 1, got -1"),
        ({"steps": 0}, "expected steps of at least 1, got 0"),
        ({"batch": 0}, "expected batch of at least 1, got 0"),
        ({"max_query_tokens": 0}, "expected max_query_tokens of at least 1, got 0"),
        ({"max_document_tokens": 0}, "expected max_document_tokens of at least 1, got 0"),
        ({"rate": 0.0}, "expected rate above 0, got 0.0"),
        ({"rate": float("nan")}, "expected rate above 0, got nan"),
        ({"minutes": -2.0}, "expected minutes above 0, got -2.0"),
        ({"minutes": float("inf")}, "expected minutes above 0, got inf"),
        ({"seed": -1}, "expected a seed of at least 0, got -1"),
        ({"steps": 5, "minutes": 5.0}, "choose a number of steps or of minutes, not both"),
        ({"sources": ()}, "expected at least one source, got none"),
    ],
)
def test_values_out_of_range_are_refused(options: dict[str, object], message: str) -> None:
    with refused(f"training: {message}"):
        Training(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"text": "titel"}, r"unknown text choice of training 'titel'; did you mean 'title'\?"),
        ({"precision": "int8"}, r"unknown precision of training 'int8'"),
    ],
)
def test_unknown_names_are_refused(options: dict[str, str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Training(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("batch", "negatives", "groups"), [(32, 4, 6), (32, 3, 8), (5, 4, 1), (3, 4, 1), (40, 4, 8), (2, 1, 1)]
)
def test_a_batch_is_made_of_whole_groups(batch: int, negatives: int, groups: int) -> None:
    assert Training(batch=batch, negatives=negatives).groups == groups


@pytest.mark.parametrize(
    ("step", "steps", "expected"),
    [
        (0, 100, 0.1), (4, 100, 0.5), (9, 100, 1.0), (10, 100, 1.0), (55, 100, 0.5), (99, 100, 1 / 90),
        (0, 1, 1.0), (0, 5, 1.0), (1, 5, 1.0), (4, 5, 0.25),
    ],
)  # fmt: skip
def test_the_learning_rate_rises_and_falls(step: int, steps: int, expected: float) -> None:
    assert learning_rate(step, steps, 2e-4) == pytest.approx(2e-4 * expected)


def test_the_spec_names_every_option() -> None:
    spec = Training(sources=("human",), minutes=20).spec()
    assert spec["sources"] == ("human",)
    assert spec["minutes"] == 20
    assert (spec["steps"], spec["negatives"], spec["seed"]) == (None, 4, 0)
