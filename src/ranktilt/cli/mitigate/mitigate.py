"""``ranktilt mitigate``: corrections at inference, what each costs, and the chosen one saved.

A *baseline* is the ranker or run to correct. Its *corrections* change its scores or its order, and
need no training. A *bench* is the result: it tests the baseline and each correction on the same
queries, and chooses one that is *level*, shown to favour neither side, at an acceptable cost. The
correction that is *applied* is the chosen one; with ``mitigate.always=true`` and none chosen, it
is the one nearest to level.
"""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import CORRECT, OUTPUT, verb
from ranktilt.cli.mitigate.corrections import Corrections
from ranktilt.cli.mitigate.inputs import MitigateInputs, query_counts, read_query_sets
from ranktilt.cli.notes import note, say
from ranktilt.cli.output import PageOutput, with_command, with_sidecars
from ranktilt.cli.statistics_options import StatisticsOptions
from ranktilt.data.files import STDIN, require_folder, sidecar, write_files
from ranktilt.errors import UserError, counted, join_words

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.data.runs.run import Run
    from ranktilt.mitigation.bench_result import Bench, Candidate
    from ranktilt.rankers.base import Ranker

_RUN_OPTION = "--save-run"
"""Option that saves a corrected run."""
_RANKER_OPTION = "--save-ranker"
"""Option that saves a corrected ranker."""
_RUN_ENDINGS = (".trec", ".run", ".res", ".txt")
"""Endings of a file of a run in TREC format; ``.gz`` may follow."""


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True, kw_only=True)
class SavingOptions:
    """Where the chosen correction is saved: as a run, or as a ranker."""

    save_run: Annotated[
        Path | None,
        Parameter(
            help="If a correction is chosen, save the corrected run with all its queries in "
            "TREC format (.trec, .gz).",
            metavar="FILE",
        ),
    ] = None
    save_ranker: Annotated[
        Path | None,
        Parameter(
            help="If a correction is chosen, save the corrected ranker in a folder, and print "
            "its text for -r.",
            metavar="FOLDER",
        ),
    ] = None

    @property
    def has_target(self) -> bool:
        """Whether anything is to be written."""
        return self.save_run is not None or self.save_ranker is not None

    @property
    def files(self) -> dict[str, Path | None]:
        """The files that are written, by option."""
        return with_sidecars({} if self.save_run is None else {_RUN_OPTION: self.save_run})

    def check(self, inputs: MitigateInputs) -> None:
        """Refuse to save a ranker as a run, or a run as a ranker, before anything is ranked."""
        is_run = inputs.is_saved_run
        if self.save_run is not None and not is_run:
            raise UserError(
                f"{_RUN_OPTION} needs a saved run (--run FILE); to keep a corrected ranker, use "
                f"{_RANKER_OPTION} FOLDER"
            )
        if self.save_ranker is not None and is_run:
            raise UserError(
                f"{_RANKER_OPTION} needs a ranker (DIR -r SPEC); to keep the corrected lists of "
                f"a saved run, use {_RUN_OPTION} FILE"
            )
        if self.save_run is not None:
            _check_run_name(self.save_run)
            if inputs.folder is not None and STDIN in map(str, inputs.run or ()):
                raise UserError(
                    f"{_RUN_OPTION} reads the run twice, but standard input can be read only "
                    "once; save the run to a file, and name that"
                )
        if self.save_ranker is not None:
            require_folder(self.save_ranker)


def _check_run_name(path: Path) -> None:
    """Refuse a file whose ending names another format than that of runs."""
    name = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    if name.suffix.lower() not in _RUN_ENDINGS:
        raise UserError(
            f"{_RUN_OPTION} {path}: runs are written in TREC format; expected a name that ends in "
            f"{join_words(_RUN_ENDINGS, 'or')}, plain or with .gz"
        )


@dataclass(frozen=True, kw_only=True)
class MitigatedBaseline:
    """The ranker or run that is corrected, and the documents that it ranks."""

    collection: Collection
    """The documents, with the queries to test on."""
    ranker: Ranker | None
    """The ranker; None where labels and a run alone were read."""
    run: Run | None
    """The run; None where a ranker ranks."""

    @property
    def uncorrected(self) -> Ranker | Run:
        """The ranker, or the run where there is none."""
        baseline = self.ranker if self.ranker is not None else self.run
        if baseline is None:
            raise UserError("mitigate takes one ranker or run; got none")
        return baseline

    def run_of_all_queries(self) -> Run:
        """Return the saved run with all its queries: those that fit and select too."""
        from ranktilt.rankers.replay import Replay

        if isinstance(self.ranker, Replay):
            return self.ranker.rank_all(self.collection)
        if self.run is None:
            raise UserError(f"{_RUN_OPTION} needs a saved run: name it with --run FILE")
        return self.run


@verb(
    "mitigate",
    "mitigate DIR -r dense:minilm",
    "mitigate DIR -r bm25 --method fair-rerank --budget 2 -o mitigated.html",
    arguments="[DIR]",
    panel=CORRECT,
)
def mitigate(
    folder: Annotated[
        Path | None,
        Parameter(
            name="DIR",
            help="A collection (a folder, hub:OWNER/NAME or irds:ID) unless --groups, or an "
            "audit (FILE.json) whose run to correct.",
        ),
    ] = None,
    /,
    *,
    inputs: MitigateInputs = MitigateInputs(),
    measure: options.Measures = None,
    corrections: Corrections = Corrections(),
    saving: SavingOptions = SavingOptions(),
    statistics: StatisticsOptions = StatisticsOptions(),
    output: PageOutput = PageOutput(),
) -> int:
    """Correct a ranker without training, and show the cost.

    The ranker is tested first. If no tilt is shown, nothing is fitted (--set mitigate.always=true
    goes on). Corrections are fitted on the train split, or on the collection in --fit. The dev
    split chooses their strength, and the test split shows what each costs. A collection without
    these splits has its queries split at random.

    You get the chosen correction as a formula. --save-run saves the corrected run, --save-ranker
    the corrected ranker. If no correction is chosen, neither saves anything, and the exit code is
    1. With mitigate.always=true, the correction nearest to level is saved.
    """
    inputs = replace(inputs, folder=folder)
    inputs.check_baseline()
    tests = statistics.in_force()
    mitigation_options = corrections.mitigation_options(inputs, seed=tests.seed)
    saving.check(inputs)
    output.check(*inputs.files, also=saving.files)
    rankers = inputs.read_rankers()
    split, runs = read_query_sets(inputs, tests.seed)
    note(query_counts(split))
    baseline = MitigatedBaseline(
        collection=split.test,
        ranker=rankers[0] if rankers else None,
        run=None if rankers else runs[0],
    )
    bench = corrections.mitigate(
        split,
        baseline.uncorrected,
        measure or None,
        options=replace(mitigation_options, pair=inputs.pair_to_correct(split.test)),
        statistics=tests,
    )
    output.deliver(bench)
    if not saving.has_target:
        return 0
    return _save_correction(saving, bench, baseline, inputs)


# ---- the chosen correction is saved -------------------------------------------------------------


def _save_correction(
    saving: SavingOptions, bench: Bench, baseline: MitigatedBaseline, inputs: MitigateInputs
) -> int:
    """Write the chosen correction, and say so; return the exit code: 1 where nothing is written."""
    from ranktilt.mitigation.apply import save_ranker

    applied = bench.choose().applied
    if applied is None:
        _say_nothing_written(saving, bench)
        return 1
    if saving.save_run is not None:
        _save_run(saving.save_run, bench, baseline, applied)
        _note_gate_commands(bench, inputs, saving.save_run)
    if saving.save_ranker is not None:
        text = save_ranker(bench, baseline.collection, saving.save_ranker)
        note(f"{saving.save_ranker}: {applied.name}, as -r {shlex.quote(text)}")
        words = ["ranktilt", "rank", *inputs.rank_words, "-r", text, "-o", "mitigated.trec"]
        note(f"Next: Rank with it: {shlex.join(words)}")
    return 0


def _save_run(path: Path, bench: Bench, baseline: MitigatedBaseline, applied: Candidate) -> None:
    """Write the corrected run, and say what it holds."""
    from ranktilt.mitigation.apply import apply
    from ranktilt.mitigation.baseline import rename_run

    # A correction applies to the run that the bench names, and the bench has the typed name.
    run_of_all_queries = rename_run(baseline.run_of_all_queries(), bench.baseline.name)
    run = with_command(apply(bench, baseline.collection, run_of_all_queries))
    write_files(run.contents(path))
    for line in _run_lines(path, bench, run, applied):
        note(line)


def _run_lines(path: Path, bench: Bench, run: Run, applied: Candidate) -> list[str]:
    """Return notes: what the file holds, and to which of its queries the printed figures apply."""
    remedy, counts = bench.remedy(applied.name), bench.spec["queries"]
    longest = int((run.offsets[1:] - run.offsets[:-1]).max())
    depth = longest if remedy is None else remedy.depth
    is_deeper = longest > depth
    corrected = f", corrected in the first {depth:,} results of each list" if is_deeper else ""
    queries = counted(len(run.queries), "query", "queries")
    chosen = bench.choose().chosen
    forced = "" if chosen is not None else ", which is not shown to be level"
    return [
        f"{path}: {queries}{corrected}, by {applied.name}{forced}",
        f"Fitted on {counts['fit']:,} of them and chosen by {counts['select']:,}. The figures "
        f"above are for {counts['test']:,} others, and so is an audit of {path}, because "
        f"{sidecar(path)} names the queries to leave out.",
    ]


def _note_gate_commands(bench: Bench, inputs: MitigateInputs, path: Path) -> None:
    """Say how to audit the corrected run at `path`, and how to keep it level with a gate."""
    words = ["ranktilt", "audit", *(inputs.rank_words if inputs.folder else [])]
    words += ["--run", str(path)]
    if inputs.labels is not None:
        words += inputs.labels.words
    else:
        for text in inputs.name or ():  # which renames labels of the collection
            words += ["--name", text]
    if inputs.folder is None and inputs.qrels is not None:
        words += ["--qrels", str(inputs.qrels)]
    words += [] if inputs.column in ("source", None) else ["--by", inputs.by]
    for pair in inputs.pairs or ():
        words += ["--pair", ",".join(pair)]
    if inputs.reference is not None and not inputs.pairs:
        words += ["--reference", inputs.reference]
    words += ["--primary", bench.primary, "--json", "mitigated.json"]
    gate = ["ranktilt", "gate", "mitigated.json", "--max-tilt", f"{bench.spec['margin']:g}"]
    note(f"Next: Keep it this way in CI: {shlex.join(words)} && {shlex.join(gate)}")


def _say_nothing_written(saving: SavingOptions, bench: Bench) -> None:
    """Say that nothing was written, why, and how to apply a correction all the same."""
    from ranktilt.reporting.sentences.mitigation.next_commands import forced_words, ways_on

    target = saving.save_run or saving.save_ranker
    outcome = bench.choose().outcome
    reason = {
        "level": "there is nothing to mitigate",
        "inconclusive": "the result is inconclusive",
    }.get(outcome, f"the tilt {outcome}")
    typed = ["ranktilt", *sys.argv[1:]]
    way = ways_on(bench, typed)
    say(f"{target}: nothing written, because {reason}{f'; {way}' if way else ''}")
    words = forced_words(bench, typed)
    note(f"Next: Apply a correction all the same: {shlex.join(words)}")
