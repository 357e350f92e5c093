"""Progress: steps reach whoever listens, and nobody else."""

import contextvars
import sys
import types
from typing import Any

import pytest

from ranktilt import progress
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


def test_a_notebook_shows_one_output_a_cell_that_is_redrawn_and_empty_at_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outputs: list[list[str]] = []
    clock = iter(range(100))
    shell = types.SimpleNamespace(kernel=None, execution_count=1)

    def display(picture: dict[str, str], **options: Any) -> Any:
        outputs.append([picture["text/html"]])
        return types.SimpleNamespace(
            update=lambda picture, raw: outputs[-1].append(picture["text/html"])
        )

    notebook = types.SimpleNamespace(
        get_ipython=lambda: shell, display=types.SimpleNamespace(display=display)
    )
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setattr(progress, "_bars", None)
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    for done in range(4):
        report("<b>", done, 3)
    report("broken off", 0, 2)
    report("broken off", 1, 2)
    shell.execution_count = 2
    report("next", 0, 4)
    report("next", 1, 4)
    bars = (
        '<div><progress value="0.333" max="1"></progress> 33% &lt;b&gt;</div>',
        '<div><progress value="0.667" max="1"></progress> 67% &lt;b&gt;</div>',
    )
    assert outputs[0] == [
        *bars,
        "",
        '<div><progress value="0.500" max="1"></progress> 50% broken off</div>',
    ]
    assert outputs[1:] == [['<div><progress value="0.250" max="1"></progress> 25% next</div>']]
    del shell.kernel  # IPython in a terminal
    report("more", 0, 2)
    report("more", 1, 2)
    assert len(outputs) == 2
