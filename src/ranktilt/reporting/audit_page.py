"""An audit as one HTML page: which ranker tilts, how surely, on which queries, and what else could explain it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.result import Audit
from ranktilt.auditing.verdict import Verdict as Judged
from ranktilt.errors import counted, listed
from ranktilt.reporting.audit_method import audit_notes
from ranktilt.reporting.audit_sections import audit_sections
from ranktilt.reporting.card import conflict_sentences
from ranktilt.reporting.controls import control_sentences
from ranktilt.reporting.layout import percent
from ranktilt.reporting.page import Page, Tone, Verdict
from ranktilt.reporting.provenance import folder
from ranktilt.reporting.reload import Opened

_MOST_NAMED = 2
_MOST_SUMMED = 4
_MOST_VERDICTS = 16
_MOST_AT_ONCE = 6
Kind = Literal["favours", "level", "inconclusive"]
_ALL: dict[Kind, str] = {"favours": "favour one side", "level": "are level", "inconclusive": "are inconclusive"}


def audit_contents(opened: Opened, *, texts: bool = True) -> Page:
    """Return what the page of an audit says, so that it can also stand beside other results."""
    audit = opened.audit
    name = folder(audit.spec)
    return Page(
        title=f"Audit of {name}" if name else "Audit",
        kind=f"Audit of {name}" if name else "Audit of rankers",
        headline=audit_headline(audit),
        verdicts=audit_verdicts(audit),
        sections=tuple(audit_sections(opened, texts=texts)),
        notes=audit_notes(audit),
    )


def audit_headline(audit: Audit) -> str:
    """Say in one sentence what an audit found on its primary measure.

    Parameters
    ----------
    audit : Audit
        What was found.

    Returns
    -------
    str
        How many rankers favour which side, are level, or are inconclusive; few are named.
    """
    pairs = _judged_pairs(audit)
    if not pairs:
        return _ungrouped(audit)
    asked = _asked(audit)
    where = f"On {asked}, " if asked else ""
    said = _summed(audit, pairs[0]) if len(pairs) == 1 else _all_pairs(audit, pairs)
    return f"{where}{said}."


def audit_verdicts(audit: Audit) -> tuple[Verdict, ...]:
    """Give one line a ranker and pair, as the terminal prints them, with its tone; then conflicts and controls.

    Parameters
    ----------
    audit : Audit
        What was found.

    Returns
    -------
    tuple of Verdict
        16 lines of rankers at most, those that favour a side first where there are many; from the seventh on they
        are asides.
    """
    pairs = _judged_pairs(audit)
    lines = [_line(audit, run, pair, many=len(audit.pairs) > 1) for run in audit.runs for pair in pairs]
    shown = lines
    if len(lines) > _MOST_AT_ONCE:
        shown = sorted(lines, key=lambda line: line.tone not in ("first", "second"))[:_MOST_VERDICTS]
        shown = [replace(line, aside=place >= _MOST_AT_ONCE) for place, line in enumerate(shown)]
    if len(lines) > _MOST_VERDICTS:
        left = counted(len(lines) - _MOST_VERDICTS, "more verdict", "more verdicts")
        shown.append(Verdict(f"{left}: see the tables.", "", aside=True))
    told = (Verdict(_ended(text), "unsure") for text in (*conflict_sentences(audit), *control_sentences(audit)))
    return (*shown, *told)


def _asked(audit: Audit) -> str:
    """What verdicts rest on: the primary measure, or the card's question where nothing is judged."""
    first = audit.primary
    return "" if first is None else first.title


def _judged_pairs(audit: Audit) -> tuple[Pair, ...]:
    return audit.tilted_pairs if audit.measures else audit.pairs


def _line(audit: Audit, run: str, pair: Pair, *, many: bool) -> Verdict:
    found = audit.verdict(run, *pair)
    prefix = f"{pair[0]} | {pair[1]}: " if many else ""
    return Verdict(_ended(f"{prefix}{found.sentence}"), _tone(found, pair))


def _tone(found: Judged, pair: Pair) -> Tone:
    if found.kind == "favours":
        return "first" if found.favours == pair[0] else "second"
    return "good" if found.kind == "level" else "unsure"


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith(".") else f"{sentence}."


def _summed(audit: Audit, pair: Pair) -> str:
    """What is said of all rankers for one pair, such as: a and b favour human text, 3 of 5 rankers are inconclusive."""
    noun = "text" if audit.spec.get("by") == "source" else "documents"
    found = {run: audit.verdict(run, *pair) for run in audit.runs}
    parts = []
    for words, plural, members in (
        (f"favours {pair[0]} {noun}", f"favour {pair[0]} {noun}", _of(found, "favours", pair[0])),
        (f"favours {pair[1]} {noun}", f"favour {pair[1]} {noun}", _of(found, "favours", pair[1])),
        ("is level", "are level", _of(found, "level")),
        ("is inconclusive", "are inconclusive", _of(found, "inconclusive")),
    ):
        if members:
            parts.append(f"{_who(members, audit.runs)} {words if len(members) == 1 else plural}")
    return "; ".join(parts)


def _of(found: dict[str, Judged], kind: str, favours: str | None = None) -> list[str]:
    return [run for run, one in found.items() if one.kind == kind and one.favours == favours]


def _who(members: Sequence[str], runs: Sequence[str]) -> str:
    if len(members) <= _MOST_NAMED:
        return " and ".join(members)
    return f"all {len(runs)} rankers" if len(members) == len(runs) else f"{len(members)} of {len(runs)} rankers"


def _all_pairs(audit: Audit, pairs: Sequence[Pair]) -> str:
    """What is said over several pairs: of each ranker where they are few, else of all of them together."""
    kinds = {run: Counter(audit.verdict(run, *pair).kind for pair in pairs) for run in audit.runs}
    if len(audit.runs) <= _MOST_SUMMED:
        return "; ".join(f"{run} {_listed(found, len(pairs), 'pairs of groups')}" for run, found in kinds.items())
    total = sum(kinds.values(), Counter[Kind]())
    where = f"{len(audit.runs)} rankers, {len(pairs)} pairs of groups"
    counts = (
        (total["favours"], "favours one side", "favour one side"),
        (total["level"], "is level", "are level"),
        (total["inconclusive"], "is inconclusive", "are inconclusive"),
    )
    parts = [f"{count} {one if count == 1 else more}" for count, one, more in counts if count]
    if len(parts) == 1:
        return f"all {total.total()} comparisons ({where}) {_ALL[next(iter(total))]}"
    return f"of {total.total()} comparisons ({where}) {listed(parts)}"


def _listed(kinds: Counter[Kind], of: int, what: str) -> str:
    words: dict[Kind, str] = {
        "favours": "favours one side",
        "level": "is level",
        "inconclusive": "is inconclusive",
    }
    parts = [f"{said} in {kinds[kind]}" for kind, said in words.items() if kinds[kind]]
    if len(parts) == 1:
        return f"{parts[0].rpartition(' ')[0]} all {of} {what}"
    parts[0] += f" of {of} {what}"
    return listed(parts)


def _ungrouped(audit: Audit) -> str:
    name = repr(audit.measures[0])
    means = audit.by_group().filter(group=ALL, measure=name)["mean"].to_list()
    if len(means) == 1:
        return f"{audit.runs[0]}: {name} {percent(means[0])} %; no groups were compared."
    best = max(range(len(means)), key=lambda place: (means[place] == means[place], means[place]))
    first = f"{audit.runs[best]} has the highest mean of {len(means)} rankers: {name} {percent(means[best])} %"
    return f"{first}; no groups were compared."
