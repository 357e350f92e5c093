"""``ranktilt rank``: rank now, audit later."""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
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
    file_name,
    print_result,
    with_command,
    with_sidecars,
)
from ranktilt.cli.rankers import rank_with, read_rankers
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
    source = RankedSource(folder=folder, split=split, qrels=qrels, ignore_unknown=ignore_unknown)
    rankers = read_rankers(ranker, preset, text=text, max_failures=max_failures)
    if dry_run:
        _print_estimates(rankers, source.load(), prices)
        return
    if output is None:
        raise UserError(
            "no output: name a file (-o FILE), or ask for the cost of language models (--dry-run)"
        )
    files = _run_files(output, rankers)
    _check(files, [*source.files, *_saved_runs(rankers)])
    collection = source.load()
    if files:
        runs = [with_command(run) for run in rank_with(rankers, collection)]
        writers = [
            partial(write_files, run.contents(file)) for file, run in zip(files, runs, strict=True)
        ]
        deliver("", {}, *writers)
    else:
        _require_plain(output, collection)
        runs = [with_command(run) for run in rank_with(rankers, collection)]
        deliver(runs[0].contents(_STDOUT)[_STDOUT].decode(), {})
    for file, run in zip(files or [_STDOUT], runs, strict=True):
        for line in _notes(file, run, has_judgments=bool(collection.qrels.height)):
            note(line)
    if files:
        _note_audit(source, collection, files, rankers)


def _note_audit(
    source: RankedSource, collection: Collection, files: Sequence[Path], rankers: Sequence[Ranker]
) -> None:
    """Say how the saved runs are audited, where there is something to measure."""
    groups = groups_to_audit(collection)
    if groups is None:
        return
    words = ["ranktilt", "audit", str(source.folder)]
    for file, ranker in zip(files, rankers, strict=True):
        words += _run_words(file, ranker)
    note(f"Audit it: {shlex.join([*words, *source.words, *groups])}")


@dataclass(frozen=True, kw_only=True)
class RankedSource:
    """A collection and the options that say how it is read."""

    folder: Path
    split: str | None
    qrels: str | None
    ignore_unknown: bool

    @property
    def files(self) -> list[Path]:
        """Files that are read."""
        qrels_files = [file_of(self.qrels)] if self.qrels else []
        return [*collection_files(self.folder), *qrels_files]

    @property
    def words(self) -> list[str]:
        """Options of an audit that reads the collection alike."""
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
        from ranktilt.data.load import load

        return load(
            self.folder, split=self.split, qrels=self.qrels, ignore_unknown=self.ignore_unknown
        )


def _run_words(file: Path, ranker: Ranker) -> list[str]:
    """Return the words that name a run for an audit.

    A ranker that chose whether a query's own document may be found tells the audit its choice.
    """
    from ranktilt.rankers.base import stages_of

    choices = [getattr(stage, "exclude_self", None) for stage in stages_of(ranker)]
    chosen = [choice for choice in choices if choice is not None]
    if not chosen:
        return ["--run", str(file)]
    return ["-r", str(Stage("replay", str(file), {"exclude_self": str(chosen[0]).lower()}))]


def _print_estimates(
    rankers: Sequence[Ranker], collection: Collection, price: tuple[float, float] | None
) -> None:
    """Print what the language models of these rankers would be asked, and its price."""
    estimates: list[str] = []
    for ranker in rankers:
        estimates += _estimates(ranker, collection, price)
    if not estimates:
        raise UserError("--dry-run needs a ranker that asks a language model")
    print_result("\n".join(estimates))


def _estimates(
    ranker: Ranker, collection: Collection, price: tuple[float, float] | None
) -> Iterator[str]:
    """Yield a block of lines for each stage that asks a model; the stages before it rank."""
    from ranktilt.rankers.base import stages_of
    from ranktilt.rankers.llm.base import LLMRanker

    stages = stages_of(ranker)
    llm_stages = [number for number, stage in enumerate(stages) if isinstance(stage, LLMRanker)]
    stages_to_run = stages[: llm_stages[-1] + 1] if llm_stages else ()
    run, is_certain = None, True
    for number, stage in enumerate(stages_to_run, start=1):
        if not isinstance(stage, LLMRanker):
            run = stage.rank(collection, run)
            continue
        run, rehearsal = stage.rehearse(collection, run, certain=is_certain)
        is_certain = rehearsal.certain
        lines = [f"  {name:<10}  {text}\n" for name, text in rehearsal.lines(price)]
        yield ">>".join(map(repr, stages[:number])) + "\n" + "".join(lines)


def _run_files(output: str, rankers: Sequence[Ranker]) -> list[Path]:
    """Return a file for each run; none for stdout."""
    path = Path(output)
    if not (output.endswith(("/", os.sep)) or path.is_dir()):
        if len(rankers) > 1:
            raise UserError(
                f"-o {output}: holds one run, got {len(rankers)} rankers; name a folder, such as "
                "-o runs/"
            )
        return [] if output == "-" else [path]
    count_of_name: Counter[str] = Counter()
    files = []
    for ranker in rankers:
        name = file_name(re.sub(r"[^\w.=@+-]+", "_", repr(ranker)).strip("_."))
        count_of_name[name] += 1
        number = f"-{count_of_name[name]}" if count_of_name[name] > 1 else ""
        files.append(path / f"{name}{number}.trec")
    return files


def _saved_runs(rankers: Sequence[Ranker]) -> Iterator[Path]:
    """Yield the files of saved runs that rankers read."""
    from ranktilt.rankers.base import stages_of
    from ranktilt.rankers.replay import Replay

    for ranker in rankers:
        for stage in stages_of(ranker):
            if isinstance(stage, Replay):
                yield Path(stage.file)


def _check(files: Sequence[Path], inputs: Sequence[Path]) -> None:
    """Refuse files that cannot be written, before anything is ranked."""
    has_several = len(files) > 1
    paths = {f"-o {file.name}" if has_several else "-o": file for file in files}
    check_paths(with_sidecars(paths), inputs=inputs)


def _require_plain(output: str, collection: Collection) -> None:
    """Refuse ids with blanks, before anything is ranked.

    They are escaped, and stdout has no sidecar that says so.
    """
    from ranktilt.data.run_text import beyond_trec

    for noun, names in (("query", collection.queries["id"]), ("document", collection.ids)):
        blank = beyond_trec(names)
        if len(blank):
            raise UserError(
                f"-o {output}: {noun} id {blank[0]!r} has a blank in it, which a run alone cannot "
                "hold; name a file instead"
            )


def _notes(path: Path, run: Run, *, has_judgments: bool) -> Iterator[str]:
    """Say how much was retrieved, what was not read, and what was left out."""
    from ranktilt.rankers.self_exclusion import exclusion_notes

    lengths = sorted(int(length) for length in run.offsets[1:] - run.offsets[:-1])
    least, most = (lengths[0], lengths[-1]) if lengths else (0, 0)
    length_range = f"{most:,}" if least == most else f"{least:,} to {most:,}"
    documents = "document" if least == most == 1 else "documents"
    queries = counted(len(lengths), "query", "queries")
    yield f"{path}: {queries}, {length_range} {documents} a query ({run.name})"
    empty_count = lengths.count(0)
    if empty_count:
        effect = "; an audit counts that as 0" if has_judgments else ""
        yield f"{run.name}: found nothing for {counted(empty_count, 'query', 'queries')}{effect}"
    for name, cut in run.truncated:
        if any(cut["share"].values()):
            shares = ", ".join(
                f"{100 * share:.0f} % of {source}" for source, share in cut["share"].items()
            )
            yield f"{name}: reads {cut['limit']} tokens; longer, and cut, are {shares}"
    yield from (note.sentence for note in exclusion_notes(run.name, run.spec))
