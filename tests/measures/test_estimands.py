"""Estimands in their notation, and the exposure ratio against plain loops and numbers by hand."""

import math
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt.errors import UserError
from ranktilt.measures.base import Estimand, estimand, every_estimand, measure
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.measures.exposure_ratio import ExposureRatio
from ranktilt.measures.ranking import Ranking


def variants() -> list[Estimand]:
    """Every estimand with and without a cutoff, and with each of its options."""
    plain = [one for one in every_estimand() if not isinstance(one, RelativeDelta)]
    found = [one @ k for one in plain for k in (1, 20)] + [one for one in plain if not one.needs_cutoff]
    found += [replace(one @ 5, **{name: v}) for one in plain for name, valid in one.choices.items() for v in valid]
    contrasts: list[Estimand] = [RelativeDelta(of=measure(text)) for text in ("nDCG@3", "AP", "AP(rel=2)@5")]
    return [*found, *contrasts]


@pytest.mark.parametrize("made", variants(), ids=repr)
def test_the_text_of_an_estimand_reads_back_as_it(made: Estimand) -> None:
    assert estimand(repr(made)) == made


def test_an_estimand_that_is_no_measure_is_refused_where_one_is_needed() -> None:
    with pytest.raises(UserError, match="NDSR@20 is no measure of relevance"):
        measure("NDSR@20")


def ratio(labels: str, scores: list[float] | None = None, cutoff: int | None = None) -> float:
    """The ratio of one list, whose documents have these labels from the top."""
    given = np.array(scores if scores else [-float(n) for n in range(len(labels))])
    ranking, letters = Ranking(np.array([0, len(labels)]), given), np.array(list(labels))
    return float(replace(ExposureRatio, cutoff=cutoff).contrast(ranking, letters == "a", letters == "b")[0])


def plain(labels: str, cutoff: int | None) -> float:
    """The ratio from its definition, rank by rank."""
    seen = [1 / math.log(1 + r) if cutoff is None or r <= cutoff else 0.0 for r in range(1, len(labels) + 1)]
    held = {g: [s for s, label in zip(seen, labels, strict=True) if label == g] for g in "ab"}
    one, two = (sum(found) / len(found) if found else math.nan for found in held.values())
    return one / two if two else math.nan


def test_exposure_ratio_by_hand() -> None:
    third, fifth = 1 / math.log2(3), 1 / math.log2(5)
    assert ratio("abba") == pytest.approx((1 + fifth) / (third + 0.5))
    assert ratio("abba", cutoff=2) == pytest.approx(1 / third)
    assert ratio("ab-a", cutoff=3) == pytest.approx(0.5 / third)  # the last stays in its group's denominator
    assert ratio("ab", [1.0, 1.0]) == 1


@pytest.mark.parametrize("labels", ["aa", "bb", "--", "a-"])
def test_a_list_that_lacks_a_group_says_nothing(labels: str) -> None:
    assert math.isnan(ratio(labels))


def test_exposure_ratio_lies_within_its_bounds_for_equal_groups() -> None:
    low, high = ratio("b" * 100 + "a" * 100), ratio("a" * 100 + "b" * 100)
    assert (round(low, 3), round(high, 3)) == (0.663, 1.509)


@given(st.lists(st.tuples(st.sampled_from("ab-"), st.integers(0, 2)), min_size=2, max_size=6), st.integers(1, 7))
@settings(max_examples=80)
def test_tied_documents_share_the_mean_exposure_of_their_ranks(found: list[tuple[str, int]], cutoff: int) -> None:
    found = sorted(found, key=lambda one: -one[1])
    scores = [float(score) for _, score in found]
    orders = [o for o in permutations(range(len(found))) if [scores[i] for i in o] == scores]
    means = []
    for group in "ab":
        mine = [i for i, (label, _) in enumerate(found) if label == group]
        seen = [1 / math.log(2 + o.index(i)) if o.index(i) < cutoff else 0.0 for o in orders for i in mine]
        means.append(sum(seen) / len(seen) if seen else math.nan)
    expected = means[0] / means[1] if means[1] else math.nan
    labels = "".join(label for label, _ in found)
    assert ratio(labels, scores, cutoff) == pytest.approx(expected, nan_ok=True)
    if len(orders) == 1:
        assert expected == pytest.approx(plain(labels, cutoff), nan_ok=True)
