"""Sentences about next steps: the purpose of each command."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ranktilt.auditing.answer.next_steps import SHOWN, NextStep, StepKind
from ranktilt.reporting.document import NextCommand

_WORDS: dict[StepKind, str] = {
    "check": "Is it a fair comparison at all",
    "explain": "What goes with it",
    "twins": "Which twin stands higher",
    "mitigate": "Level it",
    "keep": "Keep it so in CI",
    "fail": "Fail a build on it in CI",
    "card": "Other questions, some with more power",
}


def step_words(step: NextStep) -> str:
    """Say what a command is for."""
    if step.kind == "queries":
        return (
            f"Some {step.needed:,} queries like these {step.queries:,} would show ±{SHOWN:g} "
            "points; with more of them, audit again"
        )
    words = _WORDS[step.kind]
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
