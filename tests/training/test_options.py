"""Options of a training: what is refused, and what they come to."""

from typing import Any

import pytest

from ranktilt.errors import UserError
from ranktilt.training.options import RerankerTraining, Training
from tests.refusals import refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"negatives_per_positive": 0}, "expected negatives_per_positive of at least 1, got 0"),
        ({"weight_decay": float("nan")}, "expected weight_decay of at least 0, got nan"),
        ({"steps": 0}, "expected steps of at least 1, got 0"),
        ({"rate": 0.0}, "expected rate above 0, got 0.0"),
        ({"minutes": float("inf")}, "expected minutes above 0, got inf"),
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
        ({"negatives": "random:0"}, "training: expected negatives as bm25:K or random:N, such as random:1000, got"),
        ({"negatives": "bm25:x"}, "training: expected negatives as bm25:K or random:N, such as random:1000, got"),
        ({"device": "abacus"}, "unknown device of training 'abacus' (valid: cpu, cuda)"),
        ({"precision": "int8"}, "unknown precision of training 'int8'"),
        ({"negatives": "random:3"}, "training: negatives=random:3 are fewer than the 4 of each positive"),
        ({"negatives": "random:9", "positives": "retrieved"}, "training: positives=retrieved are those of BM25's best"),
        ({"positives": "al"}, "unknown positives of training 'al'; did you mean 'all'?"),
        ({"triples": "t.tsv", "positives": "all"}, "training: triples say what is positive and negative; leave out"),
        ({"loss": "hinge"}, "unknown loss of training 'hinge'"),
    ],
)
def test_what_is_learned_from_is_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as found:
        RerankerTraining(**options)
    assert str(found.value).startswith(message)


def test_only_what_bm25_finds_is_learned_from_unless_all_is_asked_for_or_negatives_are_random() -> None:
    found = [{}, {"positives": "all"}, {"negatives": "random:9"}, {"negatives": "bm25:9"}]
    assert [RerankerTraining(**options).retrieved_only for options in found] == [True, False, False, True]


def test_presets() -> None:
    paper, notebook = (RerankerTraining.of_preset(name) for name in ("paper", "notebook"))
    names = ("rate", "max_query_tokens", "max_document_tokens", "weight_decay", "warmup_steps", "dropout", "epochs")
    assert [getattr(paper, name) for name in names] == [7e-6, 30, 200, 0.0, None, False, 1]
    assert [getattr(notebook, name) for name in names] == [2e-5, 70, 350, 0.01, 5000, True, 1000]
    for preset in (paper, notebook):
        assert (preset.pool, preset.retrieved_only, preset.negatives_per_positive) == (("random", 1000), False, 4)
        assert (preset.loss, preset.batch, preset.rows, preset.positives_per_query) == ("binary", 32, 32, None)
    given = RerankerTraining.of_preset("paper", triples="t.tsv")
    assert (given.triples, given.negatives, given.positives, given.rate) == ("t.tsv", None, None, 7e-6)
    assert RerankerTraining.of_preset("paper", negatives="bm25:50").positives == "all"


@pytest.mark.parametrize(("batch", "negatives", "groups"), [(32, 4, 6), (32, 3, 8), (5, 4, 1), (3, 4, 1)])
def test_a_batch_is_made_of_whole_groups(batch: int, negatives: int, groups: int) -> None:
    assert RerankerTraining(batch=batch, negatives_per_positive=negatives).rows == groups
    assert RerankerTraining(batch=batch, negatives_per_positive=negatives, loss="binary").rows == batch
