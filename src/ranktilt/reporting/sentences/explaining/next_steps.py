"""Next steps after an explanation: show the cause, correct the ranker, or audit what was found.

A step is a command with its purpose. It runs as printed, but for words in capitals, which you fill
in. There are no steps if no command could read the same data again. The spec of an explanation is
its settings, from which commands are made.

An explanation says which properties of texts go with a gap, the difference of a ranker's scores or
ranks between two groups. A factor is a property that ``generate versions`` edits on purpose.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import replace
from operator import attrgetter
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from ranktilt.auditing.answer.command_words import (
    folder_of,
    input_words,
    ranker_words,
    split_words,
)
from ranktilt.errors import join_words
from ranktilt.explaining.factors.result import PRIMARY, FactorEffect, FactorEffects
from ranktilt.explaining.properties.result import ExplainedGaps
from ranktilt.reporting.document import NextCommand
from ranktilt.reporting.sentences.explaining.probes import attributed_gaps
from ranktilt.reporting.sentences.explaining.properties import is_of_citations
from ranktilt.reporting.sentences.grammar import singular_or_plural

if TYPE_CHECKING:
    from ranktilt.explaining.explanation import Explanation

_FACTORS = {
    "length": "length",
    "perplexity": "fluency",
    "query words": "query-words",
    "specificity": "words",
}
"""Factor of ``generate versions`` that edits a property of texts by a rule, by the property."""
_USUAL_FACTORS = ("length", "words")
"""Factors of a suggested experiment, if no factor edits the properties that were found."""
_USUAL_RANKER = "bm25"
"""Ranker of a suggested command, if the explanation has none."""
_ADOPTERS = "0,10,50,100"
"""Percentages of documents that adopt an edit, in a suggested command."""


def explanation_steps(explanation: Explanation) -> tuple[NextCommand, ...]:
    """Return what to do after texts were compared, or gaps were attributed to properties."""
    if not explanation.attributed:
        return tuple(_text_steps(explanation))
    shown_gaps = [gap for gap in attributed_gaps(explanation) if gap.is_shown]
    if not shown_gaps:
        return tuple(_audit_steps(explanation))
    gap = shown_gaps[0]
    properties = () if gap.is_of_retrieved else gap.with_gap
    pair = (gap.reference, gap.source) if len(explanation.sources) > 1 else None
    steps = [*_cause_steps(explanation, gap.run, properties, gap.reference)]
    return (*steps, *_mitigate_steps(explanation, gap.run, pair))


def _text_steps(explanation: Explanation) -> Iterator[NextCommand]:
    """Yield commands that show how a ranker responds to texts that differ, and whom it favours."""
    folder = folder_of(explanation)
    if folder is None:
        return
    ranker = explanation.spec["ranker"] or _USUAL_RANKER
    by = explanation.spec["by"]
    words = [folder, "-r", ranker, *split_words(explanation)]
    words += [] if by == "source" else ["--by", by]
    yield _step(
        "See whether a ranker responds to it", ["ranktilt", "explain", *words, "--attribution"]
    )
    yield _step("See which side a ranker favours", ["ranktilt", "audit", *words])


def gaps_steps(gaps: ExplainedGaps) -> tuple[NextCommand, ...]:
    """Return what to do after gaps between groups were split among properties."""
    if is_of_citations(gaps):  # no command ranks an engine's pages anew
        return ()
    shown_gaps = [gap for gap in gaps.primary if gap.is_shown]
    if not shown_gaps:
        return tuple(_audit_steps(gaps))
    gap = max(shown_gaps, key=attrgetter("clearness"))
    names = {part.property_name for part in gap.shown_parts}
    steps = list[NextCommand]()
    texts = [about.name for about in gaps.properties if about.kind == "text"]
    if gaps.has_texts:
        steps += _cause_steps(gaps, gap.run, [name for name in texts if name in names], "")
    columns = [part.property_name for part in gap.shown_parts if part.property_name not in texts]
    if columns:
        steps += _column_steps(gaps, gap.run, columns[0])
    is_one_of_several = len(gaps.primary) > len(gaps.runs)
    pair = (gap.group_a, gap.group_b) if is_one_of_several else None
    return (*steps, *_mitigate_steps(gaps, gap.run, pair))


def _column_steps(gaps: ExplainedGaps, run: str, column: str) -> Iterator[NextCommand]:
    """Yield the command that audits by a property of documents, a column, and not by the groups."""
    collection = dict(gaps.spec["collection"])
    if "label_file" in collection:
        # Names of values, and a label of the rest, belong to the column of the groups.
        collection["label_file"] = {**collection["label_file"], "names": {}, "rest": None}
    spec = {**gaps.spec, "by": column, "collection": collection}
    words = _inputs(replace(gaps, spec=spec), [run])
    if words:
        yield _step(f"Audit the ranker by {column} itself", ["ranktilt", "audit", *words])


def _cause_steps(
    result: Any, run: str, properties: Iterable[str], reference: str
) -> Iterator[NextCommand]:
    """Yield commands that edit texts by a rule, and show what each edit does to ranks.

    Parameters
    ----------
    result : Explanation or ExplainedGaps
        What was explained.
    run : str
        Name of the ranker.
    properties : iterable of str
        Properties that go with its gap.
    reference : str
        Source whose texts are edited; empty for the usual one.
    """
    folder = folder_of(result)
    ranker = ranker_words(result, [run], with_names=False)
    if folder is None or ranker[:1] != ["-r"]:
        return  # versions are ranked anew, which a saved run cannot do
    factors = list(dict.fromkeys(_FACTORS[name] for name in properties if name in _FACTORS))
    target = f"{PurePath(folder).name}-versions"
    make = ["ranktilt", "generate", "versions", folder, *split_words(result)]
    if reference not in ("", "human"):
        make += ["--source-to-rewrite", reference]
    make += ["--factors", ",".join(factors or _USUAL_FACTORS), "--by-rule", "-o", target]
    explain = ["ranktilt", "explain", target, "--by-factor", *ranker]
    text = "See what edits of a text cause"
    if factors:
        are = singular_or_plural(len(factors), "is", "are")
        text = f"See whether {join_words(factors)} {are} the cause"
    yield NextCommand(text=text, command=f"{shlex.join(make)} && {shlex.join(explain)}")


def _mitigate_steps(result: Any, run: str, pair: tuple[str, str] | None) -> Iterator[NextCommand]:
    """Yield the command that corrects a ranker, if it can be written.

    `pair` are the two groups, if there are others too.
    """
    file = result.spec.get("audit_file")
    if file and pair is None:
        # The file keeps what an explanation does not read: judgments, question, margin, groups.
        words = ["ranktilt", "mitigate", str(file), "-r", run]
        yield _step("Correct the ranker, and see what it costs", words)
        return
    words = _inputs(result, [run])
    # The option --pair takes two names with a comma between them.
    has_commas = pair is not None and any("," in name for name in pair)
    if not words or has_commas:
        return
    words += ["--pair", ",".join(pair)] if pair else []
    yield _step("Correct the ranker, and see what it costs", ["ranktilt", "mitigate", *words])


def _audit_steps(result: Any) -> Iterator[NextCommand]:
    """Yield the command that audits the first ranks."""
    words = _inputs(result, list(result.runs))
    if words:
        text = "See whether the first ranks favour a side"
        yield _step(text, ["ranktilt", "audit", *words])


def factors_steps(effects: FactorEffects) -> tuple[NextCommand, ...]:
    """Return what to do after effects of edits on ranks are known."""
    if effects.of_citations:
        return tuple(_cited_factor_steps(effects))
    mains = [row for row in effects.of(PRIMARY) if not row.interaction]
    shown_effects = sorted((row for row in mains if row.is_shown), key=lambda row: -abs(row.value))
    ranker_name = shown_effects[0].ranker if shown_effects else effects.rankers[0]
    ranker = ranker_words(effects, [ranker_name])
    if folder_of(effects) is None or not ranker:
        return ()
    return tuple(_factor_steps(effects, shown_effects, ranker))


def _cited_factor_steps(effects: FactorEffects) -> Iterator[NextCommand]:
    """Yield the command that shows what the same factors do to ranks."""
    folder = folder_of(effects)
    if folder is not None:
        text = "See what the same changes do to ranks"
        yield _step(text, ["ranktilt", "explain", str(folder), "--by-factor", "-r", _USUAL_RANKER])


def _factor_steps(
    effects: FactorEffects, shown_effects: list[FactorEffect], ranker: list[str]
) -> Iterator[NextCommand]:
    """Yield commands that follow from the factors that move ranks, the largest first.

    `ranker` are the words of the option that names the ranker.
    """
    if shown_effects and shown_effects[0].effect == "length":
        text = "Audit your own collection at matched lengths"
        yield _step(text, ["ranktilt", "audit", "COLLECTION", *ranker, "--controls"])
    else:
        text = "See what goes with the gap in your own collection"
        yield _step(text, ["ranktilt", "explain", "COLLECTION", "--attribution", *ranker])
    if not effects.adoptions and any(row.value > 0 for row in shown_effects):
        words = ["ranktilt", "explain", str(folder_of(effects)), *split_words(effects)]
        text = "See whether an edit still pays when others make it too"
        yield _step(text, [*words, "--by-factor", *ranker, "--adopters", _ADOPTERS])


def _inputs(result: Any, runs: list[str]) -> list[str]:
    """Return the words of a command that name the inputs of a result, and its runs.

    An explanation ignores judgments of unknown documents. Other commands do so only with an option,
    which is left out here, so that they ask.
    """
    collection = {**result.spec["collection"], "ignore_unknown": False}
    asking_result = replace(result, spec={**result.spec, "collection": collection})
    return input_words(asking_result, runs)


def _step(text: str, words: list[str]) -> NextCommand:
    """Return a command with its purpose."""
    return NextCommand(text=text, command=shlex.join(words))
