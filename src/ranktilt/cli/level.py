"""``ranktilt level``: corrections at inference, and a bench that tells what they cost."""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ranktilt.cli import options
from ranktilt.cli.audit import AuditInputs
from ranktilt.cli.notes import note
from ranktilt.cli.output import PageOutput, collection_files
from ranktilt.errors import UserError
from ranktilt.experiments.level_options import Levelling
from ranktilt.option import Option

if TYPE_CHECKING:
    from ranktilt.collection import Collection
    from ranktilt.experiments.query_split import QuerySplit
    from ranktilt.experiments.tradeoff_result import Bench
    from ranktilt.rankers.base import Ranker
    from ranktilt.run import Run

FIT, SELECT = "train", ("dev", "validation", "valid", "val")
"""Names of a collection's own splits to fit on and to select by."""
_FITTED = re.compile(r"\b(fit|project)=")
"""What a ranker's text says of a file that ``level`` wrote."""
MOST = 300
"""Queries that are fitted on, and that are selected by, of a collection's own splits."""


@options.verb(
    "level DIR -r dense:minilm",
    "level DIR -r bm25 --method fair-rerank --budget 0.02 -o level.html",
)
def level(
    inputs: AuditInputs,
    *,
    fit: Annotated[
        Path | None,
        Option(
            "Another collection to fit corrections on; DIR chooses strengths and tests.", "OTHER"
        ),
    ] = None,
    measure: options.Measures = None,
    corrections: Annotated[
        dict[str, Any],
        options.FieldsOf(Levelling, without=("by", "pair", "seed"), panel="Question"),
    ],
    work_dir: Annotated[
        Path | None,
        Option(
            "Folder for the fitted corrections (default: they are not kept).", "DIR", panel="Output"
        ),
    ] = None,
    effectiveness: Annotated[
        str, Option("Measure of what levelling costs.", "MEASURE")
    ] = "nDCG@10",
    budget: Annotated[float, Option("Effectiveness that levelling may cost, 0 to 1.", "X")] = 0.01,
    statistics: options.StatisticsOptions,
    search: options.EngineOptions,
    output: PageOutput,
) -> None:
    """Level a ranker without training: fit corrections, choose their strength, and tell what each costs.

    Corrections learn from the train split, or from the collection --fit, strengths are chosen on
    the dev split, and the test split judges; of a collection without these its queries are drawn
    into parts.
    """
    inputs.check(controls=False, near_identical=None, card=False)
    asked = [*(inputs.ranker or ()), *(inputs.run or ())]
    if len(asked) > 1:
        raise UserError(f"level takes one ranker or run; got {len(asked)}")
    if fit is not None and inputs.run:
        raise UserError("--fit needs a ranker (-r): a saved run cannot rank another collection")
    if len(inputs.pairs or ()) > 1:
        raise UserError(f"level takes one pair of groups; got {len(inputs.pairs or ())}")
    keywords = statistics.keywords
    pair = next(iter(inputs.pairs or ()), None)
    chosen = Levelling(**corrections, by=inputs.column or "", pair=pair, seed=keywords["seed"])
    output.check(*inputs.files, *collection_files(fit))
    from ranktilt.experiments.level import level as run_level

    rankers = search.rankers(inputs.specs, score_order=inputs.score_order, queries=inputs.queries)
    split, runs = _read(inputs, fit, statistics.seed)
    pairs = (
        inputs.reference_first(split.test, inputs.column, inputs.pairs)
        if inputs.reference
        else None
    )
    chosen = replace(chosen, pair=pairs[0]) if pairs and len(pairs) == 1 else chosen
    levelled: Ranker | Run = rankers[0] if rankers else runs[0]
    found = run_level(
        split,
        levelled,
        measure or None,
        folder=work_dir,
        options=chosen,
        effectiveness=effectiveness,
        budget=budget,
        **{name: value for name, value in keywords.items() if name != "seed"},
    )
    output.deliver(found)
    _say_next(inputs, found, work_dir)


def _read(inputs: AuditInputs, fit: Path | None, seed: int) -> tuple[QuerySplit, list[Run]]:
    """Read the collection and its three sets of queries; with labels in place of a collection, the run too."""
    from ranktilt.experiments.query_split import QuerySplit, split_across, split_queries

    test, runs = inputs.load()
    own = None if inputs.folder is None else _own_splits(inputs, () if fit else (FIT,))
    if fit is not None:
        from ranktilt.datasets.load import load

        other = load(fit, ignore_unknown=inputs.ignore_unknown)
        if own is None:
            return split_across(test, other, most=MOST, seed=seed), runs
        return QuerySplit.across(
            other, _side(inputs, own[-1], test), test, most=MOST, seed=seed
        ), runs
    if own is None:
        return split_queries(test, seed=seed), runs
    train, select = (_side(inputs, name, test) for name in own)
    return QuerySplit.of(train, select, test, most=MOST, seed=seed), runs


def _own_splits(inputs: AuditInputs, first: tuple[str, ...]) -> tuple[str, ...] | None:
    """The collection's own splits, the `first` and one to select by; None where it lacks any, or others are named."""
    from ranktilt.datasets.load import splits

    held = splits(Path(str(inputs.folder)))
    named = (*first, next((name for name in SELECT if name in held), ""))
    free = inputs.qrels is None and inputs.split not in named
    return named if free and len(held) > len(named) and {*named} <= {*held} else None


def _side(inputs: AuditInputs, split: str, test: Collection) -> Collection:
    """Another split's judgments, with the documents that are held already."""
    from ranktilt.collection import Collection

    found = replace(inputs, split=split).load()[0]
    return Collection(test.docs, found.queries, found.qrels, found.spec)


def _say_next(inputs: AuditInputs, bench: Bench, work: Path | None) -> None:
    """Say how to rank with what was chosen, or how to keep what was fitted for it."""
    chosen = bench.choose().chosen
    if chosen is None or not chosen.method or inputs.folder is None or inputs.groups is not None:
        return
    if work is None and _FITTED.search(chosen.ranker):
        again = ["ranktilt", *sys.argv[1:], "--work-dir", "levelled"]
        note(f"Next: Keep what was fitted, to rank with it: {shlex.join(again)}")
        return
    read = {"--split": inputs.split, "--qrels": inputs.qrels}
    words = [
        word for option, value in read.items() if value is not None for word in (option, value)
    ]
    words += ["--ignore-unknown"] if inputs.ignore_unknown else []
    command = [
        "ranktilt",
        "rank",
        str(inputs.folder),
        "-r",
        chosen.ranker,
        *words,
        "-o",
        "levelled.trec",
    ]
    note(f"Next: {shlex.join(command)}")
