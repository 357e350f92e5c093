"""What to do after an audit: two or three steps, by rule from the verdicts, the design and what else differs."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from typing import Any, NamedTuple

from ranktilt.datasets.labels import LabelFile

Audit = Any
"""A `ranktilt.auditing.result.Audit`, whose JSON lists what to do next."""
SHOWN = 10.0
"""Points of tilt that queries should be able to show."""
_SIDED = ("cut-off endings", "boilerplate openings", "truncated")
_PAIRED = ("identical", "near-identical")
_UNFAIR = 0.05
"""Share of pairs that are too alike, or difference between the sides, from which texts should be checked first."""
_MOST = 3


class NextStep(NamedTuple):
    text: str
    command: str


def next_steps(audit: Audit) -> tuple[NextStep, ...]:
    """Say what to do next; nothing where it is not known what was read."""
    verdicts = audit.verdicts() if audit.pairs else []
    inputs = _inputs(audit)
    if not verdicts or not inputs:
        return ()
    steps = list[NextStep]()
    if (folder := _folder(audit)) and _unfair(audit):
        steps.append(_step("Is it a fair comparison at all", ["ranktilt", "check", folder]))
    tilted = [one for one in verdicts if one.kind == "favours"]
    open_ones = [one for one in verdicts if one.kind == "inconclusive"]
    if tilted:
        worst = max(tilted, key=lambda one: not one.slight)
        steps += _favoured(audit, worst.run, slight=worst.slight)
    elif open_ones:
        steps += _more_queries(audit, open_ones[0].run)
    else:
        steps.append(_gate(audit))
    return tuple(steps[:_MOST])


def _inputs(audit: Audit, run: str | None = None, *, verb: str = "audit") -> list[str]:
    """The words of a command that read the same collection or labels, and one run or all; none if they are unknown."""
    collection = audit.spec["collection"]
    folder, labels = _folder(audit), collection.get("labels")
    if not folder and not labels:
        return []
    words = ["ranktilt", verb, *([str(folder)] if folder else [])]
    for name, spec in zip(audit.runs, audit.spec["runs"], strict=False):
        if run is None or name == run:
            saved = str(spec.get("ranker", name)).startswith("replay:") and "file" in spec
            ranked = ["-r", str(spec.get("ranker", name))]
            words += ["--run", str(spec["file"])] if saved and verb != "explain" else ranked
    words += LabelFile(**{**collection.get("label_file", {}), "path": str(labels)}).words if labels else []
    names = collection.get("label_names", {}).items() if verb == "audit" else ()
    words += [word for value, name in names for word in ("--name", f"{value}={name}")]
    words += ["--qrels", str(collection["qrels"])] if collection.get("qrels") and verb != "explain" else []
    by, usual = audit.spec["by"], ("nDCG@10",) if audit.measures else ("HeadToHead", "Share@10")
    words += ["--by", str(by)] if by not in ("source", None) else []
    named = verb != "explain" and repr(audit.primary) not in usual
    return words + (["--primary", repr(audit.primary)] if named else [])


def _folder(audit: Audit) -> str | None:
    """The collection as it was loaded; None for one that was made in memory, as the bundled one."""
    collection = audit.spec["collection"]
    return str(collection["path"]) if collection.get("layout") and collection.get("path") else None


def _step(text: str, words: list[str], *more: str) -> NextStep:
    return NextStep(text, shlex.join([*words, *more]))


def _unfair(audit: Audit) -> bool:
    """Whether the sides of a collection cannot be compared as they are: missing twins, cut or repeated texts."""
    if audit.spec["by"] != "source" or not audit.confounds:
        return False
    if any(not e.twins for e in (*audit.tilts, *audit.estimates) if e.estimand.sided):
        return True
    alike = (one.value_a for one in audit.confounds if one.name in _PAIRED)
    apart = (abs(one.value_a - one.value_b) for one in audit.confounds if one.name in _SIDED)
    return any(share >= _UNFAIR for share in (*alike, *apart))


def _favoured(audit: Audit, run: str, *, slight: bool) -> Iterator[NextStep]:
    if audit.confounds and audit.spec["by"] == "source":
        moved = [one for one in audit.controls if one.run == run and one.moves and one.moves[audit.place].shown]
        text = f"What goes with it, after control {moved[0].control}" if moved else "What goes with it"
        yield _step(text, _inputs(audit, run, verb="explain"), "--attribution")
    else:
        more = "--groups LABELS with a column origin" if audit.measures else "--qrels FILE"
        text = "Which twin stands higher" if audit.measures else "Is it so for right answers, too"
        yield NextStep(text, f"{shlex.join(_inputs(audit, run))} {more}")
    if slight:
        yield _gate(audit)
    else:
        yield _step("Level it", _inputs(audit, run, verb="level"), "-o", "level.html")
        yield _gate(audit, "Fail a build on it in CI")


def _gate(audit: Audit, text: str = "Keep it so in CI") -> NextStep:
    make = shlex.join([*_inputs(audit), "--json", "audit.json"])
    limit = audit.margin if isinstance(audit.margin, str) else f"{audit.margin:g}"
    return NextStep(text, f"{make} && ranktilt gate audit.json --max-tilt {shlex.quote(str(limit))}")


def _more_queries(audit: Audit, run: str) -> Iterator[NextStep]:
    """How many queries would show a tilt."""
    own = (e for e in (*audit.tilts, *audit.estimates) if e.run == run and e.measure == repr(audit.primary))
    primary = next(own, None)
    points = math.nan if primary is None else primary.detectable / primary.estimand.point
    if primary is not None and SHOWN < points < math.inf:
        needed = math.ceil(primary.queries * (points / SHOWN) ** 2)
        text = f"Some {needed:,} queries like these {primary.queries:,} would show ±{SHOWN:g} points"
        yield _step(text, _inputs(audit), "--qrels", "MORE.qrels")
    if not audit.estimates and audit.spec["by"] == "source" and primary is not None and primary.twins:
        yield _step("Other questions, some with more power", _inputs(audit), "--card")
