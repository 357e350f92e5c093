"""What each query brings to Relative Δ: hand-computed parts, their sum, their signs, and what is undefined."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktilt.auditing.breakdown import contributions, parts
from ranktilt.errors import UserError
from tests.auditing.arrays import audit_of
from tests.reporting.audits import clear, small, three, uneven

NAN = float("nan")


def found(a: list[float], b: list[float]) -> list[float]:
    every = [0.0] * len(a)
    return contributions(audit_of([[[every, a, b]]]), "run", "nDCG@5", "human", "llm").tolist()


def test_parts_are_the_queries_differences_over_the_sum_of_all_values() -> None:
    # Sums 1.5 and 1.0: Relative Δ is 200 · 0.5 / 2.5 = 40, of which 200 · 0.6 / 2.5 = 48 and 200 · (−0.1) / 2.5 = −8.
    assert found([1.0, 0.5], [0.4, 0.6]) == pytest.approx([48, -8], abs=1e-12)


def test_a_query_without_relevant_documents_on_one_side_counts_in_no_part() -> None:
    assert found([1.0, 0.9, NAN], [0.5, NAN, 0.7]) == pytest.approx([200 / 3, NAN, NAN], nan_ok=True)


def test_nothing_is_defined_where_both_means_are_0() -> None:
    assert np.isnan(found([0.0, 0.0, NAN], [0.0, 0.0, 1.0])).all()


@pytest.mark.parametrize("audit", [small(), clear(), three(), uneven()], ids=["toy", "clear", "three", "no twins"])
def test_parts_add_up_to_the_relative_delta_of_the_audit(audit) -> None:
    for tilt in audit.tilts:
        each = contributions(audit, tilt.run, tilt.measure, tilt.a, tilt.b)
        assert each.shape == (len(audit.queries),)
        assert int((~np.isnan(each)).sum()) in (tilt.queries, 0)
        assert np.nansum(each) == pytest.approx(0.0 if np.isnan(tilt.value) else tilt.value, abs=1e-9)


_values = st.lists(
    st.tuples(*[st.one_of(st.just(NAN), st.floats(0, 1, allow_subnormal=False))] * 2), min_size=1, max_size=30
)


@settings(max_examples=60)
@given(_values)
def test_parts_add_up_to_the_delta_of_the_means_over_queries_with_both_sides(pairs) -> None:
    a, b = (np.array(side) for side in zip(*pairs, strict=True))
    both = [(x, y) for x, y in pairs if x == x and y == y]
    means = np.mean([x for x, _ in both] or [0]), np.mean([y for _, y in both] or [0])
    each = parts(a, b)
    if sum(means) == 0:
        assert np.isnan(each).all()
    else:
        assert np.nansum(each) == pytest.approx(200 * (means[0] - means[1]) / (means[0] + means[1]), abs=1e-9)


@settings(max_examples=60)
@given(_values)
def test_swapping_the_sides_negates_every_part_exactly(pairs) -> None:
    a, b = (np.array(side) for side in zip(*pairs, strict=True))
    np.testing.assert_array_equal(parts(a, b), -parts(b, a))


@pytest.mark.parametrize(
    ("run", "name", "a", "b", "message"),
    [
        ("third", "nDCG@1", "human", "llm", "unknown run 'third'"),
        ("first", "nDCG@2", "human", "llm", "unknown measure 'nDCG@2'"),
        ("first", "nDCG@1", "people", "llm", "unknown group 'people'"),
        ("first", "nDCG@1", "human", "bot", "unknown group 'bot'"),
    ],
)
def test_unknown_names_are_refused_with_the_known_ones(run: str, name: str, a: str, b: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        contributions(small(), run, name, a, b)
    assert "valid: " in str(error.value)
