"""Write commands that read the same inputs as an audit, from its spec.

A command is a list of *words*, as a shell splits it. Each function returns the words of a command
or of some of its options; an empty list if there is no such command, or the option has its default.
An audit that was made in Python has no command if an input was never read from a file.

*Twins* are two versions of one document, of which each of two groups has one.
"""

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
from ranktilt.auditing.prepare import DEFAULT_MEASURES, PROPERTY_LIFT, SHARE
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
_FEWEST_RETRIEVED_TWINS = 30
"""Fewest pairs of twins that can explain a tilt by their texts.

A pair counts for each list that holds both twins.
"""
_SMALL_LIFT = 0.2
"""Limit of a gate for a question about a property without a margin, in standard deviations."""


def audit_words(audit: Audit) -> list[str]:
    """Return the command that makes the audit again; empty if an input has no name."""
    inputs = input_words(audit, list(audit.runs))
    if not inputs:
        return []
    return [
        "ranktilt",
        "audit",
        *inputs,
        *_source_words(audit),
        *_pair_words(audit),
        *_primary_words(audit),
        *_computation_words(audit),
        *_question_words(audit),
    ]


def _question_words(audit: Audit) -> list[str]:
    """Return the words that ask an audit's questions again, with the same random numbers.

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
    """Return the questions that ``-m`` named; none if they are the usual ones.

    `has_card` says whether ``--card`` asked for the whole card.
    """
    on_card = list(dict.fromkeys(effect.measure for effect in audit.card))
    standard = [repr(question) for question in card_estimands(DEPTH, judged=bool(audit.measures))]
    if not audit.measures:
        # Without judgments the usual questions are those of the standard card, of which the first
        # is always asked.
        has_card = standard[0] in on_card or repr(audit.primary) not in standard
    excluded = {*map(repr, audit.measures), repr(audit.primary), *(standard if has_card else ())}
    others = [question for question in on_card if question not in excluded]
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
    # A primary question that is none of the usual measures is added to them.
    return [] if measures in (usual, [*usual, repr(audit.primary)]) else measures


def mitigate_words(audit: Audit, run: str, pair: tuple[str, str]) -> list[str]:
    """Return the command that levels one run; empty if these groups cannot be levelled."""
    is_percent = audit.primary in audit.measures or not math.isnan(audit.primary.point)
    if not is_percent or not audit.primary.sided or _is_united(pair):
        return []  # `mitigate` judges in percent, between two single groups
    if any("," in name for name in pair):
        return []  # --pair separates names by a comma
    if _has_repeats(audit, [run]):
        return []
    needs_pair = (
        len(audit.groups) > 3
        or audit.spec["collection"].get("without_sources")
        or "pairs" in audit.spec
    )
    pair_words = ["--pair", ",".join(pair)] if needs_pair else []
    words = ["ranktilt", "mitigate", *input_words(audit, [run]), *pair_words]
    words += [*_primary_words(audit), *_option_words("-m", _typed_measures(audit))]
    words += _tie_words(audit)
    return words + _statistics_words(audit, "correction", "test", "resamples", "seed")


def explain_twins_words(audit: Audit, runs: list[str], pair: tuple[str, str]) -> list[str]:
    """Return the command that explains runs by the texts of twins; empty without enough twins.

    Twins are two versions of one document, of which each of two groups has one.
    """
    collection = audit.spec["collection"]
    if audit.spec["by"] != "source" or not audit.confounds or collection.get("labels"):
        return []
    ranked: list[str] = []
    for spec in _run_specs(audit, runs):
        ranker = str(spec["ranker"])
        if ranker.startswith("replay:") and ("pairs" in audit.spec or "only_sources" in collection):
            return []  # `explain` looks at all sources, and the saved run need not hold all of them
        ranked += ["-r", ranker]
    reference = "human" if "human" in audit.groups else pair[0]
    compared = [sides for sides in audit.pairs if reference in sides]
    if not compared or _has_repeats(audit, runs):
        return []
    retrieved = [_retrieved_twins(audit, run, sides) for run, sides in product(runs, compared)]
    if min(retrieved, default=0) < _FEWEST_RETRIEVED_TWINS:
        return []
    words = ["ranktilt", "explain", str(folder_of(audit)), *ranked, *split_words(audit)]
    return words if reference == "human" else [*words, "--reference", reference]


def _has_repeats(audit: Audit, runs: Iterable[str]) -> bool:
    """Return whether a run has repeats: several rankings by one ranker, which an audit averages."""
    return any(audit.repeat_count(run) > 1 for run in runs)


def _is_united(pair: tuple[str, str]) -> bool:
    """Return whether a group of a pair unites several groups, or all other groups."""
    return any(SEVERAL in name or name == REST or name.startswith(OTHERS) for name in pair)


def explain_groups_words(audit: Audit, runs: list[str], pair: tuple[str, str]) -> list[str]:
    """Return the command that explains a gap between groups without twins by their texts."""
    folder, collection = folder_of(audit), audit.spec["collection"]
    is_plain = not (collection.get("labels") or _is_united(pair) or are_twins(audit, pair))
    if folder is None or not is_plain or _has_repeats(audit, runs):
        return []
    # For sources without twins, `next_steps` recommends a check of their texts.
    if audit.spec["by"] == "source" or audit.primary.kind == "property":
        return []
    ranked = ranker_words(audit, runs, with_names=False)
    if not ranked:
        return []
    groups = ["--by", str(audit.spec["by"]), "--reference", pair[0]]
    return ["ranktilt", "explain", folder, *ranked, *split_words(audit), *groups]


def _retrieved_twins(audit: Audit, run: str, pair: tuple[str, str]) -> int:
    """Return how often a run retrieves both twins of a pair for one query."""
    counts = audit.pair_counts.filter(
        (pl.col("run") == run) & pl.col("a").is_in(pair) & pl.col("b").is_in(pair)
    )
    return int(counts["both"].sum())


def input_words(audit: Audit, runs: list[str]) -> list[str]:
    """Return the words that name the same inputs; empty if one of them has no name."""
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
    if collection.get("ignore_unknown"):
        words.append("--ignore-unknown")
    if audit.spec["by"] not in ("source", None):
        words += ["--by", str(audit.spec["by"])]
    return words


def _run_specs(audit: Audit, runs: list[str]) -> list[Any]:
    """Return the specs of some runs, and those of their repeats that a command has to name.

    A repeat is one of several rankings by one ranker.
    """
    specs: list[Any] = []
    for name, spec in zip(audit.runs, audit.spec["runs"], strict=False):
        if name in runs:
            specs.append(spec)
            # Repeats with a number come from one file, or from one engine that was asked several
            # times: the first of them names all.
            specs += [repeat for repeat in spec.get("repeats", ()) if "repeat" not in repeat]
    return specs


def ranker_words(audit: Audit, runs: list[str], *, with_names: bool = False) -> list[str]:
    """Return the words that name the same runs; empty if one of them was made in memory.

    `with_names` says whether rankers get the names that the user gave them; saved runs always do.
    """
    words: list[str] = []
    reading_options: dict[str, str] = {}
    for spec in _run_specs(audit, runs):
        stages = _stages(str(spec.get("ranker", "")))
        if not stages:
            return []
        name = f"{spec['alias']}=" if "alias" in spec else ""
        if _is_saved_run(stages):
            replay = stages[0]
            words += ["--run", f"{name}{replay.argument}"]
            reading_options |= _reading_options(replay)
        elif folder_of(audit) is None:
            return []  # labels alone have no texts to rank
        else:
            words += ["-r", f"{name if with_names else ''}{spec['ranker']}"]
    for option, value in reading_options.items():
        words += [f"--{option.replace('_', '-')}", value]
    return words


def _reading_options(replay: Stage) -> dict[str, str]:
    """Return how a saved run is read; a command has these options once, for all runs."""
    options = replay.options
    return {name: options[name] for name in ("score_order", "queries") if name in options}


def _is_saved_run(stages: Sequence[Stage]) -> bool:
    """Return whether a ranker only reads a file of rankings."""
    return len(stages) == 1 and stages[0].name == "replay" and stages[0].argument is not None


def _option_words(option: str, values: Iterable[str]) -> list[str]:
    """Repeat an option for each of its values."""
    words = []
    for value in values:
        words += [option, value]
    return words


def _stages(ranker: str) -> list[Stage]:
    """Return the stages of a ranker; empty if it was made in Python, and has no notation."""
    try:
        stages = parse_stages(ranker)
    except UserError:
        return []
    return [] if any(stage.name in OBJECT_NAMES for stage in stages) else stages


def _source_words(audit: Audit) -> list[str]:
    """Return the words that choose the sources that were ranked together."""
    sources = audit.spec["collection"].get("only_sources", ())
    if sources:
        return _option_words("--source", map(str, sources))
    is_mixed = audit.spec["by"] == "source" and len(audit.groups) > 3 and "pairs" not in audit.spec
    return ["--mixed"] if is_mixed else []


def _pair_words(audit: Audit) -> list[str]:
    """Return the words that name the pairs to compare, if they were named."""
    pairs = [",".join(pair) for pair in audit.spec.get("pairs", ())]
    # --pair separates two names by a comma, and could not read names with another comma.
    return _option_words("--pair", [pair for pair in pairs if pair.count(",") == 1])


def _primary_words(audit: Audit) -> list[str]:
    """Return the words for the primary question and the margin, if they are not the usual ones."""
    if audit.measures:
        typed = _typed_measures(audit) or DEFAULT_MEASURES
        usual = repr(usual_primary([estimand(measure) for measure in typed]))
    elif audit.primary.kind == "property":
        usual = PROPERTY_LIFT
    else:
        has_twins = any(effect.twins for effect in audit.card)
        usual = "HeadToHead" if has_twins else SHARE
    words = []
    if repr(audit.primary) != usual:
        words += ["--primary", repr(audit.primary)]
    if audit.margin != DEFAULT_MARGIN:
        words += ["--margin", _margin_text(audit)]
    return words


def _computation_words(audit: Audit) -> list[str]:
    """Return the words that say how values are computed, if that is not as usual."""
    preset = audit.spec.get("preset")
    if preset:
        # A preset also sets how missing queries count, how means are rounded, and the test.
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


def _margin_text(audit: Audit) -> str:
    """Return the margin as it is typed."""
    return audit.margin if isinstance(audit.margin, str) else f"{audit.margin:g}"


def limit_text(audit: Audit) -> str:
    """Return the limit of a gate: the margin, or a small lift for a question about a property.

    The default margin is in points, which such a question does not have.
    """
    if isinstance(audit.margin, str) or audit.primary.kind != "property":
        return _margin_text(audit)
    return f"{_SMALL_LIFT:g} {unit_of(audit.primary)}"


def split_words(audit: Audit) -> list[str]:
    """Return the words that name the split of the judgments, if it is not ``test``."""
    split = audit.spec["collection"].get("split")
    return [] if split in (None, "test") else ["--split", str(split)]


def folder_of(audit: Audit) -> str | None:
    """Return the folder of the collection; None if it was made in memory, or is bundled."""
    collection = audit.spec["collection"]
    return str(collection["path"]) if collection.get("layout") and collection.get("path") else None


def are_twins(audit: Audit, pair: tuple[str, str]) -> bool:
    """Return whether the two groups are twins in any answer."""
    effects: list[Effect] = [*audit.tilts, *audit.card]
    answers = [
        effect for effect in effects if effect.estimand.sided and {effect.a, effect.b} == set(pair)
    ]
    return any(answer.twins for answer in answers)


def explain_words(audit: Audit, runs: list[str]) -> list[str]:
    """Return the command that explains runs of an audit, by the strongest method that it allows.

    Twins are compared by their texts, other groups within each list. If neither is possible, the
    command examines the texts of both groups. Empty if the audit read no file.
    """
    no_pair = ("", "")  # of an audit without groups
    pair = audit.pairs[0] if audit.pairs else no_pair
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
    """Return the command that explains runs by the columns of the label file, and by any texts."""
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
    """Return the file that ``--json`` names in a command, or `default` if it names none."""
    try:
        words = shlex.split(command)
    except ValueError:  # somebody edited the audit's file, and a quote is not closed
        return default
    files = [word.removeprefix("--json=") for word in words if word.startswith("--json=")]
    files += [file for option, file in pairwise(words) if option == "--json"]
    return next((file for file in files if file != "-"), default)  # "-" is standard output
