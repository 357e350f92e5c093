"""``ranktilt mitigate``: corrections at inference, and what each costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import CORRECT, INPUT, verb
from ranktilt.cli.audit.inputs import InputOptions
from ranktilt.cli.mitigate.corrections import Corrections
from ranktilt.cli.mitigate.inputs import (
    baseline_name,
    baseline_of,
    check_inputs,
    rank_words,
)
from ranktilt.cli.mitigate.next_steps import note_gate_commands
from ranktilt.cli.mitigate.query_sets import read_query_sets, split_words
from ranktilt.cli.mitigate.save import (
    MitigatedInputs,
    SavingOptions,
    save,
)
from ranktilt.cli.notes import note
from ranktilt.cli.output import PageOutput, collection_files
from ranktilt.cli.rankers import read_rankers
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
    inputs: InputOptions = InputOptions(),
    fit: Annotated[
        Path | None,
        Parameter(
            help="Fit corrections on this other collection, and use DIR only to choose "
            "strengths and test.",
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

    The ranker is tested first. If no tilt is shown, nothing is fitted (--set mitigate.always=true
    goes on). Corrections are fitted on the train split, or on the collection in --fit. The dev
    split chooses their strength, and the test split shows what each costs. A collection without
    these splits has its queries split at random.

    You get the chosen correction as a formula. --save-run saves the corrected run, --save-ranker
    the corrected ranker. If no correction is chosen, neither saves anything, and the exit code is
    1. With mitigate.always=true, the correction nearest to level is saved.
    """
    inputs = replace(inputs, folder=folder)
    check_inputs(inputs, fit)
    tests = statistics.of_mitigation()
    pair = next(iter(inputs.pairs or ()), None)
    mitigation_options = replace(
        corrections.mitigation_options(by=inputs.column or "", pair=pair, seed=tests.seed),
        name=baseline_name(inputs),
    )
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
    split, runs = read_query_sets(inputs, fit, tests.seed)
    note(split_words(split))
    if inputs.reference:
        pairs = inputs.reference_first(split.test, inputs.column, inputs.pairs)
        # With more than two groups there are several pairs, and `run_mitigation` asks for one.
        if pairs and len(pairs) == 1:
            mitigation_options = replace(mitigation_options, pair=pairs[0])
    bench = run_mitigation(
        split,
        baseline_of(rankers, runs),
        measure or None,
        options=mitigation_options,
        effectiveness=corrections.effectiveness,
        budget=corrections.budget,
        primary=tests.primary,
        ties=tests.ties,
        test=tests.test,
        correction=tests.correction,
        margin=tests.margin,  # type: ignore[arg-type]  # `check_limits` refuses all but points
        resamples=tests.resamples,
    )
    output.deliver(bench)
    if not saving.has_target:
        return 0
    mitigated = MitigatedInputs(
        collection=split.test,
        ranker=rankers[0] if rankers else None,
        run=None if rankers else runs[0],
    )
    code = save(saving, bench, mitigated, rank_words(inputs))
    if code == 0 and saving.save_run is not None:
        note_gate_commands(bench, inputs, saving.save_run)
    return code
