"""``ranktilt mitigate``: corrections at inference, and what each costs."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import completion, options
from ranktilt.cli.app import CORRECT, INPUT, QUESTION, verb
from ranktilt.cli.audit_inputs import InputOptions
from ranktilt.cli.notes import note
from ranktilt.cli.output import PageOutput, collection_files
from ranktilt.cli.rankers import read_rankers
from ranktilt.cli.save_mitigated import (
    RANKER_OPTION,
    RUN_OPTION,
    MitigatedInputs,
    SavingOptions,
    forced_words,
    is_saved_run,
    save,
)
from ranktilt.cli.settings import settings
from ranktilt.cli.statistics_options import StatisticsOptions
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.data.run import Run
    from ranktilt.mitigation.bench_result import Bench
    from ranktilt.mitigation.options import MitigationOptions
    from ranktilt.mitigation.query_split import QuerySplit
    from ranktilt.rankers.base import Ranker

FIT, SELECT = "train", ("dev", "validation", "valid", "val")
"""Names of the splits of a collection to fit on and to select by."""
MOST = 300
"""Largest number of queries to fit on, and to select by, where a collection has such splits."""


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
        float | None,
        Parameter(
            help="Loss of --effectiveness to accept (default: 0.01, 1 point); without judgments, "
            "share of the first ten documents to replace (default: 0.2, two of ten).",
            metavar="X",
        ),
    ] = None

    def chosen(self, *, by: str, pair: tuple[str, str] | None, seed: int) -> MitigationOptions:
        """Return the options of the library; those that were not typed keep its defaults."""
        from ranktilt.mitigation.methods import read_method
        from ranktilt.mitigation.options import MitigationOptions

        usual = MitigationOptions()
        methods = [read_method(text) for text in self.method or ()]
        return MitigationOptions(
            methods=tuple(methods) or usual.methods,
            strengths=tuple(self.strength or usual.strengths),
            depth=self.rerank_depth,
            by=by,
            pair=pair,
            always=settings().configuration.mitigate.always,
            seed=seed,
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
            name="DIR",
            help="A collection: a folder, hub:OWNER/NAME or irds:ID, unless --groups; or an audit "
            "(FILE.json), whose run is corrected.",
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
    saving: SavingOptions = SavingOptions(),
    text: options.Text = None,
    max_failures: options.MaxFailures = None,
    statistics: StatisticsOptions = StatisticsOptions(),
    output: PageOutput = PageOutput(),
) -> int:
    """Correct a ranker without training, and show the cost.

    The ranker is tested first: where it is not shown to be tilted, nothing is fitted (--set
    mitigate.always=true goes on). Corrections are fitted on the train split, or on the collection
    --fit; their strength is chosen on the dev split, and the test split shows what each costs. The
    queries of a collection without these splits are drawn into parts.

    The chosen correction is printed as a formula. --save-run writes the corrected run,
    --save-ranker the corrected ranker. Where none is chosen, neither writes anything, and the exit
    code is 1; mitigate.always=true writes the correction nearest to level all the same.
    """
    inputs = replace(inputs, folder=folder)
    _check_inputs(inputs, fit)
    keywords = statistics.keywords()
    seed = keywords.pop("seed")
    for name in ("missing", "rounding"):  # which an audit alone has
        if keywords.pop(name, None) is not None and name in settings().assigned_statistics:
            raise UserError(f"--set statistics.{name}: ranktilt mitigate does not read it")
    margin = keywords.pop("margin")
    pair = next(iter(inputs.pairs or ()), None)
    chosen = corrections.chosen(by=inputs.column or "", pair=pair, seed=seed)
    saving.check(inputs)
    output.check(*inputs.files, *collection_files(fit), also=saving.files)
    from ranktilt.mitigation.mitigate import mitigate as run_mitigation

    rankers = read_rankers(
        inputs.specs,
        text=text,
        max_failures=max_failures,
        score_order=inputs.score_order,
        queries=inputs.queries,
    )
    split, runs = _read(inputs, fit, seed)
    if inputs.reference:
        pairs = inputs.reference_first(split.test, inputs.column, inputs.pairs)
        chosen = replace(chosen, pair=pairs[0]) if pairs and len(pairs) == 1 else chosen
    baseline: Ranker | Run = rankers[0] if rankers else runs[0]
    bench = run_mitigation(
        split,
        baseline,
        measure or None,
        options=chosen,
        effectiveness=corrections.effectiveness,
        budget=corrections.budget,
        margin=margin,
        **keywords,
    )
    output.deliver(bench)
    if not saving.has_target:
        _say_next(bench, is_run=is_saved_run(inputs))
        return 0
    mitigated = MitigatedInputs(
        collection=split.test,
        ranker=rankers[0] if rankers else None,
        run=None if rankers else runs[0],
    )
    return save(saving, bench, mitigated, _rank_words(inputs))


def _check_inputs(inputs: InputOptions, fit: Path | None) -> None:
    """Refuse more than one ranker, run or pair of groups, and what one of them cannot do."""
    inputs.check()
    baselines = [*(inputs.ranker or ()), *(inputs.run or ())]
    if len(baselines) > 1:
        raise UserError(f"mitigate takes one ranker or run; got {len(baselines)}")
    if any(baseline.name for baseline in (*inputs.ranker_texts, *inputs.run_files)):
        raise UserError("mitigate takes one ranker or run, which needs no name: omit NAME=")
    if fit is not None and inputs.run:
        raise UserError("--fit needs a ranker (-r): a saved run cannot rank another collection")
    if len(inputs.pairs or ()) > 1:
        raise UserError(f"mitigate takes one pair of groups; got {len(inputs.pairs or ())}")


def _read(inputs: InputOptions, fit: Path | None, seed: int) -> tuple[QuerySplit, list[Run]]:
    """Read the collection and its three sets of queries; with labels in its place, the run too."""
    from ranktilt.mitigation.query_split import QuerySplit, split_across, split_queries

    test, runs = inputs.load()
    names = None
    if inputs.folder is not None:
        names = _own_splits(inputs, () if fit else (FIT,))
    if fit is not None:
        from ranktilt.data.load import load

        fitted = load(fit, ignore_unknown=inputs.ignore_unknown)
        if names is None:
            return split_across(test, fitted, most=MOST, seed=seed), runs
        select = _side(inputs, names[-1], test)
        return QuerySplit.across(fitted, select, test, most=MOST, seed=seed), runs
    if names is None:
        return split_queries(test, seed=seed), runs
    train, select = (_side(inputs, name, test) for name in names)
    if inputs.run and not _hold_queries(inputs, (train, select)):
        # Runs are mostly saved for the test queries alone.
        note(f"the run has no queries of {names[0]} and {names[-1]}: its own are drawn into parts")
        return split_queries(test, seed=seed), runs
    return QuerySplit.from_sides(train, select, test, most=MOST, seed=seed), runs


def _own_splits(inputs: InputOptions, first: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the names of the splits to use: the `first`, and one to select by.

    None where the collection lacks any of them, or where you named another split.
    """
    from ranktilt.data.load import splits

    known = splits(Path(str(inputs.folder)))
    names = (*first, next((name for name in SELECT if name in known), ""))
    # A split more than these is needed, to test on.
    has_splits = len(known) > len(names) and set(names) <= set(known)
    is_free = inputs.qrels is None and inputs.split not in names
    return names if has_splits and is_free else None


def _hold_queries(inputs: InputOptions, sides: Iterable[Collection]) -> bool:
    """Tell whether the saved run holds judged queries of every side."""
    names = set(chain.from_iterable(run.queries for run in inputs.load_runs()))
    return all(not names.isdisjoint(side.queries_with_judgments["id"]) for side in sides)


def _side(inputs: InputOptions, split: str, test: Collection) -> Collection:
    """Return another split's judgments, with the documents that are loaded already."""
    loaded = replace(inputs, split=split).load()[0]
    return test.with_judgments(loaded.queries, loaded.qrels, loaded.spec)


def _say_next(bench: Bench, *, is_run: bool) -> None:
    """Say how to keep what was chosen, or how to apply a correction all the same."""
    choice = bench.choose()
    option = [RUN_OPTION, "mitigated.trec"] if is_run else [RANKER_OPTION, "mitigated"]
    if choice.applied is not None:
        target = "run" if is_run else "ranker"
        command = shlex.join(["ranktilt", *sys.argv[1:], *option])
        note(f"Next: Write the corrected {target}: {command}")
        return
    save_words = option if bench.candidates[1:] else []
    purpose = "Apply a correction" if bench.candidates[1:] else "Try corrections"
    note(f"Next: {purpose} all the same: {shlex.join([*forced_words(bench), *save_words])}")


def _rank_words(inputs: InputOptions) -> list[str]:
    """Return the words that name the collection, for a command that ranks."""
    words = [str(inputs.folder)]
    for option, value in {"--split": inputs.split, "--qrels": inputs.qrels}.items():
        if value is not None:
            words += [option, str(value)]
    if inputs.ignore_unknown:
        words.append("--ignore-unknown")
    return words
