"""The commands that keep the correction a bench chose, or apply one all the same.

A bench tries candidates: corrections of a ranker that favours a side, each one method at one
strength. It chooses one that keeps the margin of the tilt and the budget of the cost, or none.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from ranktilt.errors import join_words
from ranktilt.mitigation.bench_result import Bench, Candidate, Choice
from ranktilt.reporting.document import NextCommand

RUN_OPTION, RANKER_OPTION = "--save-run", "--save-ranker"
"""Options that write the corrected run, or the corrected ranker."""
_METHOD = "--method"
"""Option that names a method."""
_FORCE = ("--set", "mitigate.always=true")
"""Words of a command that applies the nearest correction even if none is shown to be enough."""


def bench_next_commands(bench: Bench) -> tuple[NextCommand, ...]:
    """Return the command that writes a correction to a file, or that applies one all the same.

    Empty for a bench that no command made, or whose command wrote it already.
    """
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
    """Say what to change in a command that applied nothing; empty for a ranker that is level.

    `words` are those of the command.
    """
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
    """Return a command that applies, in any case, the method which comes nearest to level."""
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
    is_value = False  # whether this word is the value of the option before
    for word in words:
        if is_value:
            is_value = False
        elif word == option:
            is_value = True
        elif not word.startswith(f"{option}="):
            others.append(word)
    return others
