"""``ranktilt tools replay-log``: what an LLM ranker's stored answers say."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, OUTPUT, QUESTION, verb
from ranktilt.cli.label_options import LabelOptions
from ranktilt.cli.output import PageOutput, collection_files
from ranktilt.cli.statistics_options import statistics_settings
from ranktilt.cli.tools.group import tools
from ranktilt.cli.tools.replay_inputs import (
    column_of,
    label_files,
    load_candidates,
    load_collection,
)
from ranktilt.errors import UserError

FAILED = 1
"""Exit status where more answers failed than allowed."""
SAVED = ("published", "strict")
"""The runs that ``--save`` writes."""


@verb(
    "replay-log",
    "tools replay-log calls.json --candidates bm25.trec --collection DIR",
    "tools replay-log calls.json --candidates requests.json --groups labels.csv",
    arguments="LOG",
    parent=tools,
)
def replay_log(
    log: Annotated[
        Path,
        Parameter(
            name="LOG", help="Stored calls: rank_llm's JSON, or lines of query, ids and answer."
        ),
    ],
    /,
    *,
    candidates: Annotated[
        Path,
        Parameter(
            help="First-stage lists: a run, or rank_llm's JSON with texts.",
            metavar="RUN",
            group=INPUT,
        ),
    ],
    folder: Annotated[
        Path | None,
        Parameter(
            name="--collection",
            help="Collection with texts, judgments and groups; optional if --candidates has texts.",
            metavar="DIR",
            group=INPUT,
        ),
    ] = None,
    score_order: options.ScoreOrder = None,
    qrels: options.Qrels = None,
    split: options.Split = None,
    labels: LabelOptions = LabelOptions(),
    by: Annotated[
        str | None,
        Parameter(
            help="Column whose groups to compare (default: several sources); none for no groups.",
            metavar="COLUMN",
            group=QUESTION,
        ),
    ] = None,
    pair: Annotated[
        list[str] | None,
        Parameter(help="Groups to compare (default: all pairs).", metavar="A,B", group=QUESTION),
    ] = None,
    measure: options.Measures = None,
    max_failures: options.MaxFailures = None,
    save: Annotated[
        Path | None,
        Parameter(
            help="Save the published and the strict runs in this folder, in TREC format.",
            metavar="DIR",
            group=OUTPUT,
        ),
    ] = None,
    output: PageOutput = PageOutput(),
) -> int:
    """Separate what an LLM ranker ranked from what its parser did.

    Each stored answer gets a type. The published run is made again as RankGPT and rank_llm read
    answers, and split into the input order, the model's part and the parser's part. You need no
    model.
    """
    from ranktilt.auditing.replay_log.replay_log import replay_log as replay
    from ranktilt.auditing.replay_log.runs import log_runs
    from ranktilt.data.files import sidecar

    inputs = [log, candidates, *collection_files(folder), *label_files(labels, qrels)]
    run_paths = {} if save is None else {name: Path(save, f"{name}.trec") for name in SAVED}
    written = [*run_paths.values(), *map(sidecar, run_paths.values())]
    output.check(*inputs, also={f"--save, {path.name}": path for path in written})
    pairs = options.read_pairs(pair)
    if split is not None and folder is None:
        raise UserError(
            "--split needs a collection (--collection DIR); or name a judgment file: --qrels FILE"
        )
    collection, run = load_candidates(candidates, qrels, score_order)
    if folder is not None:
        collection = load_collection(folder, split, qrels)
    collection = labels.labelled(collection, by or "source")
    column = column_of(by, collection)
    if labels.reference:
        pairs = labels.reference_first(collection, column, pairs)
    statistics = statistics_settings()
    replayed = log_runs(log, run, collection, seed=statistics.seed)
    result = replay(
        replayed,
        collection,
        measure or None,
        by=column,
        pairs=pairs,
        max_failures=max_failures,
        resamples=statistics.resamples,
        seed=statistics.seed,
        correction=statistics.correction,
    )
    files: dict[Path | str | None, Callable[[], bytes]] = {}
    for name, path in run_paths.items():
        contents = replayed.runs[name].contents(path)
        files |= {file: partial(bytes, content) for file, content in contents.items()}
    output.deliver(result, files)
    return 0 if result.passed else FAILED
