"""``ranktilt rank``: rank the documents of a collection, and save the runs.

A ranker may be a pipeline of several *stages*, such as ``bm25>>monobert``: the first searches the
collection, and the others re-rank what it returned. A *rehearsal* ranks without asking a language
model, and counts the requests. A *source* is who wrote a document, such as human.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, MORE, OUTPUT, verb
from ranktilt.cli.notes import groups_to_audit, note
from ranktilt.cli.output import (
    FILE_OR_STDOUT,
    check_paths,
    collection_files,
    deliver,
    file_names,
    print_result,
    with_command,
    with_sidecars,
)
from ranktilt.cli.rankers import rank_with, read_rankers, require_reader_of_text
from ranktilt.data.files import write_files
from ranktilt.data.formats.notation import file_of
from ranktilt.errors import UserError, counted
from ranktilt.spec import Stage

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.data.runs.run import Run
    from ranktilt.rankers.base import Ranker

_STDOUT = Path("stdout")
"""Path that stands for standard output; no file of this name is written."""


@dataclass(frozen=True, kw_only=True)
class RankedSource:
    """A collection and the options that say how it is read."""

    folder: Path
    """The collection, as it was typed."""
    split: str | None
    """Name of the judgments to use, such as ``test``; None for the usual ones."""
    qrels: str | None
    """File of judgments to use instead; None for the collection's own."""
    ignore_unknown: bool
    """Whether judgments may name documents or queries that the collection lacks."""

    @property
    def files(self) -> list[Path]:
        """Files that are read."""
        qrels_files = [file_of(self.qrels)] if self.qrels else []
        return [*collection_files(self.folder), *qrels_files]

    @property
    def reading_options(self) -> list[str]:
        """Options, as typed, with which an audit reads the collection in the same way."""
        words: list[str] = []
        if self.split is not None:
            words += ["--split", self.split]
        if self.qrels is not None:
            words += ["--qrels", self.qrels]
        if self.ignore_unknown:
            words.append("--ignore-unknown")
        return words

    def load(self) -> Collection:
        """Read the collection."""
        from ranktilt.data.loading.load import load

        return load(
            self.folder, split=self.split, qrels=self.qrels, ignore_unknown=self.ignore_unknown
        )


@verb(
    "rank",
    "rank DIR -r bm25 -o bm25.trec",
    'rank DIR -r "bm25@100>>monobert:base" -o runs/',
    arguments="DIR",
    panel=MORE,
)
def rank(
    folder: options.Folder,
    /,
    *,
    ranker: options.Rankers = None,
    output: Annotated[
        str | None,
        FILE_OR_STDOUT,
        Parameter(
            alias="-o",
            help="File for the run; a folder (DIR/) for several; - for stdout.",
            metavar="FILE",
            group=OUTPUT,
        ),
    ] = None,
    qrels: Annotated[
        str | None,
        Parameter(
            help="Judgments whose queries to rank; none for all queries.",
            metavar="FILE",
            group=INPUT,
        ),
    ] = None,
    split: options.Split = None,
    ignore_unknown: Annotated[
        bool,
        Parameter(
            help="Allow judgments of documents and queries that the collection lacks.",
            group=INPUT,
        ),
    ] = False,
    preset: options.Preset = None,
    dry_run: options.DryRun = False,
    price: options.Price = None,
    text: options.Text = None,
    max_failures: options.MaxFailures = None,
) -> None:
    """Rank documents, and save the run to audit later.

    It ranks the judged queries, or all queries if there are no judgments, and saves runs in TREC
    format.
    """
    if not ranker:
        raise UserError("nothing to rank with: name a ranker, such as -r bm25")
    prices = options.read_price(price, dry_run=dry_run)
    source = RankedSource(folder=folder, split=split, qrels=qrels, ignore_unknown=ignore_unknown)
    require_reader_of_text(text, ranker)
    rankers = read_rankers(ranker, preset, text=text, max_failures=max_failures)
    if dry_run:
        _print_estimates(rankers, source.load(), prices)
        return
    if output is None:
        raise UserError(
            "no output: name a file (-o FILE), or ask for the cost of language models (--dry-run)"
        )
    files = _run_files(output, rankers)
    _check_run_files(files, [*source.files, *_replayed_files(rankers)])
    collection = source.load()
    if not files:
        _require_plain_ids(output, collection)
    runs = [with_command(run) for run in rank_with(rankers, collection, repeats=True)]
    _write_runs(runs, files)
    for file, run in zip(files or [_STDOUT], runs, strict=True):
        for line in _run_notes(file, run, has_judgments=bool(collection.qrels.height)):
            note(line)
    if files:
        _note_audit(source, collection, files, rankers)


# ---- files of runs ------------------------------------------------------------------------------


def _run_files(output: str, rankers: Sequence[Ranker]) -> list[Path]:
    """Return a file for each run: `output`, or in a folder a file with the name of each ranker.

    The list is empty for standard output (``-``).
    """
    path = Path(output)
    if not (output.endswith(("/", os.sep)) or path.is_dir()):
        if len(rankers) > 1:
            raise UserError(
                f"-o {output}: holds one run, got {len(rankers)} rankers; name a folder, such as "
                "-o runs/"
            )
        return [] if output == "-" else [path]
    return [path / f"{name}.trec" for name in file_names(map(repr, rankers))]


def _replayed_files(rankers: Sequence[Ranker]) -> Iterator[Path]:
    """Yield the files of saved runs that rankers read."""
    from ranktilt.rankers.base import stages_of
    from ranktilt.rankers.replay import Replay

    for ranker in rankers:
        for stage in stages_of(ranker):
            if isinstance(stage, Replay):
                yield Path(stage.file)


def _check_run_files(files: Sequence[Path], inputs: Sequence[Path]) -> None:
    """Refuse files that cannot be written or that are read, before anything is ranked."""
    has_several = len(files) > 1
    paths = {f"-o {file.name}" if has_several else "-o": file for file in files}
    check_paths(with_sidecars(paths), inputs=inputs)


def _require_plain_ids(output: str, collection: Collection) -> None:
    """Refuse ids with blanks where a run goes to standard output, before anything is ranked.

    In a file they are escaped, and the sidecar says so; standard output has no sidecar.
    """
    from ranktilt.data.runs.run_text import ids_beyond_trec

    for noun, names in (("query", collection.queries["id"]), ("document", collection.ids)):
        blank = ids_beyond_trec(names)
        if len(blank):
            raise UserError(
                f"-o {output}: {noun} id {blank[0]!r} contains a blank, which a run alone "
                "cannot hold; name a file instead"
            )


def _write_runs(runs: Sequence[Run], files: Sequence[Path]) -> None:
    """Write each run into its file; without files, print the only run."""
    if not files:
        deliver(runs[0].contents(_STDOUT)[_STDOUT].decode(), {})
        return
    writers = [
        partial(write_files, run.contents(file)) for file, run in zip(files, runs, strict=True)
    ]
    deliver("", {}, *writers)


# ---- requests of language models, and their price -----------------------------------------------


def _print_estimates(
    rankers: Sequence[Ranker], collection: Collection, price: tuple[float, float] | None
) -> None:
    """Print how many requests each ranker would send to its language model, and their price.

    `price` holds the prices of a million input tokens and of a million output tokens.
    """
    estimates: list[str] = []
    for ranker in rankers:
        estimates += _estimates(ranker, collection, price)
    if not estimates:
        raise UserError("--dry-run needs a ranker that asks a language model")
    print_result("\n".join(estimates))


def _estimates(
    ranker: Ranker, collection: Collection, price: tuple[float, float] | None
) -> Iterator[str]:
    """Yield a block of lines for each stage that asks a language model.

    How much a stage asks depends on the documents that it gets, so the stages before it are run.
    """
    from ranktilt.rankers.base import stages_of
    from ranktilt.rankers.llm.base import LLMRanker

    stages = stages_of(ranker)
    llm_indices = [index for index, stage in enumerate(stages) if isinstance(stage, LLMRanker)]
    stages_to_run = stages[: llm_indices[-1] + 1] if llm_indices else ()
    # The requests of a stage are certain unless they depend on answers to an earlier stage.
    run, is_certain = None, True
    for number, stage in enumerate(stages_to_run, start=1):
        if not isinstance(stage, LLMRanker):
            run = stage.rank(collection, run)
            continue
        run, rehearsal = stage.rehearse(collection, run, certain=is_certain)
        is_certain = rehearsal.certain
        lines = [f"  {name:<10}  {text}\n" for name, text in rehearsal.lines(price)]
        yield ">>".join(map(repr, stages[:number])) + "\n" + "".join(lines)


# ---- notes --------------------------------------------------------------------------------------


def _run_notes(path: Path, run: Run, *, has_judgments: bool) -> Iterator[str]:
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


def _note_audit(
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
