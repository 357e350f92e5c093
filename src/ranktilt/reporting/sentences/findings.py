"""Findings, next steps, and why a result cannot vary: parts of the documents of many results.

A *finding* is a statement of a result, with what it needs to be sorted and coloured. A *next step*
is a command to type after a result; in words it has its purpose too. A list *cannot vary* if the
ranker had no choice, as where all documents have the same score. A result that is made of such
lists is near neutral whatever the ranker favours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ranktilt.auditing.answer.next_steps import SHOWN, NextStep, StepKind
from ranktilt.auditing.answer.verdict import FindingKind, Verdict, finding_order
from ranktilt.errors import join_words
from ranktilt.reporting.document import NextCommand
from ranktilt.reporting.sentences.grammar import share_of_all
from ranktilt.reporting.tones import Tone
from ranktilt.statistics.variation import Reason, Variation

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
_REASON_WORDS: Mapping[Reason, str] = {
    "single": "there is only one document",
    "tied": "all documents have the same score",
    "whole": "all documents are within the first ranks",
    "repeated": "the documents are the same as for most other queries, in the same order",
    "unread": "the model's answer could not be read",
    "returned": "the model returned the order it was shown",
    "position": "the choice follows the order in which the documents were shown",
    "constant": "all documents get the same grade",
}
"""Words for a list, a pair or the grades of a query that cannot vary, by the reason."""
_UNITS: Mapping[Reason, tuple[str, str]] = {
    "position": ("pair", "pairs"),
    "constant": ("query", "queries"),
}
"""Singular and plural of what is counted, by the reason; lists for all others."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A statement of a result, such as whom a run favours, and how much it matters."""

    kind: FindingKind
    """Kind of the statement: ``favours``, ``level``, ``described`` and so on."""
    sentence: str
    """The statement."""
    size: float = 0.0
    """Size by which findings of one kind are sorted, mostly the distance from neutral in margins.
    """
    run: str = ""
    """Name of the ranker, judge or kind of pairs that it is about; empty for none."""
    verdict: Verdict | None = None
    """Verdict that the sentence says; None if it says something else."""
    tone: Tone = ""
    """Tone of the sentence, which gives its colour; empty for the tone of its kind."""

    @property
    def order(self) -> tuple[int, float]:
        """Sort key among findings: by kind, and the largest first."""
        return finding_order(self.kind, self.size)


def sort_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort findings by kind and size; equal ones stay in the order that they have."""
    return tuple(sorted(findings, key=lambda finding: finding.order))


def first_finding(findings: Sequence[Finding], nothing: str = "Nothing was compared.") -> Finding:
    """Return the first finding, with a full stop, as a headline.

    Without findings the headline is the sentence `nothing`.
    """
    if not findings:
        return Finding(kind="described", sentence=nothing)
    first = findings[0]
    sentence = f"{first.sentence.removesuffix('.')}."
    return Finding(kind=first.kind, size=first.size, sentence=sentence)


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
    return [{"text": command.text, "command": command.command} for command in commands]


def without_output(words: Sequence[str]) -> list[str]:
    """Leave out of a command the options that say where its result goes, to type it again."""
    # A value may be joined to its option: --json=FILE, and -oFILE for a short one.
    joined = tuple(
        f"{option}=" if option.startswith("--") else option for option in _OUTPUT_OPTIONS
    )
    kept_words = list[str]()
    is_value = False  # whether this word is the value of the option before
    for word in words:
        if is_value:
            is_value = False
        elif word in _OUTPUT_OPTIONS:
            is_value = True
        elif word not in _OUTPUT_FLAGS and not word.startswith(joined):
            kept_words.append(word)
    return kept_words


def variation_words(variation: Variation) -> str:
    """Say what cannot vary, and how often.

    Such as ``all documents have the same score in 24 of 24 lists``.
    """
    if not variation.total:
        return "no list contains a document of these groups"
    parts = [
        f"{_REASON_WORDS[reason]} in "
        f"{share_of_all(number, variation.total, *_UNITS.get(reason, ('list', 'lists')))}"
        for reason, number in variation.fixed.items()
    ]
    return join_words(parts)
