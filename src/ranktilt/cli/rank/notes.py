"""Notes of ``ranktilt rank`` on each run, and the command that audits the runs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ranktilt.cli.notes import groups_to_audit, note
from ranktilt.cli.rank.source import RankedSource
from ranktilt.errors import counted
from ranktilt.spec import Stage

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.data.runs.run import Run
    from ranktilt.rankers.base import Ranker


def note_audit(
    source: RankedSource, collection: Collection, files: Sequence[Path], rankers: Sequence[Ranker]
) -> None:
    """Print the command that audits the saved runs, if the collection has groups or judgments."""
    groups = groups_to_audit(collection)
    if groups is None:
        return
    words = ["ranktilt", "audit", str(source.folder)]
    for file, ranker in zip(files, rankers, strict=True):
        words += _run_words(file, ranker)
    note(f"Audit it: {shlex.join([*words, *source.words, *groups])}")


def _run_words(file: Path, ranker: Ranker) -> list[str]:
    """Return the options that name a run for an audit.

    Where queries are documents themselves, a ranker may leave the query's own document out of its
    list (``exclude_self``). The audit must do as the ranker did.
    """
    from ranktilt.rankers.base import stages_of

    choices = [getattr(stage, "exclude_self", None) for stage in stages_of(ranker)]
    stated_choices = [choice for choice in choices if choice is not None]
    if not stated_choices:
        return ["--run", str(file)]
    stage_options = {"exclude_self": str(stated_choices[0]).lower()}
    return ["-r", str(Stage(name="replay", argument=str(file), options=stage_options))]


def run_notes(path: Path, run: Run, *, has_judgments: bool) -> Iterator[str]:
    """Yield notes on a run: what was retrieved, which texts were truncated, what was left out.

    `path` is the file of the run, and `has_judgments` says whether an audit counts empty lists.
    """
    from ranktilt.rankers.self_exclusion import exclusion_notes

    lengths = sorted(int(length) for length in run.offsets[1:] - run.offsets[:-1])
    least, most = (lengths[0], lengths[-1]) if lengths else (0, 0)
    length_range = f"{most:,}" if least == most else f"{least:,} to {most:,}"
    documents = "document" if least == most == 1 else "documents"
    queries = counted(len(lengths), "query", "queries")
    repeats = f", {len(run.repeats) + 1} repeats" if run.repeats else ""
    yield f"{path}: {queries}, {length_range} {documents} per query{repeats} ({run.name})"
    empty_count = lengths.count(0)
    if empty_count:
        effect = "; an audit counts that as 0" if has_judgments else ""
        yield f"{run.name}: found nothing for {counted(empty_count, 'query', 'queries')}{effect}"
    for name, cut in run.truncated:
        if any(cut["share"].values()):
            shares = ", ".join(
                f"{100 * share:.0f} % of {source}" for source, share in cut["share"].items()
            )
            yield f"{name}: reads {cut['limit']} tokens and truncates {shares}"
    yield from (note.sentence for note in exclusion_notes(run.name, run.spec))
