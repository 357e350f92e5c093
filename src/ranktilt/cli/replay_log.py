"""``ranktilt tools replay-log``: what an LLM ranker's stored answers say."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ranktilt.cli import options
from ranktilt.cli.output import PageOutput, collection_files
from ranktilt.errors import UserError
from ranktilt.option import Option

if TYPE_CHECKING:
    from ranktilt.collection import Collection
    from ranktilt.run import Run

FAILED = 1
SAVED = ("published", "strict")
"""The runs that ``--save`` writes."""


@options.verb(
    "tools replay-log calls.json --candidates bm25.trec --collection DIR",
    "tools replay-log calls.json --candidates requests.json --groups labels.csv",
)
def replay_log(
    log: Annotated[
        Path,
        typer.Argument(
            metavar="LOG", help="Stored calls: rank_llm's JSON, or lines of query, ids and answer."
        ),
    ],
    *,
    candidates: Annotated[
        Path,
        Option("First-stage lists: a run, or rank_llm's JSON with texts.", "RUN", panel="Input"),
    ],
    folder: Annotated[
        Path | None,
        Option(
            "Collection with texts, judgments and groups; optional if --candidates has texts.",
            "DIR",
            flag="--collection",
            panel="Input",
        ),
    ] = None,
    score_order: options.ScoreOrder = None,
    qrels: options.Qrels = None,
    split: options.Split = None,
    by: Annotated[
        str | None, Option("Column whose groups are compared; none for no groups.", "COLUMN")
    ] = None,
    pair: Annotated[
        list[str] | None, Option("Groups to compare (default: all pairs).", "A,B")
    ] = None,
    measure: options.Measures = None,
    max_failures: options.MaxFailures = None,
    save: Annotated[
        Path | None,
        Option(
            "Save the published and the strict runs in this folder, in TREC format.",
            "DIR",
            panel="Output",
        ),
    ] = None,
    correction: options.Correction = "holm",
    resamples: options.Resamples = 10_000,
    seed: options.Seed = 0,
    labels: options.LabelOptions,
    output: PageOutput,
) -> int:
    """Read an LLM ranker's stored answers again, and tell what the model ranked from what the parser did.

    Every answer is typed; the published run is made again as RankGPT and rank_llm read answers, and
    split into the input order, the model's part and the parser's. No model is needed.
    """
    from ranktilt.auditing.replay_log import log_runs
    from ranktilt.auditing.replay_log import replay_log as replay
    from ranktilt.io.files import sidecar

    groups = labels.labels
    named = (groups.path if groups else None, qrels)
    read = [
        log,
        candidates,
        *(Path(file) for file in named if file is not None),
        *collection_files(folder),
    ]
    places = {name: Path(save, f"{name}.trec") for name in SAVED} if save else {}
    both = [file for path in places.values() for file in (path, sidecar(path))]
    output.check(*read, also={f"--save, {path.name}": path for path in both})
    pairs = options.read_pairs(pair)
    collection, run = _inputs(candidates, folder, qrels, split, score_order=score_order)
    collection = labels.labelled(collection, by or "source")
    found = log_runs(log, run, collection, seed=seed)
    column = by or ("source" if len(collection.sources) > 1 else None)
    column = None if column == "none" else column
    pairs = labels.reference_first(collection, column, pairs) if labels.reference else pairs
    result = replay(
        found,
        collection,
        measure or None,
        by=column,
        pairs=pairs,
        max_failures=max_failures,
        correction=correction,
        resamples=resamples,
        seed=seed,
    )
    files: dict[Path | str | None, Callable[[], bytes]] = {
        file: partial(bytes, data)
        for name, path in places.items()
        for file, data in found.runs[name].contents(path).items()
    }
    output.deliver(result, files)
    return 0 if result.passed else FAILED


def _inputs(
    candidates: Path,
    folder: Path | None,
    qrels: str | None,
    split: str | None,
    *,
    score_order: str | None,
) -> tuple[Collection, Run]:
    """The collection and the candidates; the texts may stand in either."""
    import polars as pl

    from ranktilt.collection import Collection
    from ranktilt.datasets.load import NO_QRELS, load
    from ranktilt.datasets.rank_llm import holds_texts, read_candidates
    from ranktilt.io.qrels import read_qrels
    from ranktilt.run import Run

    judged = None if qrels == NO_QRELS else qrels
    if split is not None and folder is None:
        raise UserError(
            "--split needs a collection (--collection DIR); or name a judgment file: --qrels FILE"
        )
    if holds_texts(candidates):
        collection, run = read_candidates(candidates, qrels=judged)
    else:
        run = Run.load(candidates, score_order=score_order)
        queries = pl.DataFrame(
            {"id": run.queries, "text": ""}, schema={"id": pl.String, "text": pl.String}
        )
        rows = read_qrels(judged).drop("line") if judged and folder is None else None
        none = pl.DataFrame(schema={"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32})
        docs = pl.DataFrame(
            {"id": run.ids, "text": ""}, schema={"id": pl.String, "text": pl.String}
        )
        collection = Collection(
            docs, queries, none if rows is None else rows, {"files": [str(candidates)]}
        )
    if folder is None:
        return collection, run
    none_asked = NO_QRELS if qrels is None and options.without_judgments(folder, split) else qrels
    return load(folder, split=split, qrels=none_asked, ignore_unknown=True), run
