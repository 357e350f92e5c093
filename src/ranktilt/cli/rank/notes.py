"""Notes of ``ranktilt rank`` on each run, and the command that audits the runs.

A ranker may be a pipeline of several *stages*, such as ``bm25>>monobert``: the first searches the
collection, and the others re-rank what it returned. A *source* is who wrote a document, such as
human.
"""

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
    """Print the command that audits the saved runs.

    Print nothing if the collection has neither two sources nor judgments: an audit would have
    nothing to measure.

    Parameters
    ----------
    source : RankedSource
        The ranked collection, with the options that it was read with.
    collection : Collection
        Its content.
    files : sequence of Path
        The file of each run.
    rankers : sequence of Ranker
        The ranker of each run.
    """
    group_options = groups_to_audit(collection)
    if group_options is None:
        return
    words = ["ranktilt", "audit", str(source.folder)]
    for file, ranker in zip(files, rankers, strict=True):
        words += _run_options(file, ranker)
    words += [*source.reading_options, *group_options]
    note(f"Audit it: {shlex.join(words)}")


def _run_options(file: Path, ranker: Ranker) -> list[str]:
    """Return the options that name a run for an audit.

    Where queries are documents themselves, a ranker may leave the query's own document out of its
    list (``exclude_self``). The audit must do as the ranker did.
    """
    from ranktilt.rankers.base import stages_of

    choices = [getattr(stage, "exclude_self", None) for stage in stages_of(ranker)]
    stated_choices = [choice for choice in choices if choice is not None]
    if not stated_choices:
        return ["--run", str(file)]
    # Later stages re-rank what the first one returned, so the first choice decides.
    stage_options = {"exclude_self": str(stated_choices[0]).lower()}
    # ``--run FILE`` takes no options; the ranker ``replay`` reads the same file, and does.
    return ["-r", str(Stage(name="replay", argument=str(file), options=stage_options))]


def run_notes(path: Path, run: Run, *, has_judgments: bool) -> Iterator[str]:
    """Yield notes on a run: what was retrieved, which texts were truncated, what was left out.

    `path` is the file of the run. `has_judgments` says whether the collection has judgments, with
    which an audit counts a query without documents as 0.
    """
    from ranktilt.rankers.self_exclusion import exclusion_notes

    # The list of each query ends where the next one starts.
    list_starts, list_ends = run.offsets[:-1], run.offsets[1:]
    lengths = sorted((list_ends - list_starts).tolist())
    least, most = (lengths[0], lengths[-1]) if lengths else (0, 0)
    length_range = f"{most:,}" if least == most else f"{least:,} to {most:,}"
    documents = "document" if least == most == 1 else "documents"
    queries = counted(len(lengths), "query", "queries")
    # `Run.repeats` are further rankings of the same queries, besides the run itself.
    repeats = f", {len(run.repeats) + 1} repeats" if run.repeats else ""
    yield f"{path}: {queries}, {length_range} {documents} per query{repeats} ({run.name})"
    empty_count = lengths.count(0)
    if empty_count:
        effect = "; an audit counts that as 0" if has_judgments else ""
        yield f"{run.name}: found nothing for {counted(empty_count, 'query', 'queries')}{effect}"
    for stage, truncation in run.truncated:
        share_of_source = truncation["share"]
        if any(share_of_source.values()):
            shares = ", ".join(
                f"{100 * share:.0f} % of {source}" for source, share in share_of_source.items()
            )
            yield f"{stage}: reads {truncation['limit']} tokens and truncates {shares}"
    for exclusion_note in exclusion_notes(run.name, run.spec):
        yield exclusion_note.sentence
