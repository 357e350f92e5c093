"""Progress: steps reach whoever listens, and nobody else."""

import contextvars

import pytest

from ranktilt.progress import Listener, listening, report

Step = tuple[str, int, int]


def collector() -> tuple[list[Step], Listener]:
    steps: list[Step] = []
    return steps, lambda label, done, total: steps.append((label, done, total))


def test_a_listener_hears_each_step_in_order_until_it_ends_also_by_an_error() -> None:
    steps, listener = collector()
    report("early", 1, 1)
    with listening(listener):
        report("encode", 0, 2)
        report("encode", 2, 2)
    with pytest.raises(ValueError, match="stop"), listening(listener):
        raise ValueError("stop")
    report("late", 1, 1)
    assert steps == [("encode", 0, 2), ("encode", 2, 2)]


def test_the_inner_listener_hears_alone_and_only_in_its_own_context() -> None:
    outer, to_outer = collector()
    inner, to_inner = collector()
    elsewhere = contextvars.copy_context()
    with listening(to_outer):
        with listening(to_inner):
            report("a", 1, 1)
            elsewhere.run(report, "other", 1, 1)
        report("b", 1, 1)
    assert inner == [("a", 1, 1)]
    assert outer == [("b", 1, 1)]
