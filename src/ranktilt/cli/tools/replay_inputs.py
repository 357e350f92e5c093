"""What ``ranktilt tools replay-log`` reads: candidates, and the collection of texts and groups."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ranktilt.cli import options
from ranktilt.cli.label_options import LabelOptions
from ranktilt.data.formats.notation import file_of

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.data.runs.run import Run


def label_files(labels: LabelOptions, qrels: str | None) -> list[Path]:
    """Return the files of labels and judgments that are read."""
    files = [] if labels.labels is None else [Path(labels.labels.path)]
    return files if qrels is None else [*files, file_of(qrels)]


def column_of(by: str | None, collection: Collection) -> str | None:
    """Return the column to group by: unless one or none is named, several sources."""
    if by is None:
        return "source" if len(collection.sources) > 1 else None
    return None if by == "none" else by


def load_collection(folder: Path, split: str | None, qrels: str | None) -> Collection:
    """Load the collection that has texts, judgments and groups; it may have no judgments."""
    from ranktilt.data.loading.load import NO_QRELS, load

    if qrels is None and options.without_judgments(folder, split):
        qrels = NO_QRELS
    return load(folder, split=split, qrels=qrels, ignore_unknown=True)


def load_candidates(
    file: Path, qrels: str | None, score_order: str | None
) -> tuple[Collection, Run]:
    """Read the candidates, and a collection of them; without texts in the file, of ids alone."""
    import polars as pl

    from ranktilt.data.collection import Collection
    from ranktilt.data.formats.judgments.qrels import read_qrels
    from ranktilt.data.loading.load import NO_QRELS
    from ranktilt.data.runs.rank_llm import holds_texts, read_candidates
    from ranktilt.data.runs.run import Run

    judgments = None if qrels == NO_QRELS else qrels
    if holds_texts(file):
        return read_candidates(file, qrels=judgments)
    run = Run.load(file, score_order=score_order)
    columns = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32}
    judged = read_qrels(judgments).drop("line") if judgments else pl.DataFrame(schema=columns)
    schema = {"id": pl.String, "text": pl.String}
    return (
        Collection(
            pl.DataFrame({"id": run.ids, "text": ""}, schema=schema),
            pl.DataFrame({"id": run.queries, "text": ""}, schema=schema),
            judged,
            {"files": [str(file)]},
        ),
        run,
    )
