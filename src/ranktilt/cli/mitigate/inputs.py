"""What ``ranktilt mitigate`` reads: the ranker or run to correct, and three sets of queries.

Corrections are fitted on the first set, their strength is chosen by the second, and the third tests
them, so that a correction is tested on queries that it never saw. A *split* is a part of a
collection's queries with a name, such as train, and with its own judgments.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, resolve_types
from ranktilt.cli.audit.inputs import InputOptions
from ranktilt.cli.notes import note
from ranktilt.cli.output import collection_files
from ranktilt.cli.rankers import read_rankers, require_reader_of_text
from ranktilt.errors import UserError, counted

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.data.runs.run import Run
    from ranktilt.mitigation.query_split import QuerySplit
    from ranktilt.rankers.base import Ranker

_FIT_SPLIT = "train"
"""Name of the split to fit on."""
_SELECT_SPLITS = ("dev", "validation", "valid", "val")
"""Possible names of the split to select a strength by, in the order of preference."""
_MOST_QUERIES = 300
"""Largest number of queries to fit on, and to select by, where a collection has such splits.

The baseline ranks every one of them, and a train split may have many thousands.
"""


@resolve_types
@Parameter(name="*", group=INPUT)
@dataclass(frozen=True, kw_only=True)
class MitigateInputs(InputOptions):
    """The inputs of an audit with one ranker or run, and a collection to fit corrections on."""

    fit: Annotated[
        Path | None,
        Parameter(
            help="Fit corrections on this other collection, and use DIR only to choose "
            "strengths and test.",
            metavar="OTHER",
        ),
    ] = None
    text: options.Text = None
    max_failures: options.MaxFailures = None

    @property
    def files(self) -> list[Path]:
        """Files that are read."""
        return [*super().files, *collection_files(self.fit)]

    @property
    def baseline_name(self) -> str | None:
        """Name that the user gave the ranker or run; None for its own."""
        names = [baseline.name for baseline in (*self.ranker_texts, *self.run_files)]
        return names[0] if names else None

    @property
    def is_saved_run(self) -> bool:
        """Whether the baseline is a saved run, and not a ranker.

        ``replay:FILE`` is a saved run too, unless another stage ranks its lists again (``>>``).
        """
        return bool(self.run) or any(
            ranker.text.startswith("replay:") and ">>" not in ranker.text
            for ranker in self.ranker_texts
        )

    @property
    def rank_words(self) -> list[str]:
        """Words that name the collection in a command that ranks it."""
        words = [str(self.folder)]
        for option, value in {"--split": self.split, "--qrels": self.qrels}.items():
            if value is not None:
                words += [option, str(value)]
        if self.ignore_unknown:
            words.append("--ignore-unknown")
        return words

    def check_baseline(self) -> None:
        """Refuse several rankers, runs or pairs of groups, and a run with ``--fit``."""
        self.check()
        baselines = [*(self.ranker or ()), *(self.run or ())]
        if len(baselines) > 1:
            raise UserError(f"mitigate takes one ranker or run; got {len(baselines)}")
        if self.fit is not None and self.run:
            raise UserError("--fit needs a ranker (-r): a saved run cannot rank another collection")
        if len(self.pairs or ()) > 1:
            raise UserError(f"mitigate takes one pair of groups; got {len(self.pairs or ())}")

    def read_rankers(self) -> list[Ranker]:
        """Return the ranker in a list, which is empty where labels and a run alone are read."""
        require_reader_of_text(self.text, self.specs)
        return read_rankers(
            self.specs,
            text=self.text,
            max_failures=self.max_failures,
            score_order=self.score_order,
            queries=self.queries,
        )

    def pair_to_correct(self, collection: Collection) -> tuple[str, str] | None:
        """Return the two groups, the reference first; None where the collection has but two."""
        pairs = self.pairs
        if self.reference:
            # More than two groups make several pairs. None of them is passed on, so that `mitigate`
            # refuses to choose one, with a message that names the groups.
            pairs = self.reference_first(collection, self.column, pairs)
            pairs = pairs if pairs and len(pairs) == 1 else self.pairs
        return pairs[0] if pairs else None


def read_query_sets(inputs: MitigateInputs, seed: int) -> tuple[QuerySplit, list[Run]]:
    """Read the collection and divide its queries into three sets: to fit, to select, to test.

    The second value has the run where labels and a run were read in place of a collection.
    """
    from ranktilt.mitigation.query_split import QuerySplit, split_queries

    test, runs = inputs.load()
    if inputs.fit is not None:
        return _split_with_fit_collection(inputs, inputs.fit, test, seed), runs
    names = _splits_to_use(inputs, (_FIT_SPLIT,)) if inputs.folder is not None else None
    if names is None:
        return split_queries(test, seed=seed), runs
    fit, select = (_load_split(inputs, name, test) for name in names)
    if inputs.run and not _hold_queries(inputs, (fit, select)):
        # Runs are mostly saved for the test queries alone.
        note(
            f"the run has no queries of {names[0]} and {names[-1]}, so its own are split at random"
        )
        return split_queries(test, seed=seed), runs
    return QuerySplit.from_sides(fit, select, test, most=_MOST_QUERIES, seed=seed), runs


def query_counts(split: QuerySplit) -> str:
    """Say how many queries each step gets, before the work begins."""
    fit, select, test = (
        len(side.queries_with_judgments) for side in (split.fit, split.select, split.test)
    )
    fit_collection = f" of {split.fitted_on}" if split.fitted_on else ""
    fitting = f"{counted(fit, 'query', 'queries')}{fit_collection} {'fits' if fit == 1 else 'fit'}"
    choosing = "chooses their strength" if select == 1 else "choose their strength"
    testing = "tests them" if test == 1 else "test them"
    return f"{fitting} corrections, {select:,} {choosing}, {test:,} {testing}"


def _split_with_fit_collection(
    inputs: MitigateInputs, folder: Path, test: Collection, seed: int
) -> QuerySplit:
    """Return queries of another collection to fit on, and queries of the first for the rest."""
    from ranktilt.data.loading.load import load
    from ranktilt.mitigation.query_split import QuerySplit, split_across

    names = _splits_to_use(inputs, ()) if inputs.folder is not None else None
    fit = load(folder, ignore_unknown=inputs.ignore_unknown)
    if names is None:
        return split_across(test, fit, most=_MOST_QUERIES, seed=seed)
    select = _load_split(inputs, names[-1], test)
    return QuerySplit.across(fit, select, test, most=_MOST_QUERIES, seed=seed)


def _splits_to_use(inputs: MitigateInputs, required: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the names of the splits to use: those `required`, then a split to select by.

    None where the collection lacks any of them, or where the user tests on one of them or on
    judgments of a file, whose queries these splits may hold too.
    """
    from ranktilt.data.loading.load import splits

    known = splits(Path(str(inputs.folder)))
    select = next((name for name in _SELECT_SPLITS if name in known), "")
    names = (*required, select)
    # One split besides these is needed, to test on.
    has_splits = len(known) > len(names) and set(names) <= set(known)
    # Queries that the user tests on cannot fit or select as well.
    is_free = inputs.qrels is None and inputs.split not in names
    return names if has_splits and is_free else None


def _hold_queries(inputs: MitigateInputs, collections: Iterable[Collection]) -> bool:
    """Tell whether the saved run holds judged queries of every collection."""
    names = set(chain.from_iterable(run.queries for run in inputs.load_runs()))
    return all(
        not names.isdisjoint(collection.queries_with_judgments["id"]) for collection in collections
    )


def _load_split(inputs: MitigateInputs, split: str, test: Collection) -> Collection:
    """Return a split's queries and judgments with the documents of `test`, which are loaded."""
    loaded = replace(inputs, split=split).load()[0]
    return test.with_judgments(loaded.queries, loaded.qrels, loaded.spec)
