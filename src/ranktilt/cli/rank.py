"""``ranktilt rank``: rank now, audit later."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Sequence
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
    file_name,
    print_result,
    with_command,
    with_sidecars,
)
from ranktilt.data.files import write_files
from ranktilt.data.formats.notation import file_of
from ranktilt.errors import UserError, counted
from ranktilt.spec import Stage

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.data.run import Run
    from ranktilt.rankers.base import Ranker

_STDOUT = Path("stdout")


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
            help="Judgments that name the queries to rank; none for all queries.",
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
    """Rank, and save the run to audit it later.

    Ranks the judged queries, or all where nothing is judged; runs are written in TREC format.
    """
    if not ranker:
        raise UserError("nothing to rank with: name a ranker, such as -r bm25")
    prices = options.read_price(price, dry_run=dry_run)
    from ranktilt.data.load import load

    rankers = options.read_rankers(ranker, preset, text=text, max_failures=max_failures)
    if dry_run:
        collection = load(folder, split=split, qrels=qrels, ignore_unknown=ignore_unknown)
        estimates = "\n".join(_estimates(rankers, collection, prices))
        if not estimates:
            raise UserError("--dry-run needs a ranker that asks a language model")
        print_result(estimates)
        return
    if output is None:
        raise UserError(
            "no output: name a file (-o FILE), or ask for the cost of language models (--dry-run)"
        )
    files = _files(output, rankers)
    _check(
        files, [*collection_files(folder), *_read(rankers), *([file_of(qrels)] if qrels else [])]
    )
    collection = load(folder, split=split, qrels=qrels, ignore_unknown=ignore_unknown)
    if not files:
        _require_plain(output, collection)
    runs = [with_command(run) for run in options.rank_with(rankers, collection)]
    shown = "" if files else runs[0].contents(_STDOUT)[_STDOUT].decode()
    deliver(
        shown,
        {},
        *(partial(write_files, run.contents(file)) for file, run in zip(files, runs, strict=False)),
    )
    for file, run in zip(files or [_STDOUT], runs, strict=True):
        for line in _notes(file, run, judged=bool(collection.qrels.height)):
            note(line)
    groups = groups_to_audit(collection)
    if files and groups is not None:
        named = {"--split": split, "--qrels": qrels}
        how = [
            part for option, value in named.items() if value is not None for part in (option, value)
        ]
        how += ["--ignore-unknown"] if ignore_unknown else []
        runs_of = [
            word
            for file, ranked_by in zip(files, rankers, strict=True)
            for word in _run_words(file, ranked_by)
        ]
        note(f"Audit it: {shlex.join(['ranktilt', 'audit', str(folder), *runs_of, *how, *groups])}")


def _run_words(file: Path, ranker: Ranker) -> list[str]:
    """Return the words that name a run for an audit, with what its ranker did about queries that are documents."""
    from ranktilt.rankers.base import stages_of

    choices = [getattr(stage, "exclude_self", None) for stage in stages_of(ranker)]
    chosen = [choice for choice in choices if choice is not None]
    if not chosen:
        return ["--run", str(file)]
    return ["-r", str(Stage("replay", str(file), {"exclude_self": str(chosen[0]).lower()}))]


def _estimates(
    rankers: Sequence[Ranker], collection: Collection, price: tuple[float, float] | None
) -> Iterator[str]:
    """A block of lines for each stage that asks a language model; the stages before it rank."""
    from ranktilt.rankers.base import stages_of
    from ranktilt.rankers.llm.base import LLMRanker

    for one in rankers:
        stages, run, certain = stages_of(one), None, True
        asking = [number for number, stage in enumerate(stages) if isinstance(stage, LLMRanker)]
        for number, stage in enumerate(stages[: asking[-1] + 1 if asking else 0]):
            if not isinstance(stage, LLMRanker):
                run = stage.rank(collection, run)
                continue
            run, rehearsal = stage.rehearse(collection, run, certain=certain)
            certain = rehearsal.certain
            yield f"{'>>'.join(map(repr, stages[: number + 1]))}\n" + "".join(
                f"  {name:<10}  {text}\n" for name, text in rehearsal.lines(price)
            )


def _files(output: str, rankers: Sequence[Ranker]) -> list[Path]:
    """A file for each run; none for stdout."""
    path = Path(output)
    if not (output.endswith(("/", os.sep)) or path.is_dir()):
        if len(rankers) > 1:
            raise UserError(
                f"-o {output}: holds one run, got {len(rankers)} rankers; name a folder, such as -o runs/"
            )
        return [] if output == "-" else [path]
    names = [file_name(re.sub(r"[^\w.=@+-]+", "_", repr(one)).strip("_.")) for one in rankers]
    before = [names[:number].count(name) for number, name in enumerate(names)]
    return [
        path / f"{name}{f'-{n + 1}' if n else ''}.trec"
        for name, n in zip(names, before, strict=True)
    ]


def _read(rankers: Sequence[Ranker]) -> Iterator[Path]:
    """Files that rankers read: saved runs."""
    from ranktilt.rankers.base import stages_of
    from ranktilt.rankers.replay import Replay

    yield from (
        Path(stage.file) for one in rankers for stage in stages_of(one) if isinstance(stage, Replay)
    )


def _check(files: Sequence[Path], inputs: Sequence[Path]) -> None:
    """Refuse places that cannot be written, before anything is ranked."""
    many = len(files) > 1
    paths = {f"-o {file.name}" if many else "-o": file for file in files}
    check_paths(with_sidecars(paths), inputs=inputs)


def _require_plain(output: str, collection: Collection) -> None:
    """Refuse ids that need an escape, before anything is ranked, where no sidecar can say that there is one."""
    from ranktilt.data.run import beyond_trec

    for noun, names in (("query", collection.queries["id"]), ("document", collection.ids)):
        blank = beyond_trec(names)
        if len(blank):
            what = f"{noun} id {blank[0]!r} has a blank in it, which a run alone cannot hold"
            raise UserError(f"-o {output}: {what}; name a file instead")


def _notes(path: Path, run: Run, *, judged: bool) -> Iterator[str]:
    """Say what was found, what was not read, and what was left out."""
    from ranktilt.rankers.self_exclusion import exclusion_notes

    lengths = sorted(int(n) for n in run.offsets[1:] - run.offsets[:-1])
    least, most = (lengths[0], lengths[-1]) if lengths else (0, 0)
    each = f"{most:,}" if least == most else f"{least:,} to {most:,}"
    documents = "document" if least == most == 1 else "documents"
    yield f"{path}: {counted(len(lengths), 'query', 'queries')}, {each} {documents} a query ({run.name})"
    nothing = lengths.count(0)
    if nothing:
        counts = "; an audit counts that as 0" if judged else ""
        yield f"{run.name}: found nothing for {counted(nothing, 'query', 'queries')}{counts}"
    for name, cut in run.truncated:
        if any(cut["share"].values()):
            shares = ", ".join(
                f"{100 * share:.0f} % of {source}" for source, share in cut["share"].items()
            )
            yield f"{name}: reads {cut['limit']} tokens; longer, and cut, are {shares}"
    yield from (note.sentence for note in exclusion_notes(run.name, run.spec))
