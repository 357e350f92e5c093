"""Write commands that read the same inputs as an audit, from its spec."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Sequence
from itertools import pairwise, product
from typing import Any

import polars as pl

from ranktilt.auditing.card import DEPTH, card_estimands
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.options import usual_primary
from ranktilt.auditing.prepare import DEFAULT_MEASURES
from ranktilt.data.labels.group_names import OTHERS, REST
from ranktilt.data.labels.label_file import LabelFile
from ranktilt.data.text.label_values import SEVERAL
from ranktilt.errors import UserError
from ranktilt.measures.base import estimand
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.measures.margin import DEFAULT_MARGIN, unit_of
from ranktilt.spec import OBJECT_NAMES, Stage, parse_stages
from ranktilt.statistics.bootstrap import RESAMPLES

Audit = Any
"""A `ranktilt.auditing.result.Audit`. That module imports this one, so its class is not imported
here."""
_USUAL_STATISTICS: dict[str, Any] = {
    "correction": "holm",
    "missing": "zero",
    "rounding": "none",
    "test": "interval",
    "resamples": RESAMPLES,
    "seed": 0,
}
"""Keys of [statistics] in ranktilt.toml, with their defaults."""
_EXPLAINED = 30
"""Fewest pairs of twins in the same rankings that can explain a tilt by their texts."""
_SMALL_LIFT = 0.2
"""Limit of a gate for a property without a margin, in standard deviations."""


def audit_words(audit: Audit) -> list[str]:
    """Return the command that makes the audit again; none where its inputs have no name."""
    inputs = input_words(audit, list(audit.runs))
    if not inputs:
        return []
    words = [*inputs, *_sources(audit), *_pairs(audit), *_question(audit), *_computation(audit)]
    return ["ranktilt", "audit", *words, *_question_words(audit)]


def _question_words(audit: Audit) -> list[str]:
    """Return the words that ask an audit's questions again, with the same draws.

    A card has Relative Δ only if the whole card was asked for; otherwise its questions were named
    one by one. Without judgments, an audit asks the card's questions anyway.
    """
    has_card = any(isinstance(effect.estimand, RelativeDelta) for effect in audit.card)
    words = _option_words("-m", _typed_questions(audit, has_card=has_card))
    words += ["--card"] if has_card else []
    if "label_errors" in audit.spec:
        words += ["--label-errors", str(audit.spec["label_errors"])]
    if "by_query" in audit.spec:
        words += ["--by-query", str(audit.spec["by_query"])]
    return [*words, *_statistics_words(audit, "resamples", "seed")]


def _typed_questions(audit: Audit, *, has_card: bool) -> list[str]:
    """Return the questions that ``-m`` named; none where they are those of every audit."""
    rows = list(dict.fromkeys(effect.measure for effect in audit.card))
    standard = [repr(row) for row in card_estimands(DEPTH, judged=bool(audit.measures))]
    if not audit.measures:
        # The standard card is what is asked without judgments, and begins with who fills the page.
        has_card = standard[0] in rows or repr(audit.primary) not in standard
    excluded = {*map(repr, audit.measures), repr(audit.primary), *(standard if has_card else ())}
    others = [row for row in rows if row not in excluded]
    measures = _typed_measures(audit)
    if others and not measures:
        # Naming one question leaves out the usual measures.
        measures = [repr(measure) for measure in audit.measures]
    if not (measures or audit.measures or has_card):
        measures = [repr(audit.primary)]
    return [*measures, *others]


def _typed_measures(audit: Audit) -> list[str]:
    """Return the measures of relevance that ``-m`` named; none for the usual ones."""
    measures = [repr(measure) for measure in audit.measures]
    usual = [repr(estimand(measure)) for measure in DEFAULT_MEASURES]
    # The primary question joins the others where these lack it.
    return [] if measures in (usual, [*usual, repr(audit.primary)]) else measures


def mitigate_words(audit: Audit, run: str, pair: tuple[str, str]) -> list[str]:
    """Return the command that levels one run; empty if these groups cannot be levelled."""
    is_percent = audit.primary in audit.measures or not math.isnan(audit.primary.point)
    if not is_percent or not audit.primary.sided or _is_united(pair):
        return []  # it is judged in percent, between two single groups
    if any("," in name for name in pair):
        return []  # which --pair could not tell apart
    if _has_repeats(audit, [run]):
        return []
    several = (
        len(audit.groups) > 3
        or audit.spec["collection"].get("without_sources")
        or "pairs" in audit.spec
    )
    sides = ["--pair", ",".join(pair)] if several else []
    inputs = input_words(audit, [run])
    words = ["ranktilt", "mitigate", *inputs, *sides, *_question(audit)]
    words += [*_option_words("-m", _typed_measures(audit)), *_tie_words(audit)]
    words += _statistics_words(audit, "correction", "test", "resamples", "seed")
    return words


def explain_twins_words(audit: Audit, runs: list[str], pair: tuple[str, str]) -> list[str]:
    """Return the words of the command that explains runs by texts; none without enough twins."""
    collection = audit.spec["collection"]
    if audit.spec["by"] != "source" or not audit.confounds or collection.get("labels"):
        return []
    words = list[str]()
    for spec in _run_specs(audit, runs):
        ranker = str(spec["ranker"])
        if ranker.startswith("replay:") and ("pairs" in audit.spec or "only_sources" in collection):
            return []  # explain looks at every source, of which the run need not hold each
        words += ["-r", ranker]
    reference = "human" if "human" in audit.groups else pair[0]
    compared = [sides for sides in audit.pairs if reference in sides]
    if not compared or _has_repeats(audit, runs):
        return []
    retrieved = [_pairs_retrieved(audit, run, sides) for run, sides in product(runs, compared)]
    if min(retrieved, default=0) < _EXPLAINED:
        return []
    words = ["ranktilt", "explain", str(folder_of(audit)), *words, *split_words(audit)]
    return words if reference == "human" else [*words, "--reference", reference]


def _has_repeats(audit: Audit, runs: Iterable[str]) -> bool:
    """Return whether a run has repeats, which only an audit averages."""
    return any(audit.repeat_count(run) > 1 for run in runs)


def _is_united(pair: tuple[str, str]) -> bool:
    """Return whether a side of a pair is several groups, or all others."""
    return any(SEVERAL in name or name == REST or name.startswith(OTHERS) for name in pair)


def explain_groups_words(audit: Audit, runs: list[str], pair: tuple[str, str]) -> list[str]:
    """Return the command that explains a gap between groups without twins by their texts."""
    folder, collection = folder_of(audit), audit.spec["collection"]
    is_plain = not (collection.get("labels") or _is_united(pair) or are_twins(audit, pair))
    if folder is None or not is_plain or _has_repeats(audit, runs):
        return []
    # Sources without twins are checked first.
    if audit.spec["by"] == "source" or audit.primary.kind == "property":
        return []
    ranked = ranker_words(audit, runs, with_names=False)
    if not ranked:
        return []
    groups = ["--by", str(audit.spec["by"]), "--reference", pair[0]]
    return ["ranktilt", "explain", folder, *ranked, *split_words(audit), *groups]


def _pairs_retrieved(audit: Audit, run: str, sides: tuple[str, str]) -> int:
    """Return how many twins one run holds in the same rankings."""
    counts = audit.pair_counts.filter(
        (pl.col("run") == run) & pl.col("a").is_in(sides) & pl.col("b").is_in(sides)
    )
    return int(counts["both"].sum())


def input_words(audit: Audit, runs: list[str]) -> list[str]:
    """Return the words that name the same inputs; none where one of them has no name."""
    collection = audit.spec["collection"]
    folder, labels = folder_of(audit), collection.get("labels")
    ranked = ranker_words(audit, runs, with_names=True)
    if not (folder or labels) or not ranked:
        return []
    words = [*([folder] if folder else []), *ranked]
    if labels:
        words += _label_words(audit)
    if collection.get("qrels"):
        words += ["--qrels", str(collection["qrels"])]
    elif folder:
        words += split_words(audit)
    words += ["--ignore-unknown"] if collection.get("ignore_unknown") else []
    return words + (
        ["--by", str(audit.spec["by"])] if audit.spec["by"] not in ("source", None) else []
    )


def _run_specs(audit: Audit, runs: list[str]) -> list[Any]:
    """Return the specs of some runs, and of their repeats."""
    specs: list[Any] = []
    for name, spec in zip(audit.runs, audit.spec["runs"], strict=False):
        if name in runs:
            # The first repeat of a file, or of an engine that is asked several times, names all.
            specs += [spec, *(more for more in spec.get("repeats", ()) if "repeat" not in more)]
    return specs


def ranker_words(audit: Audit, runs: list[str], *, with_names: bool = False) -> list[str]:
    """Return the words that name the same runs; none where one was made in memory.

    Saved runs always keep the names that their user gave them; `with_names` is about rankers.
    """
    words, reading = list[str](), dict[str, str]()
    for spec in _run_specs(audit, runs):
        stages = _stages(str(spec.get("ranker", "")))
        if not stages:
            return []
        name = f"{spec['alias']}=" if "alias" in spec else ""
        if _is_saved_run(stages):
            saved = stages[0]
            words += ["--run", f"{name}{saved.argument}"]
            reading |= _reading_options(saved)
        elif folder_of(audit) is None:
            return []  # labels alone have no texts to rank
        else:
            words += ["-r", f"{name if with_names else ''}{spec['ranker']}"]
    for option, value in reading.items():
        words += [f"--{option.replace('_', '-')}", value]
    return words


def _reading_options(saved: Stage) -> dict[str, str]:
    """Return how a saved run is read, which a command says once for all runs."""
    options = saved.options
    return {name: options[name] for name in ("score_order", "queries") if name in options}


def _is_saved_run(stages: Sequence[Stage]) -> bool:
    """Return whether a ranker is a file of rankings, and no more."""
    return len(stages) == 1 and stages[0].name == "replay" and stages[0].argument is not None


def _option_words(option: str, values: Iterable[str]) -> list[str]:
    """Repeat an option for each of its values."""
    words = []
    for value in values:
        words += [option, value]
    return words


def _stages(ranker: str) -> list[Stage]:
    """Return the stages that a command line could read; none for a ranker made of an object."""
    try:
        stages = parse_stages(ranker)
    except UserError:
        return []
    return [] if any(stage.name in OBJECT_NAMES for stage in stages) else stages


def _sources(audit: Audit) -> list[str]:
    """Return the words that choose what was ranked together."""
    sources = audit.spec["collection"].get("only_sources", ())
    if sources:
        return _option_words("--source", map(str, sources))
    is_mixed = audit.spec["by"] == "source" and len(audit.groups) > 3 and "pairs" not in audit.spec
    return ["--mixed"] if is_mixed else []


def _pairs(audit: Audit) -> list[str]:
    """Return the words that name the pairs to compare, if they were named."""
    pairs = [",".join(pair) for pair in audit.spec.get("pairs", ())]
    return _option_words("--pair", [pair for pair in pairs if pair.count(",") == 1])


def _question(audit: Audit) -> list[str]:
    """Return the words for an unusual primary question, and for an unusual margin."""
    if audit.measures:
        typed = _typed_measures(audit) or DEFAULT_MEASURES
        usual = repr(usual_primary([estimand(measure) for measure in typed]))
    elif audit.primary.kind == "property":
        usual = "PropertyLift@10"
    else:
        usual = "HeadToHead" if any(e.twins for e in audit.card) else "Share@10"
    words = [] if repr(audit.primary) == usual else ["--primary", repr(audit.primary)]
    return words if audit.margin == DEFAULT_MARGIN else [*words, "--margin", _margin(audit)]


def _computation(audit: Audit) -> list[str]:
    """Return the words that say how values are computed, where that is not as usual."""
    preset = audit.spec.get("preset")
    if preset:
        # It says how missing queries count, how means are rounded, and what tests.
        ties = ["--ties", str(audit.spec["ties"])]
        return ["--preset", str(preset), *ties, *_statistics_words(audit, "correction")]
    words = _tie_words(audit)
    return words + _statistics_words(audit, "correction", "missing", "rounding", "test")


def _tie_words(audit: Audit) -> list[str]:
    """Return the words that say how ties count, if that is unusual."""
    return [] if audit.spec["ties"] == "expected" else ["--ties", str(audit.spec["ties"])]


def _statistics_words(audit: Audit, *keys: str) -> list[str]:
    """Return the words that set keys of [statistics] which differ from their defaults."""
    words = []
    for key in keys:
        if audit.spec[key] != _USUAL_STATISTICS[key]:
            words += ["--set", f"statistics.{key}={audit.spec[key]}"]
    return words


def _margin(audit: Audit) -> str:
    """Return the margin as it is typed."""
    return audit.margin if isinstance(audit.margin, str) else f"{audit.margin:g}"


def limit_text(audit: Audit) -> str:
    """Return the margin as a gate's limit; a small one for a question that is not in points."""
    if isinstance(audit.margin, str) or audit.primary.kind != "property":
        return _margin(audit)
    return f"{_SMALL_LIFT:g} {unit_of(audit.primary)}"


def split_words(audit: Audit) -> list[str]:
    """Return the words that name the split of the judgments, if it is not ``test``."""
    split = audit.spec["collection"].get("split")
    return [] if split in (None, "test") else ["--split", str(split)]


def folder_of(audit: Audit) -> str | None:
    """Return the folder of the collection; None for one made in memory, as the bundled one."""
    collection = audit.spec["collection"]
    return str(collection["path"]) if collection.get("layout") and collection.get("path") else None


def are_twins(audit: Audit, pair: tuple[str, str]) -> bool:
    """Return whether the two groups are twins in any answer."""
    effects: list[Effect] = [*audit.tilts, *audit.card]
    return any(e.twins for e in effects if e.estimand.sided and {e.a, e.b} == set(pair))


def explain_words(audit: Audit, runs: list[str]) -> list[str]:
    """Return the command that explains runs of an audit, in the strongest possible way.

    Twins are compared by their texts, other groups within each list. If nothing about the gap can
    be explained, the texts of both sides are examined. Empty if no file was read.
    """
    pair = audit.pairs[0] if audit.pairs else ("", "")
    for words in (
        explain_twins_words(audit, runs, pair),
        explain_groups_words(audit, runs, pair),
        explain_labels_words(audit, runs, pair),
    ):
        if words:
            return [*words, "--attribution"]
    folder = folder_of(audit)
    return [] if folder is None else ["ranktilt", "explain", folder, *split_words(audit)]


def explain_labels_words(audit: Audit, runs: list[str], pair: tuple[str, str]) -> list[str]:
    """Return the command that explains runs by the columns of their labels, and by texts if any."""
    collection = audit.spec["collection"]
    ranked = ranker_words(audit, runs, with_names=False)
    if not collection.get("labels") or not ranked or _has_repeats(audit, runs):
        return []
    labels = _label_words(audit)
    by = [] if audit.spec["by"] == "source" else ["--by", str(audit.spec["by"])]
    folder = folder_of(audit)
    texts = [] if folder is None else [folder]
    split = [] if folder is None else split_words(audit)
    words = ["ranktilt", "explain", *texts, *ranked, *labels, *split, *by]
    return words if _is_united(pair) else [*words, "--reference", pair[0]]


def _label_words(audit: Audit) -> list[str]:
    """Return the words that name the label file, its columns and the names of its values."""
    collection = audit.spec["collection"]
    fields = {**collection.get("label_file", {}), "path": str(collection["labels"])}
    return LabelFile(**fields).words


def json_file(command: str, default: str) -> str:
    """Return the file that ``--json`` named in a command; a default where it named none."""
    try:
        words = shlex.split(command)
    except ValueError:  # a file that somebody edited, with a quote that does not end
        return default
    files = [word.removeprefix("--json=") for word in words if word.startswith("--json=")]
    files += [file for option, file in pairwise(words) if option == "--json"]
    return next((file for file in files if file != "-"), default)
