"""The meaning of an audit of judges, for somebody who has to choose one, and next steps."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from ranktilt.errors import join_words
from ranktilt.judging.records import GAP_MARGIN
from ranktilt.judging.result import JudgeAudit
from ranktilt.reporting.document import NextCommand
from ranktilt.reporting.sentences.judging.standings import Contest, main_contest

_MOST_NAMED = 3
_HALFWAY_KAPPA = 0.5
"""Where κ is as far from chance, 0, as from full agreement, 1."""
_PROPOSED_LABELS = 500
"""Human labels that a next step proposes."""


def meaning_sentence(audit: JudgeAudit) -> str:
    """Say which judges to take and which to avoid, and how far even the best is from humans."""
    by_chance = _by_chance(audit)
    partial_judges = _partial_judges(audit)
    judges = main_contest(audit)
    parts = list[str]()
    if by_chance:
        parts.append(f"{_few_names(by_chance)} may agree with humans only by chance")
    if judges is not None:
        parts.append(_choice(judges, {*by_chance, *partial_judges}))
    if partial_judges:
        verb = "favours" if len(partial_judges) == 1 else "favour"
        parts.append(
            f"{_few_names(partial_judges)} {verb} a side, so use another judge to compare these "
            "sides"
        )
    parts += _distance_from_humans(audit)
    return " ".join(f"{part}." for part in parts)


def _by_chance(audit: JudgeAudit) -> list[str]:
    """Return the judges whose κ may be 0."""
    return [standing.judge for standing in audit.standings_by("kappa", "") if standing.low <= 0]


def _partial_judges(audit: JudgeAudit) -> list[str]:
    """Return the judges that favour a source or a family, or the others against it."""
    favouring = [
        effect.run for effect in audit.main_gaps if effect.side(effect.verdict(GAP_MARGIN))
    ]
    favouring += [
        preference.judge
        for preference in audit.preferences
        if preference.verdict in ("favours", "disfavours")
    ]
    return list(dict.fromkeys(favouring))


def _few_names(names: Sequence[str]) -> str:
    """Name some judges, or say how many they are."""
    return join_words(names) if len(names) <= _MOST_NAMED else f"{len(names)} judges"


def _choice(judges: Contest, excluded: set[str]) -> str:
    """Say which judges to take: none that may agree by chance, or that favours a side."""
    if not judges.is_tested:
        return "Grade more queries before you choose among these judges"
    candidates = [name for name in judges.names if name not in excluded]
    if not candidates:
        return "Use none of the judges that agree best"
    if len(candidates) == 1:
        return f"Use {candidates[0]}"
    if len(candidates) <= _MOST_NAMED:
        names = join_words(candidates, "or")
        return f"Use {names}; these grades give no reason to prefer one of them"
    if not judges.worse:
        others = "the other" if len(candidates) < len(judges.names) else "these"
        return (
            f"These grades give no reason to prefer one of {others} {len(candidates)} judges, so "
            "choose by price"
        )
    return (
        f"Use {candidates[0]}, or a cheaper one of the {len(candidates) - 1} others that these "
        "grades cannot distinguish from it"
    )


def _distance_from_humans(audit: JudgeAudit) -> Iterator[str]:
    """Say that even the best judge is far from humans, where it is."""
    standings = audit.standings_by("kappa", "")
    if not standings or not standings[0].high < _HALFWAY_KAPPA:
        return
    judge = "Even the best" if len(standings) > 1 else standings[0].judge
    yield (
        f"{judge} is closer to chance (κ 0) than to full agreement (κ 1), so let humans check what "
        "matters"
    )


def judge_next_commands(audit: JudgeAudit) -> tuple[NextCommand, ...]:
    """Return the next commands for the judge that agrees best; you fill in words in capitals."""
    if not audit.agreements:
        return ()
    steps = []
    if not audit.rank_agreements:
        command = _command(audit, "--runs", "RUNS")
        steps.append(
            NextCommand(text="See whether it orders systems as humans do", command=command)
        )
    elif not audit.corrected:
        command = f"{_command(audit, '--runs', 'RUNS')} --human-sample {_PROPOSED_LABELS}"
        steps.append(NextCommand(text="See what a few human labels repair", command=command))
    limit = ""
    if audit.rank_agreements:
        limit = "--min-tau .8"
    elif audit.main_gaps:
        limit = "--max-gap .1"
    if limit:
        text = "Set a limit for it in CI"
        steps.append(NextCommand(text=text, command=f"ranktilt gate judge.json {limit}"))
    return tuple(steps)


def _command(audit: JudgeAudit, *options: str) -> str:
    """Return the command that judges again, with other options."""
    judge = audit.standings_by("kappa", "")[0].judge
    human = audit.spec.get("human") or "HUMAN"
    file = audit.spec["judges"].get(judge) or "JUDGE"
    return shlex.join(["ranktilt", "judge", "--human", human, "--judge", file, *options])
