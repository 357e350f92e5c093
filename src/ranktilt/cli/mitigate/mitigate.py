"""``ranktilt mitigate``: corrections at inference, and what each costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import CORRECT, INPUT, verb
from ranktilt.cli.audit.inputs import InputOptions
from ranktilt.cli.mitigate.corrections import Corrections
from ranktilt.cli.mitigate.inputs import baseline_of, check_inputs, rank_words
from ranktilt.cli.mitigate.next_steps import note_gate
from ranktilt.cli.mitigate.query_sets import read_query_sets, split_words
from ranktilt.cli.mitigate.save import (
    MitigatedInputs,
    SavingOptions,
    save,
)
from ranktilt.cli.notes import note
from ranktilt.cli.output import PageOutput, collection_files
from ranktilt.cli.rankers import read_rankers
from ranktilt.cli.statistics_options import StatisticsOptions, resampling

if TYPE_CHECKING:
    pass


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
    check_inputs(inputs, fit)
    keywords = statistics.of_mitigation()
    seed = resampling()["seed"]
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
    split, runs = read_query_sets(inputs, fit, seed)
    note(split_words(split))
    if inputs.reference:
        pairs = inputs.reference_first(split.test, inputs.column, inputs.pairs)
        chosen = replace(chosen, pair=pairs[0]) if pairs and len(pairs) == 1 else chosen
    bench = run_mitigation(
        split,
        baseline_of(rankers, runs),
        measure or None,
        options=chosen,
        effectiveness=corrections.effectiveness,
        budget=corrections.budget,
        **keywords,
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
        note_gate(bench, inputs, saving.save_run)
    return code
