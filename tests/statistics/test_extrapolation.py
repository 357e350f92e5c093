"""Costs are fitted by terms of the size, and extrapolated with intervals that hold and widen."""

import numpy as np
import pytest

from ranktilt.statistics.extrapolation import Floats, fit_costs

SIZES = np.array([(d, q) for d in (100, 200, 400, 800) for q in (5, 20, 5, 20)], dtype=np.float64)


def terms(sizes: Floats) -> Floats:
    """Fixed, documents, queries, documents × queries."""
    d, q = sizes.T
    return np.stack([np.ones(len(sizes)), d, q, d * q], axis=1)


TRUE = np.array([0.2, 0.004, 0.0, 0.0002])


def test_costs_without_noise_are_found_exactly() -> None:
    fit = fit_costs(terms(SIZES), terms(SIZES) @ TRUE)
    assert fit.coefficients == pytest.approx(TRUE, abs=1e-9)
    far = terms(np.array([[8000.0, 200.0]]))[0]
    assert fit.value(far) == pytest.approx(0.2 + 32 + 320)
    low, high = np.quantile(fit.drawn(far, 100), [0.025, 0.975])
    assert low < fit.value(far) < high


def test_no_coefficient_is_below_0() -> None:
    falling = fit_costs(terms(SIZES), 10 - SIZES[:, 0] / 100)
    assert (falling.coefficients >= 0).all()
    assert (falling.draws >= 0).all()


def test_intervals_widen_with_the_distance() -> None:
    noise = np.exp(np.random.default_rng(1).normal(0, 0.1, len(SIZES)))
    fit = fit_costs(terms(SIZES), terms(SIZES) @ TRUE * noise)
    widths = []
    for factor in (1, 10, 100, 1000):
        low, high = np.quantile(fit.drawn(factor * terms(SIZES)[-1], factor), [0.025, 0.975])
        widths.append(high / low)
    assert widths == sorted(widths)
    assert widths[3] > 1.3 * widths[0]


def test_intervals_hold_ten_times_as_far_from_the_sample() -> None:
    far, inside = terms(np.array([[8000.0, 200.0]]))[0], 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        fit = fit_costs(terms(SIZES), terms(SIZES) @ TRUE * np.exp(rng.normal(0, 0.1, len(SIZES))), seed=seed)
        low, high = np.quantile(fit.drawn(far, far @ TRUE / (terms(SIZES) @ TRUE).max()), [0.025, 0.975])
        inside += low <= float(far @ TRUE * np.exp(rng.normal(0, 0.1))) <= high
    assert inside >= 54


def test_terms_that_cannot_be_told_apart_share_what_they_explain() -> None:
    d = np.array([100.0, 200.0, 400.0, 100.0, 200.0, 400.0])
    alike = np.stack([np.ones(6), d, 2 * d], axis=1)
    fit = fit_costs(alike, d * np.array([1, 1.05, 0.95, 0.97, 1.02, 1.01]))
    assert {int(np.argmax(draw[1:] > 0)) for draw in fit.draws} == {0, 1}


def test_what_takes_nothing_stays_at_nothing() -> None:
    fit = fit_costs(terms(SIZES), np.zeros(len(SIZES)))
    assert fit.value(terms(SIZES)[0]) == 0
    assert not fit.drawn(terms(SIZES)[0], 10).any()


def test_the_draws_are_those_of_the_seed() -> None:
    values = terms(SIZES) @ TRUE
    one, same, other = (fit_costs(terms(SIZES), values, seed=seed).draws for seed in (1, 1, 2))
    assert (one == same).all()
    assert (one != other).any()
