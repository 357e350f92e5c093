"""``ranktilt mitigate``: corrections at inference, and a bench that tells what they cost."""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ranktilt.cli import completion, options
from ranktilt.cli.app import CORRECT, INPUT, OUTPUT, QUESTION, verb
from ranktilt.cli.audit import InputOptions
from ranktilt.cli.notes import note
from ranktilt.cli.output import PageOutput, collection_files
from ranktilt.cli.settings import settings
from ranktilt.errors import UserError
from ranktilt.mitigation.options import Levelling, read_method

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.data.run import Run
    from ranktilt.mitigation.bench_result import Bench
    from ranktilt.mitigation.query_split import QuerySplit
    from ranktilt.rankers.base import Ranker

FIT, SELECT = "train", ("dev", "validation", "valid", "val")
"""Names of a collection's own splits to fit on and to select by."""
_FITTED = re.compile(r"\b(fit|project)=")
"""What a ranker's text says of a file that ``mitigate`` wrote."""
MOST = 300
"""Queries that are fitted on, and that are selected by, of a collection's own splits."""


@Parameter(name="*", group=QUESTION)
@dataclass(frozen=True, kw_only=True)
class Corrections:
    """Which corrections are tried, and what they may cost."""

    method: Annotated[
        list[str] | None,
        Parameter(
            help="causal, projection, fair-rerank[:METHOD], interleave, offset, with options as in "
            "fair-rerank(target=5), causal(lm=FOLDER,instrument=FACTOR); several may be given.",
            metavar="NAME",
            completer=completion.methods,
        ),
    ] = None
    strength: Annotated[
        list[float] | None,
        Parameter(
            help="Correction strength to try; 1 applies the full correction "
            "(default: 0.2, 0.4, 0.6, 0.8, 1).",
            metavar="S",
        ),
    ] = None
    rerank_depth: Annotated[
        int,
        Parameter(
            help="Top results to correct (default: 100).",
            metavar="K",
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = 100
    effectiveness: Annotated[
        str,
        Parameter(help="Measure of what a correction costs (default: nDCG@10).", metavar="MEASURE"),
    ] = "nDCG@10"
    budget: Annotated[
        float,
        Parameter(
            help="Loss of --effectiveness to accept: 0.01, the default, is 1 point.", metavar="X"
        ),
    ] = 0.01

    def settings(self, *, by: str, pair: tuple[str, str] | None, seed: int) -> Levelling:
        """Return what the library is asked; what was not typed stays as it is there."""
        usual = Levelling()
        names, chosen = list[str](), dict[str, Any]()
        for text in self.method or usual.methods:
            name, values = read_method(text)
            names.append(name)
            for option, value in values.items():
                if chosen.setdefault(option, value) != value:
                    raise UserError(
                        f"--method: {option} is {chosen[option]} and {value}; try these methods one at a time"
                    )
        return Levelling(
            methods=tuple(names),
            strengths=tuple(self.strength or usual.strengths),
            depth=self.rerank_depth,
            by=by,
            pair=pair,
            seed=seed,
            **chosen,
        )


@verb(
    "mitigate",
    "mitigate DIR -r dense:minilm",
    "mitigate DIR -r bm25 --method fair-rerank --budget 0.02 -o mitigated.html",
    arguments="[DIR]",
    panel=CORRECT,
)
def mitigate(
    folder: Annotated[
        Path | None,
        Parameter(
            name="DIR", help="A collection: a folder, hub:OWNER/NAME or irds:ID, unless --groups."
        ),
    ] = None,
    /,
    *,
    inputs: InputOptions = InputOptions(),
    fit: Annotated[
        Path | None,
        Parameter(
            help="Another collection to fit corrections on; DIR only chooses strengths and tests.",
            metavar="OTHER",
            group=INPUT,
        ),
    ] = None,
    measure: options.Measures = None,
    corrections: Corrections = Corrections(),
    work_dir: Annotated[
        Path | None,
        Parameter(
            help="Folder for the fitted corrections (default: they are not kept).",
            metavar="DIR",
            group=OUTPUT,
        ),
    ] = None,
    text: options.Text = None,
    max_failures: options.MaxFailures = None,
    statistics: options.StatisticsOptions = options.StatisticsOptions(),
    output: PageOutput = PageOutput(),
) -> None:
    """Correct a ranker without training, and show the cost.

    Corrections are fitted on the train split, or on the collection --fit; their strength is chosen
    on the dev split, and the test split shows what each costs. The queries of a collection without
    these splits are drawn into parts.
    """
    inputs = replace(inputs, folder=folder)
    inputs.check()
    asked = [*(inputs.ranker or ()), *(inputs.run or ())]
    if len(asked) > 1:
        raise UserError(f"mitigate takes one ranker or run; got {len(asked)}")
    if fit is not None and inputs.run:
        raise UserError("--fit needs a ranker (-r): a saved run cannot rank another collection")
    if len(inputs.pairs or ()) > 1:
        raise UserError(f"mitigate takes one pair of groups; got {len(inputs.pairs or ())}")
    keywords = statistics.keywords()
    seed = keywords.pop("seed")
    for name in ("missing", "rounding"):  # which an audit alone has
        if keywords.pop(name, None) is not None and name in settings().assigned_statistics:
            raise UserError(f"--set statistics.{name}: ranktilt mitigate does not read it")
    pair = next(iter(inputs.pairs or ()), None)
    chosen = corrections.settings(by=inputs.column or "", pair=pair, seed=seed)
    output.check(*inputs.files, *collection_files(fit))
    from ranktilt.mitigation.mitigate import mitigate as run_mitigation

    rankers = options.read_rankers(
        inputs.specs,
        text=text,
        max_failures=max_failures,
        score_order=inputs.score_order,
        queries=inputs.queries,
    )
    split, runs = _read(inputs, fit, seed)
    pairs = (
        inputs.reference_first(split.test, inputs.column, inputs.pairs)
        if inputs.reference
        else None
    )
    chosen = replace(chosen, pair=pairs[0]) if pairs and len(pairs) == 1 else chosen
    levelled: Ranker | Run = rankers[0] if rankers else runs[0]
    found = run_mitigation(
        split,
        levelled,
        measure or None,
        folder=work_dir,
        options=chosen,
        effectiveness=corrections.effectiveness,
        budget=corrections.budget,
        **keywords,
    )
    output.deliver(found)
    _say_next(inputs, found, work_dir)


def _read(inputs: InputOptions, fit: Path | None, seed: int) -> tuple[QuerySplit, list[Run]]:
    """Read the collection and its three sets of queries; with labels in place of a collection, the run too."""
    from ranktilt.mitigation.query_split import QuerySplit, split_across, split_queries

    test, runs = inputs.load()
    own = None if inputs.folder is None else _own_splits(inputs, () if fit else (FIT,))
    if fit is not None:
        from ranktilt.data.load import load

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


def _own_splits(inputs: InputOptions, first: tuple[str, ...]) -> tuple[str, ...] | None:
    """The collection's own splits, the `first` and one to select by; None where it lacks any, or others are named."""
    from ranktilt.data.load import splits

    held = splits(Path(str(inputs.folder)))
    named = (*first, next((name for name in SELECT if name in held), ""))
    free = inputs.qrels is None and inputs.split not in named
    return named if free and len(held) > len(named) and {*named} <= {*held} else None


def _side(inputs: InputOptions, split: str, test: Collection) -> Collection:
    """Another split's judgments, with the documents that are held already."""
    from ranktilt.data.collection import Collection

    found = replace(inputs, split=split).load()[0]
    return Collection(test.docs, found.queries, found.qrels, found.spec)


def _say_next(inputs: InputOptions, bench: Bench, work: Path | None) -> None:
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
