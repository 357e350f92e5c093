"""Next steps in words: commands to type after a result, each with its purpose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ranktilt.auditing.answer.next_steps import SHOWN, NextStep, StepKind
from ranktilt.reporting.document import NextCommand

_STEP_WORDS: dict[StepKind, str] = {
    "check": "Check that the comparison is fair",
    "explain": "See what goes with it",
    "twins": "See which twin ranks higher",
    "mitigate": "Reduce the tilt",
    "keep": "Keep it this way in CI",
    "fail": "Fail a build on this tilt in CI",
    "card": "Ask other questions, some with more power",
}
"""Purpose of a command, by the kind of its step."""
_OUTPUT_OPTIONS = ("--format", "--json", "--output", "-o")
"""Options of the output with a value, which a step does not repeat."""
_OUTPUT_FLAGS = ("--quiet",)
"""Options of the output without a value."""


def step_words(step: NextStep) -> str:
    """Say what a command is for."""
    if step.kind == "queries":
        return (
            f"About {step.needed:,} queries in all (you have {step.queries:,}) would find a tilt "
            f"of ±{SHOWN:g} points four times in five; audit again with more"
        )
    # A control takes a confound away, such as a difference in length, and ranks again.
    words = _STEP_WORDS[step.kind]
    return f"{words}, after control {step.control}" if step.control else words


def next_commands(steps: Iterable[NextStep]) -> tuple[NextCommand, ...]:
    """Return next steps as documents hold them."""
    return tuple(NextCommand(text=step_words(step), command=step.command) for step in steps)


def command_rows(commands: Iterable[NextCommand]) -> list[dict[str, str]]:
    """Return next commands as files list them."""
    return [{"text": step.text, "command": step.command} for step in commands]


def step_row(step: NextStep) -> dict[str, Any]:
    """Return a next step as files list it."""
    return {"text": step_words(step), "command": step.command}


def without_output(words: Sequence[str]) -> list[str]:
    """Leave out of a command the options that say where its result goes, to type it again."""
    with_value = tuple(f"{option}=" for option in _OUTPUT_OPTIONS)  # as --json=FILE
    kept_words = list[str]()
    is_value = False  # whether this word is the value of the option before
    for word in words:
        if is_value:
            is_value = False
        elif word in _OUTPUT_OPTIONS:
            is_value = True
        elif word not in _OUTPUT_FLAGS and not word.startswith(with_value):
            kept_words.append(word)
    return kept_words
