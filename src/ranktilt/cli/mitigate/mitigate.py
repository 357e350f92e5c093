"""``ranktilt mitigate``: corrections at inference, and what each costs.

A *baseline* is the ranker or run to correct. Its *corrections* change its scores or its order, and
need no training.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import CORRECT, verb
from ranktilt.cli.mitigate.corrections import Corrections
from ranktilt.cli.mitigate.inputs import MitigateInputs
from ranktilt.cli.mitigate.next_steps import note_gate_commands
from ranktilt.cli.mitigate.query_sets import query_counts, read_query_sets
from ranktilt.cli.mitigate.save import MitigatedBaseline, SavingOptions, save
from ranktilt.cli.notes import note
from ranktilt.cli.output import PageOutput
from ranktilt.cli.statistics_options import StatisticsOptions


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
    tests = statistics.of_mitigation()
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
    code = save(saving, bench, baseline, inputs.rank_words)
    if code == 0 and saving.save_run is not None:
        note_gate_commands(bench, inputs, saving.save_run)
    return code
