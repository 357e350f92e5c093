"""Preference for a family: planted ones are found, general errors are none, and scales alone decide
nothing.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from ranktilt.judging.records import Estimate, FamilyScale
from ranktilt.judging.systems.family_preference import family_preferences, verdict_of
from ranktilt.judging.systems.systems import SystemValues
from ranktilt.reporting.sentences.judging.judge import preference_sentence
from ranktilt.statistics.judges.family_difference import family_difference
from tests.judging.judged import MEMBER, WORLDS, world

Floats = npt.NDArray[np.float64]


@pytest.mark.parametrize("kind", WORLDS)
@pytest.mark.parametrize("preference", [0.0, 0.05, 0.15])
def test_planted_preferences_are_covered(kind: str, preference: float) -> None:
    """Of 400 worlds, intervals hold the truth in 92 to 98 %; without a preference at most 7 % show
    one (twice its standard error is 2 points)."""
    differences = [
        family_difference(*world(seed, preference, **WORLDS[kind]), MEMBER) for seed in range(400)
    ]
    coverage = np.mean(
        [difference.low <= preference <= difference.high for difference in differences]
    )
    assert 0.92 <= coverage <= 0.98
    if preference == 0:
        assert np.mean([difference.p < 0.05 for difference in differences]) <= 0.07
    if preference == 0.15:
        assert np.mean([difference.p < 0.05 for difference in differences]) > 0.9


def test_the_plain_difference_takes_general_errors_for_a_preference() -> None:
    """A judge that halves every difference lowers a family that is better by .1 by .05: that is no
    dislike.
    """
    differences = [
        family_difference(*world(seed, 0.0, **WORLDS["a judge that errs more"]), MEMBER)
        for seed in range(100)
    ]
    assert np.mean([difference.plain for difference in differences]) == pytest.approx(
        -0.05, abs=0.01
    )
    assert np.mean([difference.value for difference in differences]) == pytest.approx(0.0, abs=0.01)
    assert np.mean([difference.slope for difference in differences]) == pytest.approx(0.5, abs=0.05)


def test_a_difference_by_hand_and_a_family_of_one_is_not_tested() -> None:
    """Each family lies on a line of slope 1/2 over the human means; the family's is higher
    by .2.
    """
    human = np.array([[0.8, 0.6, 0.7], [0.6, 0.4, 0.5], [0.4, 0.2, 0.3], [0.2, 0.0, 0.1]])
    member = np.array([True, True, False, False])
    judged = 0.5 * human + 0.2 * member[:, None]
    difference = family_difference(human, judged, member)
    assert (difference.value, difference.slope) == (pytest.approx(0.2), pytest.approx(0.5))
    assert difference.plain == pytest.approx(0.2 - 0.5 * 0.4)
    nothing = family_difference(0 * human, 0 * judged, member)
    assert (nothing.value, nothing.low, nothing.high, nothing.p) == (0, 0, 0, 1)
    for size in ((1, 5), (5, 1)):
        member = np.arange(sum(size)) < size[0]
        difference = family_difference(
            np.random.default_rng(0).random((sum(size), 9)), np.zeros((sum(size), 9)), member
        )
        assert np.isnan(difference.value)


def test_systems_that_differ_by_rounding_alone_have_no_slope() -> None:
    """All systems of a side have the same human values, in another order of queries."""
    rng = np.random.default_rng(0)
    row, judged = rng.random(7), rng.random((4, 7))
    human = np.array([row, row[::-1], row[[1, 0, 2, 3, 4, 5, 6]], row[[3, 1, 2, 0, 4, 6, 5]]])
    difference = family_difference(human, judged, np.array([True, True, False, False]))
    means = judged.mean(1)
    assert difference.slope == 1
    assert difference.value == pytest.approx(means[:2].mean() - means[2:].mean())


def test_family_difference_equals_its_formula() -> None:
    human, judged = world(3, 0.05, **WORLDS["a judge that errs more"])
    systems, queries = human.shape
    others = ~MEMBER
    sizes = MEMBER.sum(), others.sum()
    side_effects = np.stack([MEMBER, others], axis=1).astype(float)
    design = np.column_stack([side_effects, human.mean(1)])
    coefficients, squares, *_ = np.linalg.lstsq(design, judged.mean(1), rcond=None)
    of_systems = (
        squares[0]
        / (systems - 3)
        * (np.linalg.inv(design.T @ design) @ [1.0, -1.0, 0.0] @ [1.0, -1.0, 0.0])
    )
    cells = judged - coefficients[2] * human
    by_query = cells[MEMBER].mean(0) - cells[others].mean(0)
    of_queries = by_query.var(ddof=1) / queries
    noise = sum(
        ((side - side.mean(0) - side.mean(1)[:, None] + side.mean()) ** 2).sum()
        for side in (cells[MEMBER], cells[others])
    ) / ((systems - 2) * (queries - 1))
    of_cells = noise * (1 / sizes[0] + 1 / sizes[1]) / queries
    variance = of_systems + of_queries - of_cells
    assert variance > max(of_systems, of_queries), "else the noise of cells would not count"
    degrees = variance**2 / (of_systems**2 / (systems - 3) + of_queries**2 / (queries - 1))
    half = stats.t.ppf(0.975, degrees) * np.sqrt(variance)
    difference = family_difference(human, judged, MEMBER)
    assert difference.value == pytest.approx(coefficients[0] - coefficients[1])
    assert difference.high - difference.value == pytest.approx(half, rel=1e-9)


def values(human: Floats, judged: Floats, rescaled: Floats | None = None) -> SystemValues:
    runs = tuple(f"run{number}" for number in range(len(human)))
    queries = tuple(f"q{number}" for number in range(human.shape[1]))
    return SystemValues(
        judge="judge",
        measure="nDCG@10",
        bounds=(0.0, 1.0),
        runs=runs,
        queries=queries,
        human=human,
        judged=judged,
        rescaled_human=human if rescaled is None else rescaled,
        further_judged=np.empty((len(human), 0)),
    )


FAMILIES = {f"run{number}": "llm" if number < 6 else "lexical" for number in range(18)}


@pytest.mark.parametrize("scale", [np.sqrt, np.square, lambda x: 3 * x + 1])
def test_a_change_of_scale_alone_never_gives_a_verdict(scale: Callable[[Floats], Floats]) -> None:
    """Grades on another scale, which the human ones are put on, leave nothing to explain."""
    human, _ = world(2, 0.0, **WORLDS["a good judge"])
    moved = scale(np.clip(human, 0, None))
    (preferences,) = family_preferences([values(human, moved, moved)], FAMILIES)
    assert [(scale.preference, scale.p) for scale in preferences.scales] == [
        ((0.0, 0.0, 0.0), 1.0)
    ] * 3
    assert preferences.verdict == "level"


def row(value: float, p: float) -> FamilyScale:
    return FamilyScale(
        name="points",
        preference=Estimate(value, value - 0.03, value + 0.03),
        p=p,
        p_corrected=p,
        slope=1.0,
        plain=value,
    )


def test_one_verdict_only_where_every_scale_agrees_as_on_a_large_preference() -> None:
    for rows, verdict in (
        ([row(0.1, 0.01), row(0.1, 0.01), row(0.1, 0.01)], "favours"),
        ([row(-0.1, 0.01), row(-0.1, 0.01), row(-0.1, 0.01)], "disfavours"),
        ([row(0.1, 0.01), row(0.1, 0.2), row(0.1, 0.01)], "depends on scale"),
        ([row(0.1, 0.01), row(-0.1, 0.01), row(0.1, 0.01)], "depends on scale"),
        ([row(0.1, 0.2), row(0.1, 0.2), row(0.1, 0.2)], "inconclusive"),
        ([row(np.nan, np.nan)] * 3, "not tested"),
    ):
        assert verdict_of(rows) == verdict
    for preference, verdict in ((0.15, "favours"), (-0.15, "disfavours"), (0.0, "level")):
        (preferences,) = family_preferences(
            [values(*world(4, preference, slope=0.9, noise=0.03, system=0.005))], FAMILIES
        )
        assert (
            preferences.verdict,
            preferences.family,
            preferences.systems,
            preferences.others,
            preferences.queries,
        ) == (
            verdict,
            "llm",
            6,
            12,
            50,
        )
        assert [scale.name for scale in preferences.scales] == ["points", "ranks", "z"]
        assert preference_sentence(preferences).startswith(
            f"judge {verdict if verdict != 'level' else 'is level on'} llm"
        )
        assert "points of its own scale [" in preference_sentence(preferences)


def test_one_query_is_the_reason_that_a_family_is_not_tested() -> None:
    human, judged = np.random.default_rng(0).random((2, 18, 1))
    (preferences,) = family_preferences([values(human, judged)], FAMILIES)
    assert preferences.verdict == "not tested"
    assert preference_sentence(preferences) == "judge: llm is not tested: 1 query is too few"
