"""What to do after an audit: two or three commands that run as printed, by rule from what was read and found."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from ranktilt.auditing.effects import Effect
from ranktilt.data.group_names import OTHERS, REST
from ranktilt.data.labels import SEVERAL, LabelFile
from ranktilt.errors import UserError
from ranktilt.measures.margin import DEFAULT_MARGIN, unit_of
from ranktilt.spec import OBJECT_NAMES, Stage, parse_stages

Audit = Any
"""A `ranktilt.auditing.result.Audit`, whose JSON lists what to do next."""
SHOWN = 10.0
"""Points of tilt that queries should be able to show."""
_SIDED = ("cut-off endings", "boilerplate openings", "truncated")
_PAIRED = ("identical", "near-identical")
_UNFAIR = 0.05
"""Share of pairs that are too alike, or difference between the sides, from which texts should be checked first."""
_EXPLAINED = 30
"""Pairs of twins in the same rankings from which texts can explain a tilt."""
_MOST = 3
_SMALL_LIFT = 0.2
"""Standard deviations of a property that a gate lets pass, where no margin is named."""


StepKind = Literal["check", "explain", "twins", "mitigate", "keep", "fail", "queries", "card"]


@dataclass(frozen=True, kw_only=True)
class NextStep:
    """One command to run next, and what it is for."""

    kind: StepKind
    """``keep``, ``fail``: a gate in CI, for a run that is level or one that is tilted."""
    command: str
    control: str = ""
    """The control that moves the tilt, which is to be explained after it."""
    queries: int = 0
    """Number of queries that the audit rests on."""
    needed: int = 0
    """Number of queries like these that would show a tilt of `SHOWN` points."""


def next_steps(audit: Audit) -> tuple[NextStep, ...]:
    """Return what to do next; nothing where no command could read the same."""
    verdicts = audit.verdicts() if audit.pairs else []
    if not verdicts or not _audit_again(audit):
        return ()
    steps = list[NextStep]()
    if (folder := _folder(audit)) and _unfair(audit):
        steps.append(_step("check", ["ranktilt", "check", folder, *_split(audit)]))
    tilted = [one for one in verdicts if one.kind == "favours"]
    open_ones = [one for one in verdicts if one.kind == "inconclusive"]
    if tilted:
        worst = max(tilted, key=lambda one: not one.slight)
        steps += _favoured(audit, worst)
    elif open_ones:
        steps += _more_queries(audit, open_ones[0].run)
    else:
        steps.append(_gate(audit))
    return tuple(steps[:_MOST])


def _audit_again(audit: Audit) -> list[str]:
    """Return the words of the command that makes the audit again; none where what was read has no name."""
    inputs = _inputs(audit, list(audit.runs))
    if not inputs:
        return []
    words = [*inputs, *_sources(audit), *_pairs(audit), *_question(audit), *_computation(audit)]
    return ["ranktilt", "audit", *words]


def _level(audit: Audit, run: str, pair: tuple[str, str]) -> list[str]:
    """Return the words of the command that levels one run; none where level cannot be asked about these groups."""
    is_percent = audit.primary in audit.measures or not math.isnan(audit.primary.point)
    is_united = any(SEVERAL in name or name == REST or name.startswith(OTHERS) for name in pair)
    if not is_percent or not audit.primary.sided or is_united:
        return []  # it is judged in percent, between two single groups
    if any("," in name for name in pair):
        return []  # which --pair could not tell apart
    several = (
        len(audit.groups) > 3
        or audit.spec["collection"].get("without_sources")
        or "pairs" in audit.spec
    )
    sides = ["--pair", ",".join(pair)] if several else []
    inputs = _inputs(audit, [run], with_names=False)
    return ["ranktilt", "mitigate", *inputs, *sides, *_question(audit)]


def _explain(audit: Audit, run: str, pair: tuple[str, str]) -> list[str]:
    """Return the words of the command that explains one run by its texts; none where it lacks twins to explain by."""
    collection = audit.spec["collection"]
    if audit.spec["by"] != "source" or not audit.confounds or collection.get("labels"):
        return []
    words = list[str]()
    for spec in _run_specs(audit, [run]):
        ranker = str(spec["ranker"])
        if ranker.startswith("replay:") and ("pairs" in audit.spec or "only_sources" in collection):
            return []  # explain looks at every source, of which the run need not hold each
        words += ["-r", ranker]
    reference = "human" if "human" in audit.groups else pair[0]
    compared = [sides for sides in audit.pairs if reference in sides]
    if not compared or any(_pairs_retrieved(audit, run, sides) < _EXPLAINED for sides in compared):
        return []
    named = [] if reference == "human" else ["--reference", reference]
    return ["ranktilt", "explain", str(_folder(audit)), *words, *_split(audit), *named]


def _explain_groups(audit: Audit, run: str, pair: tuple[str, str]) -> list[str]:
    """Return the words of the command that explains a gap between groups without twins by their texts."""
    folder, collection = _folder(audit), audit.spec["collection"]
    is_united = any(SEVERAL in name or name == REST or name.startswith(OTHERS) for name in pair)
    if folder is None or collection.get("labels") or is_united or _are_twins(audit, pair):
        return []
    # Sources without twins are checked first.
    if audit.spec["by"] == "source" or audit.primary.kind == "property":
        return []
    ranked = _ranked(audit, [run], with_names=False)
    if not ranked or {"--score-order", "--queries"} & set(ranked):
        return []  # which explain does not read
    groups = ["--by", str(audit.spec["by"]), "--reference", pair[0]]
    return ["ranktilt", "explain", folder, *ranked, *_split(audit), *groups]


def _pairs_retrieved(audit: Audit, run: str, sides: tuple[str, str]) -> int:
    """Return how many twins one run holds in the same rankings."""
    counts = audit.pair_counts.filter(
        (pl.col("run") == run) & pl.col("a").is_in(sides) & pl.col("b").is_in(sides)
    )
    return int(counts["both"].sum())


def _inputs(audit: Audit, runs: list[str], *, with_names: bool = True) -> list[str]:
    """Return the words that name the same collection or labels, runs and judgments; none where one has no name."""
    collection = audit.spec["collection"]
    folder, labels = _folder(audit), collection.get("labels")
    ranked = _ranked(audit, runs, with_names=with_names)
    if not (folder or labels) or not ranked:
        return []
    words = [*([folder] if folder else []), *ranked]
    if labels:
        words += LabelFile(**{**collection.get("label_file", {}), "path": str(labels)}).words
    if collection.get("qrels"):
        words += ["--qrels", str(collection["qrels"])]
    elif folder:
        words += _split(audit)
    words += ["--ignore-unknown"] if collection.get("ignore_unknown") else []
    return words + (
        ["--by", str(audit.spec["by"])] if audit.spec["by"] not in ("source", None) else []
    )


def _run_specs(audit: Audit, runs: list[str]) -> list[Any]:
    every = zip(audit.runs, audit.spec["runs"], strict=False)
    return [spec for name, spec in every if name in runs]


def _ranked(audit: Audit, runs: list[str], *, with_names: bool) -> list[str]:
    """Return the words that name the same runs and rankers; none where one of them was made in memory."""
    words, read = list[str](), dict[str, str]()
    for spec in _run_specs(audit, runs):
        stages = _stages(str(spec.get("ranker", "")))
        if not stages:
            return []
        first = stages[0]
        name = f"{spec['alias']}=" if with_names and "alias" in spec else ""
        if len(stages) == 1 and first.name == "replay" and first.argument is not None:
            words += ["--run", f"{name}{first.argument}"]
            read |= {
                name: first.options[name]
                for name in ("score_order", "queries")
                if name in first.options
            }
        elif _folder(audit) is None:
            return []  # labels alone have no texts to rank
        else:
            words += ["-r", f"{name}{spec['ranker']}"]
    return words + [
        word for name, value in read.items() for word in (f"--{name.replace('_', '-')}", value)
    ]


def _stages(ranker: str) -> list[Stage]:
    """Return the stages that a command line could read; none of a ranker that is an object of its maker's."""
    try:
        stages = parse_stages(ranker)
    except UserError:
        return []
    return [] if any(stage.name in OBJECT_NAMES for stage in stages) else stages


def _sources(audit: Audit) -> list[str]:
    """Return the words that choose what was ranked together."""
    held = audit.spec["collection"].get("only_sources", ())
    if held:
        return [word for name in held for word in ("--source", str(name))]
    is_mixed = audit.spec["by"] == "source" and len(audit.groups) > 3 and "pairs" not in audit.spec
    return ["--mixed"] if is_mixed else []


def _pairs(audit: Audit) -> list[str]:
    chosen = [",".join(pair) for pair in audit.spec.get("pairs", ())]
    return [word for text in chosen if text.count(",") == 1 for word in ("--pair", text)]


def _question(audit: Audit) -> list[str]:
    """Return the words that name the primary question and its margin, where they are not the usual ones."""
    if audit.measures:
        usual = "nDCG@10"
    elif audit.primary.kind == "property":
        usual = "PropertyLift@10"
    else:
        usual = "HeadToHead" if any(e.twins for e in audit.card) else "Share@10"
    words = [] if repr(audit.primary) == usual else ["--primary", repr(audit.primary)]
    return words if audit.margin == DEFAULT_MARGIN else [*words, "--margin", _margin(audit)]


def _computation(audit: Audit) -> list[str]:
    """Return the words that say how values are computed, where that is not as usual."""
    spec = audit.spec
    words = ["--preset", str(spec["preset"])] if spec.get("preset") else []
    if words or spec["ties"] != "expected":
        words += ["--ties", str(spec["ties"])]
    if spec["correction"] != "holm":
        words += ["--set", f"statistics.correction={spec['correction']}"]
    return words


def _margin(audit: Audit) -> str:
    return audit.margin if isinstance(audit.margin, str) else f"{audit.margin:g}"


def _limit(audit: Audit) -> str:
    """Return the margin as a limit of a gate; of a question that is not in points, a small one in its unit."""
    if isinstance(audit.margin, str) or audit.primary.kind != "property":
        return _margin(audit)
    return f"{_SMALL_LIFT:g} {unit_of(audit.primary)}"


def _split(audit: Audit) -> list[str]:
    split = audit.spec["collection"].get("split")
    return [] if split in (None, "test") else ["--split", str(split)]


def _folder(audit: Audit) -> str | None:
    """The collection as it was loaded; None for one that was made in memory, as the bundled one."""
    collection = audit.spec["collection"]
    return str(collection["path"]) if collection.get("layout") and collection.get("path") else None


def _step(kind: StepKind, words: list[str], *more: str, control: str = "") -> NextStep:
    return NextStep(kind=kind, command=shlex.join([*words, *more]), control=control)


def _are_twins(audit: Audit, pair: tuple[str, str]) -> bool:
    effects: list[Effect] = [*audit.tilts, *audit.card]
    return any(e.twins for e in effects if e.estimand.sided and {e.a, e.b} == set(pair))


def _unfair(audit: Audit) -> bool:
    """Whether the sides of a collection cannot be compared as they are: missing twins, cut or repeated texts."""
    if (
        audit.spec["by"] != "source"
        or not audit.confounds
        or audit.spec["collection"].get("labels")
    ):
        return (
            False  # labels of a file are not the sources that a check of the folder would compare
        )
    if any(not e.twins for e in (*audit.tilts, *audit.card) if e.estimand.sided):
        return True
    alike = (one.value_a for one in audit.confounds if one.name in _PAIRED)
    apart = (abs(one.value_a - one.value_b) for one in audit.confounds if one.name in _SIDED)
    return any(share >= _UNFAIR for share in (*alike, *apart))


def _favoured(audit: Audit, verdict: Any) -> Iterator[NextStep]:
    run, pair = verdict.run, (verdict.a, verdict.b)
    if explain := _explain(audit, run, pair):
        moved = [
            one
            for one in audit.controls
            if one.run == run and one.moves and one.moves[audit.primary_index].shown
        ]
        control = moved[0].control if moved else ""
        yield _step("explain", explain, "--attribution", control=control)
    elif audit.measures and not audit.card and _are_twins(audit, pair):
        yield _step("twins", _audit_again(audit), "--card")
    elif properties := _explain_groups(audit, run, pair):
        yield _step("explain", properties, "--attribution")
    if verdict.slight:
        yield _gate(audit)
        return
    if level := _level(audit, run, pair):
        yield _step("mitigate", level, "-o", "level.html")
    yield _gate(audit, "fail")


def _gate(audit: Audit, kind: StepKind = "keep") -> NextStep:
    make = shlex.join([*_audit_again(audit), "--json", "audit.json"])
    limit = shlex.quote(_limit(audit))
    return NextStep(kind=kind, command=f"{make} && ranktilt gate audit.json --max-tilt {limit}")


def _more_queries(audit: Audit, run: str) -> Iterator[NextStep]:
    """How many queries would show a tilt."""
    own = (
        e for e in (*audit.tilts, *audit.card) if e.run == run and e.measure == repr(audit.primary)
    )
    primary = next(own, None)
    points = math.nan if primary is None else primary.detectable / primary.estimand.point
    if primary is not None and SHOWN < points < math.inf:
        yield NextStep(
            kind="queries",
            command=shlex.join(_audit_again(audit)),
            queries=primary.queries,
            needed=math.ceil(primary.queries * (points / SHOWN) ** 2),
        )
    if not audit.card and audit.spec["by"] == "source" and primary is not None and primary.twins:
        yield _step("card", _audit_again(audit), "--card")
