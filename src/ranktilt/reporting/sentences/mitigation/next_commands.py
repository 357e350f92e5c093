"""The commands that keep what a bench chose, or apply a correction all the same."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from ranktilt.errors import join_words
from ranktilt.mitigation.bench_result import Bench, Candidate, Choice
from ranktilt.reporting.document import NextCommand

RUN_OPTION, RANKER_OPTION = "--save-run", "--save-ranker"
"""Options that write what was chosen."""
_METHOD = "--method"
"""Option that names a method."""
_FORCE = ("--set", "mitigate.always=true")
"""Words that correct even where nothing is shown."""


def bench_next_commands(bench: Bench) -> tuple[NextCommand, ...]:
    """Return what to do with a bench that a command made and kept nothing of; nothing of others."""
    words = shlex.split(str(bench.spec.get("command") or ""))
    if not words or any(word.startswith((RUN_OPTION, RANKER_OPTION)) for word in words):
        return ()
    ranker = bench.baseline.ranker
    is_run = ranker.startswith("replay:") and ">>" not in ranker
    target = "run" if is_run else "ranker"
    option = [RUN_OPTION, "mitigated.trec"] if is_run else [RANKER_OPTION, "mitigated"]
    if bench.choose().applied is not None:
        command = shlex.join([*words, *option])
        return (NextCommand(text=f"Write the corrected {target}", command=command),)
    has_candidates = bool(bench.methods)
    forced = [*forced_words(bench, words), *(option if has_candidates else [])]
    purpose = "Apply a correction" if has_candidates else "Try corrections"
    return (NextCommand(text=f"{purpose} all the same", command=shlex.join(forced)),)


def ways_on(bench: Bench, words: Sequence[str]) -> str:
    """Say what to change in a command that applied nothing; empty where nothing is tilted."""
    outcome = bench.choose().outcome
    if outcome == "level":
        return ""
    ways = ["take more queries" if outcome == "inconclusive" else _wider_limit(bench)]
    has_method = any(word.partition("=")[0] == _METHOD for word in words)
    if bench.methods and has_method:
        ways.append(f"try other methods (omit {_METHOD})")
    ways.append(f"apply a correction all the same ({' '.join(_FORCE)})")
    return join_words(ways, "or")


def _wider_limit(bench: Bench) -> str:
    """Name the limit that the candidate nearest to level exceeds: the margin, or the budget."""
    is_affordable = exceeds_margin_alone(bench.choose())
    return "set a wider --margin" if is_affordable else "allow a higher --budget"


def exceeds_margin_alone(choice: Choice) -> bool:
    """Return whether the nearest candidate leaves too much tilt, at a cost within limits."""
    checks = () if choice.nearest is None else choice.checks[choice.nearest.name]
    exceeded = [check for check in checks if check.outcome == "tilted"]
    return bool(exceeded) and not any(check.is_cost for check in exceeded)


def forced_words(bench: Bench, words: Sequence[str]) -> list[str]:
    """Return a command with the one method that comes nearest to level, applied in any case."""
    nearest = bench.choose().nearest
    if nearest is not None and len(bench.methods) > 1:
        words = [*_without_option(words, _METHOD), _METHOD, _method_text(bench, nearest)]
    return [*words, *_FORCE]


def _method_text(bench: Bench, candidate: Candidate) -> str:
    """Return a candidate's method with its options, as it was typed."""
    texts = map(str, bench.spec["mitigation"]["methods"])
    return next(text for text in texts if text.partition("(")[0] == candidate.method)


def _without_option(words: Sequence[str], option: str) -> list[str]:
    """Leave an option out of a command, with its values."""
    others = list[str]()
    is_value = False
    for word in words:
        if is_value:
            is_value = False
        elif word == option:
            is_value = True
        elif not word.startswith(f"{option}="):
            others.append(word)
    return others
