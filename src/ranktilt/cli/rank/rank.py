"""``ranktilt rank``: rank the documents of a collection, and save the runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, MORE, OUTPUT, verb
from ranktilt.cli.notes import note
from ranktilt.cli.output import FILE_OR_STDOUT, deliver, with_command
from ranktilt.cli.rank.estimates import print_estimates
from ranktilt.cli.rank.notes import note_audit, run_notes
from ranktilt.cli.rank.source import RankedSource
from ranktilt.cli.rank.targets import check_targets, require_plain_ids, run_files, saved_runs
from ranktilt.cli.rankers import rank_with, read_rankers
from ranktilt.data.files import write_files
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.data.runs.run import Run

_STDOUT = Path("stdout")
"""Path that stands for standard output; no file of this name is written."""


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
    rankers = read_rankers(ranker, preset, text=text, max_failures=max_failures)
    if dry_run:
        print_estimates(rankers, source.load(), prices)
        return
    if output is None:
        raise UserError(
            "no output: name a file (-o FILE), or ask for the cost of language models (--dry-run)"
        )
    files = run_files(output, rankers)
    check_targets(files, [*source.files, *saved_runs(rankers)])
    collection = source.load()
    if not files:
        require_plain_ids(output, collection)
    runs = [with_command(run) for run in rank_with(rankers, collection, repeats=True)]
    _deliver(runs, files)
    for file, run in zip(files or [_STDOUT], runs, strict=True):
        for line in run_notes(file, run, has_judgments=bool(collection.qrels.height)):
            note(line)
    if files:
        note_audit(source, collection, files, rankers)


def _deliver(runs: Sequence[Run], files: Sequence[Path]) -> None:
    """Write each run into its file; without files, print the only run."""
    if not files:
        deliver(runs[0].contents(_STDOUT)[_STDOUT].decode(), {})
        return
    writers = [
        partial(write_files, run.contents(file)) for file, run in zip(files, runs, strict=True)
    ]
    deliver("", {}, *writers)
