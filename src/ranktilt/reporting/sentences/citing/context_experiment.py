"""Experiments with contexts in words: whether the version, its label or its position decides.

A model answers a query from a context, the documents of its prompt, which holds two versions of one
text. Versions are exchanged, or the labels that name their authors, or positions. An effect is the
answer to one such question: of the answers that cite only one of both, the share that cites one
side, which is neutral at 50 %. Within a margin of that it counts as level. The verdict says which
side is shown to be favoured, and a finding is a sentence with its kind and size.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from typing import Any

from ranktilt.auditing.answer.command_words import json_file
from ranktilt.auditing.answer.verdict import FindingKind
from ranktilt.auditing.effects import FEWEST
from ranktilt.citing.experiment.result import ContextEffect, ContextExperiment
from ranktilt.measures.printing import rounded
from ranktilt.reporting.document import NextCommand
from ranktilt.reporting.sentences.findings import (
    Finding,
    first_finding,
    sort_findings,
    without_output,
)
from ranktilt.reporting.tones import Tone

QUESTION_WORDS = {
    "version": "version",
    "label": "label of the same text",
    "position": "position",
}
"""What is exchanged, by the question."""
LABEL_WORDS = {
    "none": "not shown",
    "true": "true",
    "swapped": "swapped",
    "both": "true and swapped",
    "all": "all",
}
"""Which labels were shown, by their key; ``both`` and ``all`` put answers together."""


def effect_findings(experiment: ContextExperiment) -> tuple[Finding, ...]:
    """Return the verdict on each primary question; those that name a side come first."""
    return sort_findings(_finding(experiment, effect) for effect in experiment.primary)


def _finding(experiment: ContextExperiment, effect: ContextEffect) -> Finding:
    """Return the verdict on one effect as a finding; its size is in margins."""
    verdict = effect.verdict(experiment.margin)
    kind: FindingKind = "favours" if verdict in ("a", "b") else verdict  # type: ignore[assignment]
    size = abs(effect.value - effect.neutral) / (experiment.margin or 1.0)  # in points without one
    sentence = effect_sentence(experiment, effect)
    return Finding(
        kind=kind,
        sentence=sentence,
        size=0.0 if math.isnan(size) else size,
        tone=effect_tone(experiment, effect),
    )


def effect_tone(experiment: ContextExperiment, effect: ContextEffect) -> Tone:
    """Return the tone of a verdict: of the side that is favoured, good, or unsure."""
    tones: dict[str, Tone] = {"a": "first", "b": "second", "level": "good"}
    return tones.get(effect.verdict(experiment.margin), "unsure")


def leading_finding(experiment: ContextExperiment) -> Finding:
    """Return the finding that leads."""
    return first_finding(effect_findings(experiment), nothing="nothing was compared.")


def derived_words(experiment: ContextExperiment) -> dict[str, Any]:
    """Return the verdicts as sentences, which the saved file holds besides the fields."""
    return {"verdicts": [finding.sentence for finding in effect_findings(experiment)]}


def effect_sentence(experiment: ContextExperiment, effect: ContextEffect) -> str:
    """Say which of two versions, labels or positions is cited more often, or why that is open."""
    verdict = effect.verdict(experiment.margin)
    if verdict in ("a", "b"):
        return f"{_size_sentence(effect, effect.side(verdict))} (corrected p {_p(effect)})."
    if verdict == "level":
        size = _size_sentence(effect, effect.a)
        return f"{size}: level, within ±{experiment.margin:g} points of 50 %."
    return f"Inconclusive: {_open_reason(effect)}"


def _size_sentence(effect: ContextEffect, side: str) -> str:
    """Say in which share of the deciding cases a side is cited; these cite only one of both."""
    share, low, high = effect.value, effect.low, effect.high
    if side == effect.b:
        # The value is the share of a. With the share, the ends of its interval change places.
        share, low, high = 100 - share, 100 - high, 100 - low
    interval = "" if math.isnan(low) else f" [{rounded(low, 1)}, {rounded(high, 1)}]"
    number = f"{rounded(share, 1)} %{interval}"
    if effect.question == "label":
        return (
            f"Where its label alone decides whether a text is cited, it is cited as {side} in "
            f"{number} of the cases"
        )
    if effect.question == "position":
        return (
            f"Where an answer cites only one of two versions, it is the one shown {side} in "
            f"{number} of the cases"
        )
    label = "" if effect.labels == "none" else f" (labels: {LABEL_WORDS[effect.labels]})"
    return (
        f"Where an answer cites only one of two versions{label}, it is the {side} one in {number} "
        "of the cases"
    )


def _open_reason(effect: ContextEffect) -> str:
    """Say why a question stays open: nothing decided, few queries, or a wide interval."""
    if math.isnan(effect.value):
        both = "both labels" if effect.question == "label" else "both versions"
        return f"the answers cite a text with {both}, or with neither, so that nothing is decided."
    if not effect.is_testable:
        number = rounded(effect.effective_n, 1)
        return (
            f"{number} effective queries or documents decide, and a verdict needs {FEWEST}; ask "
            "more queries."
        )
    size = _lower_first(_size_sentence(effect, effect.a))
    return (
        f"{size}. These queries would find a share {rounded(effect.detectable, 1)} points from "
        "50 % four times in five, and a smaller difference less often."
    )


def _p(effect: ContextEffect) -> str:
    """Print a corrected p without the 0 before its point."""
    p = effect.p_corrected
    return "< .001" if p < 0.001 else rounded(p, 3).removeprefix("0")


def experiment_meaning(experiment: ContextExperiment) -> str:
    """Say what the verdicts mean for somebody who reads nothing else."""
    margin = experiment.margin
    verdicts = {effect.question: effect.verdict(margin) for effect in experiment.primary}
    version, label = experiment.effect("version"), experiment.effect("label")
    if version is not None and verdicts.get("version") in ("a", "b"):
        side = version.side(str(verdicts["version"]))
        return (
            f"Both versions say the same, and {experiment.model} cites the {side} one more often. "
            "Do not take its citations for quality alone."
        )
    if label is not None and verdicts.get("label") in ("a", "b"):
        side = label.side(str(verdicts["label"]))
        return (
            f"{experiment.model} cites the same text more often where it is said to be {side}. "
            "Leave authors out of the prompt if they should not count."
        )
    if "inconclusive" in verdicts.values():
        return (
            "These answers cannot tell whether a side is favoured. That is neither a tilt nor its "
            "absence: ask more queries before you decide."
        )
    return "Neither side is favoured by more than the margin, where contexts are otherwise equal."


def position_sentences(experiment: ContextExperiment) -> Iterator[str]:
    """Say whether the position of a version decides, which is no primary question."""
    effect = experiment.effect("position")
    if effect is None or math.isnan(effect.value):
        return
    verdict = effect.verdict(experiment.margin)
    balance = "Each version is shown in both positions, so this favours neither side."
    if verdict in ("a", "b"):
        size = _size_sentence(effect, effect.side(verdict))
        yield f"Position counts: {_lower_first(size)} (corrected p {_p(effect)}). {balance}"
    else:
        size = _size_sentence(effect, effect.a)
        yield f"Position: {_lower_first(size)}. {balance}"


def _lower_first(text: str) -> str:
    """Begin a text with a small letter, to put it into a sentence."""
    return text[:1].lower() + text[1:]


def experiment_steps(experiment: ContextExperiment) -> Iterator[NextCommand]:
    """Yield commands to type next: a gate, and the same experiment with labels."""
    verdicts = [effect.verdict(experiment.margin) for effect in experiment.primary]
    command = str(experiment.spec.get("command", ""))
    saved_file = json_file(command, "experiment.json")
    gate = f"ranktilt gate {shlex.quote(saved_file)} --max-tilt 5"
    if "a" in verdicts or "b" in verdicts:
        yield NextCommand(text="Fail a build on this tilt in CI", command=gate)
    elif "level" in verdicts:
        yield NextCommand(text="Keep it this way in CI", command=gate)
    if command and "label" not in {effect.question for effect in experiment.effects}:
        words = without_output(shlex.split(command))
        labels = [label for label in ("true", "swapped") if label not in experiment.shown_labels]
        for label in labels:
            words += ["--show-label", label]
        text = "See whether the author's name decides"
        yield NextCommand(text=text, command=shlex.join(words))
