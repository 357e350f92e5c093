"""Progress: steps reach whoever listens, and nobody else."""

import contextvars

import pytest

from ranktilt.progress import Listener, listening, report

Step = tuple[str, int, int]


def collector() -> tuple[list[Step], Listener]:
    steps: list[Step] = []
    return steps, lambda label, done, total: steps.append((label, done, total))


def test_a_listener_hears_each_step_in_order() -> None:
    steps, listener = collector()
    with listening(listener):
        report("encode", 0, 2)
        report("encode", 2, 2)
    assert steps == [("encode", 0, 2), ("encode", 2, 2)]


def test_a_listener_hears_nothing_before_or_after() -> None:
    steps, listener = collector()
    report("early", 1, 1)
    with listening(listener):
        pass
    report("late", 1, 1)
    assert steps == []


def test_the_inner_listener_hears_alone_and_the_outer_again_afterwards() -> None:
    outer, to_outer = collector()
    inner, to_inner = collector()
    with listening(to_outer):
        with listening(to_inner):
            report("a", 1, 1)
        report("b", 1, 1)
    assert inner == [("a", 1, 1)]
    assert outer == [("b", 1, 1)]


def test_an_error_ends_the_listening() -> None:
    steps, listener = collector()
    with pytest.raises(ValueError, match="stop"), listening(listener):
        raise ValueError("stop")
    report("late", 1, 1)
    assert steps == []


def test_a_listener_is_known_in_its_own_context_only() -> None:
    steps, listener = collector()
    elsewhere = contextvars.copy_context()
    with listening(listener):
        elsewhere.run(report, "other", 1, 1)
    assert steps == []
