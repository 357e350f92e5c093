"""What ``ranktilt explain`` reads, and the options that it refuses together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ranktilt.cli import options
from ranktilt.cli.label_options import LabelOptions
from ranktilt.cli.saved_runs import SavedRunOptions
from ranktilt.data.formats.notation import file_of
from ranktilt.errors import UserError
from ranktilt.sizes import read_points

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.data.runs.run import Run


def require_folder(folder: Path | None) -> Path:
    """Return the folder of the collection; refuse to go on without one."""
    if folder is None:
        raise UserError("name a collection DIR; without one: --groups FILE and --run FILE")
    return folder


def check_gaps(
    attribution: bool,
    ranker: list[str] | None,
    saved_runs: SavedRunOptions,
    *,
    folder: Path | None,
    labels: LabelOptions,
) -> None:
    """Refuse a question about a gap without anything that makes one, and the reverse."""
    if folder is None and ranker:
        raise UserError(f"ranker {ranker[0]!r} needs texts: name a collection DIR")
    if folder is None and not (labels.groups and saved_runs.run):
        require_folder(folder)
    if attribution and not (ranker or saved_runs.run):
        raise UserError("--attribution needs rankers or runs: name one or more with -r or --run")
    if ranker and not attribution and not saved_runs.run:
        raise UserError(
            "-r needs a question: --attribution (which properties of the texts go with the "
            "ranker's gap) or --by-factor; to examine an encoder's vectors: --encoder SPEC"
        )
    if not saved_runs.run and (saved_runs.score_order or saved_runs.queries):
        option = "--score-order" if saved_runs.score_order else "--queries"
        raise UserError(f"{option} needs a run: --run FILE")


def input_files(saved_runs: SavedRunOptions, labels: LabelOptions) -> list[Path]:
    """Return the files that are read, besides the collection's."""
    label_file = labels.labels.path if labels.labels else None
    files = [run_file.text for run_file in saved_runs.run_files]
    files += [str(file) for file in (label_file, saved_runs.queries) if file is not None]
    return [file_of(file) for file in files]


def read_documents(
    folder: Path | None,
    split: str | None,
    labels: LabelOptions,
    *,
    by: str,
    runs: list[Run],
) -> Collection:
    """Read the collection with the columns of the label file, or make one of these alone."""
    from ranktilt.data.labels.labels import labelled, with_labels

    if folder is None:
        return labelled(labels.labels or "", runs, by=by)
    collection = options.load_texts(folder, split)
    if labels.labels is None:
        return labels.labelled(collection, by)
    return with_labels(collection, labels.labels, by=by, other_columns=True)


def check_by_factor(by_factor: bool, ranker: list[str] | None, *, beside: bool) -> None:
    """Refuse what --by-factor needs and lacks, and options that it would not read."""
    if not by_factor:
        raise UserError("--adopters needs --by-factor")
    if not ranker:
        raise UserError("--by-factor needs rankers: name one or more with -r")
    if beside:
        raise UserError(
            "--by-factor examines no texts: omit --probe, --encoder, --attribution, --run and "
            "--groups"
        )


def read_percentages(text: str | None) -> list[float]:
    """Read ``0,10,50,100``; none where nothing is named."""
    if text is None:
        return []
    return [read_points(part, "--adopters", most=100, example=10) for part in text.split(",")]


def words_with_texts(saved_runs: SavedRunOptions, labels: LabelOptions, by: str) -> list[str]:
    """Return the command that explains the same runs by texts too, in a folder DIR."""
    words = ["ranktilt", "explain", "DIR"]
    for path in saved_runs.run or ():
        words += ["--run", str(path)]
    words += labels.labels.words if labels.labels else []
    words += ["--by", by] if by != "source" else []
    return words if labels.reference is None else [*words, "--reference", labels.reference]
