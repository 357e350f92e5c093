"""The meaning of an audit of judges, for somebody who has to choose one, and next steps.

Judges are language models, say, that grade documents; they are compared with humans by κ, which is
0 for agreement by chance. A judge is partial if it favours a source of texts, or a family of the
systems that its grades evaluate. A standing is the agreement of one judge among all of them.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from ranktilt.errors import join_words
from ranktilt.judging.records import GAP_MARGIN
from ranktilt.judging.result import JudgeAudit
from ranktilt.reporting.document import NextCommand
from ranktilt.reporting.sentences.grammar import singular_or_plural
from ranktilt.reporting.sentences.judging.standings import Contest, main_contest

_MOST_NAMED = 3
"""Most judges that a sentence names; of more it gives the number."""
_HALFWAY_KAPPA = 0.5
"""Value of κ as far from chance, 0, as from full agreement, 1."""
_PROPOSED_LABELS = 500
"""Human labels that a suggested command asks for; the user may type another number."""


def meaning_sentence(audit: JudgeAudit) -> str:
    """Say which judges to take and which to avoid, and how far even the best is from humans."""
    chance_judges = _chance_judges(audit)
    partial_judges = _partial_judges(audit)
    judges = main_contest(audit)
    sentences = list[str]()
    if chance_judges:
        sentences.append(f"{_few_names(chance_judges)} may agree with humans only by chance")
    if judges is not None:
        sentences.append(_choice_sentence(judges, {*chance_judges, *partial_judges}))
    if partial_judges:
        favour = singular_or_plural(len(partial_judges), "favours", "favour")
        sentences.append(
            f"{_few_names(partial_judges)} {favour} a side, so use another judge to compare these "
            "sides"
        )
    sentences += _distance_from_humans(audit)
    return " ".join(f"{sentence}." for sentence in sentences)


def _chance_judges(audit: JudgeAudit) -> list[str]:
    """Return the judges whose κ is not shown to be above 0, that of agreement by chance."""
    return [standing.judge for standing in audit.standings_by("kappa", "") if standing.low <= 0]


def _partial_judges(audit: JudgeAudit) -> list[str]:
    """Return the judges that favour a source, or that favour or disfavour a family of systems."""
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
    """Name a few judges, or say how many there are."""
    return join_words(names) if len(names) <= _MOST_NAMED else f"{len(names)} judges"


def _choice_sentence(judges: Contest, excluded: set[str]) -> str:
    """Say which of the judges that agree best to use, without those that are excluded."""
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
    """Say that even the best judge is closer to chance than to humans; nothing where none is."""
    standings = audit.standings_by("kappa", "")
    if not standings or not standings[0].high < _HALFWAY_KAPPA:
        return
    judge = "Even the best" if len(standings) > 1 else standings[0].judge
    yield (
        f"{judge} is closer to chance (κ 0) than to full agreement (κ 1), so let humans check what "
        "matters"
    )


def judge_next_commands(audit: JudgeAudit) -> tuple[NextCommand, ...]:
    """Return commands to type next for the best judge; you fill in words in capitals."""
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
    """Return the command that compares the best judge with humans again, with more options."""
    judge = audit.standings_by("kappa", "")[0].judge
    human = audit.spec.get("human") or "HUMAN"
    file = audit.spec["judges"].get(judge) or "JUDGE"
    return shlex.join(["ranktilt", "judge", "--human", human, "--judge", file, *options])
