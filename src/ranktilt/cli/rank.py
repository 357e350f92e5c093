"""``ranktilt rank`` and ``replay-log``: rank now, audit later; and what an LLM ranker's stored answers say."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ranktilt.cli import options
from ranktilt.cli.notes import note
from ranktilt.cli.output import (
    PageOutput,
    check_paths,
    collection_files,
    deliver,
    file_name,
    print_result,
    with_command,
)
from ranktilt.errors import UserError, counted
from ranktilt.io.files import write_files
from ranktilt.option import Option

if TYPE_CHECKING:
    from ranktilt.collection import Collection
    from ranktilt.rankers.base import Ranker
    from ranktilt.run import Run

_STDOUT = Path("stdout")


@options.verb("rank DIR -r bm25 -o bm25.trec", 'rank DIR -r "bm25@100>>monobert:base" -o runs/', panel="Input")
def rank(
    folder: options.Folder,
    *,
    ranker: options.Rankers = None,
    output: Annotated[
        str | None,
        Option("Where the run goes; a folder (DIR/) for several; - for stdout.", "FILE", short="-o", panel="Output"),
    ] = None,
    qrels: Annotated[
        str | None, Option("Judgments that name the queries to rank; none for all queries.", "FILE")
    ] = None,
    split: options.Split = None,
    ignore_unknown: Annotated[bool, Option("Rank although judgments name unknown documents or queries.")] = False,
    dry_run: Annotated[
        bool, Option("Ask no language model: show requests, tokens, price and time.", panel="Model")
    ] = False,
    price: options.Price = None,
    search: options.SearchOptions,
) -> None:
    """Rank the judged queries (all where nothing is judged) and keep the run, in TREC format, to audit it later."""
    if not ranker:
        raise UserError("nothing to rank with: name a ranker, such as -r bm25")
    if price is not None and not dry_run:
        raise UserError("--price is about the estimate; ask for it: --dry-run")
    from ranktilt.datasets.load import load

    rankers = search.rankers(ranker)
    if dry_run:
        prices = options.read_price(price)
        collection = load(folder, split=split, qrels=qrels, ignore_unknown=ignore_unknown)
        estimates = "\n".join(_estimates(rankers, collection, prices))
        if not estimates:
            raise UserError("--dry-run is about rankers that ask a language model; here is none")
        print_result(estimates)
        return
    if output is None:
        raise UserError("where to? Name a file: -o FILE; or ask for the cost of language models: --dry-run")
    files = _files(output, rankers)
    _check(files, [*collection_files(folder), *_read(rankers), *([Path(qrels)] if qrels else [])])
    collection = load(folder, split=split, qrels=qrels, ignore_unknown=ignore_unknown)
    if not files:
        _require_plain(output, collection)
    runs = [with_command(run) for run in options.rank_with(rankers, collection)]
    shown = "" if files else runs[0].contents(_STDOUT)[_STDOUT].decode()
    deliver(shown, {}, *(partial(write_files, run.contents(file)) for file, run in zip(files, runs, strict=False)))
    for file, run in zip(files or [_STDOUT], runs, strict=True):
        for line in _notes(file, run, judged=bool(collection.qrels.height)):
            note(line)
    if files:
        named = {"--split": split, "--qrels": qrels}
        how = [part for option, value in named.items() if value is not None for part in (option, value)]
        if search.exclude_self is not None:
            how.append("--exclude-self" if search.exclude_self else "--no-exclude-self")
        how += ["--ignore-unknown"] if ignore_unknown else []
        runs_of = [part for file in files for part in ("--run", str(file))]
        note(f"Audit it: {shlex.join(['ranktilt', 'audit', str(folder), *runs_of, *how])}")


def _estimates(rankers: Sequence[Ranker], collection: Collection, price: tuple[float, float] | None) -> Iterator[str]:
    """A block of lines for each stage that asks a language model; the stages before it rank."""
    from ranktilt.rankers.llm.base import LLMRanker

    for one in rankers:
        stages, run, certain = options.stages_of(one), None, True
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
            raise UserError(f"-o {output}: holds one run, got {len(rankers)} rankers; name a folder, such as -o runs/")
        return [] if output == "-" else [path]
    names = [file_name(re.sub(r"[^\w.=@+-]+", "_", repr(one)).strip("_.")) for one in rankers]
    before = [names[:number].count(name) for number, name in enumerate(names)]
    return [path / f"{name}{f'-{n + 1}' if n else ''}.trec" for name, n in zip(names, before, strict=True)]


def _read(rankers: Sequence[Ranker]) -> Iterator[Path]:
    """Files that rankers read: saved runs."""
    from ranktilt.rankers.replay import Replay

    yield from (Path(stage.file) for one in rankers for stage in options.stages_of(one) if isinstance(stage, Replay))


def _check(files: Sequence[Path], inputs: Sequence[Path]) -> None:
    """Refuse places that cannot be written, before anything is ranked."""
    from ranktilt.run import sidecar

    many = len(files) > 1
    paths = {f"-o {file.name}" if many else "-o": file for file in files}
    paths |= {f"{option}, its sidecar": sidecar(file) for option, file in paths.items()}
    check_paths(paths, inputs=inputs)


def _require_plain(output: str, collection: Collection) -> None:
    """Refuse ids that need an escape, before anything is ranked, where no sidecar can say that there is one."""
    from ranktilt.run import beyond_trec

    for noun, names in (("query", collection.queries["id"]), ("document", collection.ids)):
        blank = beyond_trec(names)
        if len(blank):
            what = f"{noun} id {blank[0]!r} has a blank in it, which a run alone cannot hold"
            raise UserError(f"-o {output}: {what}; name a file, which gets a sidecar")


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
            shares = ", ".join(f"{100 * share:.0f} % of {source}" for source, share in cut["share"].items())
            yield f"{name}: reads {cut['limit']} tokens; longer, and cut, are {shares}"
    yield from (f"{run.name}: {note}" for note in exclusion_notes(run.spec))


FAILED = 1
SAVED = ("published", "strict")
"""The runs that ``--save`` writes."""


@options.verb(
    "replay-log calls.json --candidates bm25.trec --collection DIR",
    "replay-log calls.json --candidates requests.json --groups labels.csv",
)
def replay_log(
    log: Annotated[
        Path, typer.Argument(metavar="LOG", help="Stored calls: rank_llm's JSON, or lines of query, ids and answer.")
    ],
    *,
    candidates: Annotated[
        Path, Option("The first stage's lists: a run, or rank_llm's JSON with texts.", "RUN", panel="Input")
    ],
    folder: Annotated[
        Path | None,
        Option(
            "The collection: texts, judgments, groups. Not needed with texts.",
            "DIR",
            flag="--collection",
            panel="Input",
        ),
    ] = None,
    qrels: options.Qrels = None,
    split: options.Split = None,
    by: Annotated[str | None, Option("Split the tilt between groups too; none for no groups.", "COLUMN")] = None,
    pair: Annotated[list[str] | None, Option("Compare only these groups.", "A,B")] = None,
    measure: options.Measures = None,
    max_failures: Annotated[
        float | None, Option("Exit 1 if more answers hold no ranking: a share, 0 to 1.", "X", min=0, max=1)
    ] = None,
    save: Annotated[
        Path | None, Option("Write the published and the strict runs there, in TREC format.", "DIR", panel="Output")
    ] = None,
    correction: options.Correction = "holm",
    resamples: options.Resamples = 10_000,
    seed: options.Seed = 0,
    labels: options.LabelOptions,
    output: PageOutput,
) -> int:
    """Read an LLM ranker's stored answers again, and tell what the model ranked from what the parser did.

    Every answer is typed; the published run is made again as RankGPT and rank_llm read answers, and split into the
    input order, the model's part and the parser's. No model is needed.
    """
    from ranktilt.auditing.replay_log import log_runs
    from ranktilt.auditing.replay_log import replay_log as replay
    from ranktilt.run import sidecar

    groups = labels.labels
    named = (groups.path if groups else None, qrels)
    read = [log, candidates, *(Path(file) for file in named if file is not None), *collection_files(folder)]
    output.check(*read)
    places = {name: Path(save, f"{name}.trec") for name in SAVED} if save else {}
    both = [file for path in places.values() for file in (path, sidecar(path))]
    check_paths({f"--save, {path.name}": path for path in both}, inputs=read)
    pairs = options.read_pairs(pair)
    collection, run = _inputs(candidates, folder, qrels, split)
    if groups is not None:
        from ranktilt.datasets.labels import with_labels

        collection = with_labels(collection, groups, by=by or "source")
    found = log_runs(log, run, collection, seed=seed)
    column = by or ("source" if len(collection.sources) > 1 else None)
    column = None if column == "none" else column
    pairs = labels.reference_first(collection, column, pairs) if labels.reference else pairs
    result = replay(
        found, collection, measure or None, by=column, pairs=pairs,
        max_failures=max_failures, correction=correction, resamples=resamples, seed=seed,
    )  # fmt: skip
    files: dict[Path | str | None, Callable[[], bytes]] = {
        file: partial(bytes, data)
        for name, path in places.items()
        for file, data in found.runs[name].contents(path).items()
    }
    output.deliver(result, files)
    return 0 if result.passed else FAILED


def _inputs(candidates: Path, folder: Path | None, qrels: str | None, split: str | None) -> tuple[Collection, Run]:
    """The collection and the candidates; the texts may stand in either."""
    import polars as pl

    from ranktilt.collection import Collection
    from ranktilt.datasets.load import NO_QRELS, load
    from ranktilt.datasets.rank_llm import holds_texts, read_candidates
    from ranktilt.io.qrels import read_qrels
    from ranktilt.run import Run

    judged = None if qrels == NO_QRELS else qrels
    if split is not None and folder is None:
        raise UserError("--split names judgments of a collection; name it (--collection DIR), or a file: --qrels FILE")
    if holds_texts(candidates):
        collection, run = read_candidates(candidates, qrels=judged)
    else:
        run = Run.load(candidates)
        queries = pl.DataFrame({"id": run.queries, "text": ""}, schema={"id": pl.String, "text": pl.String})
        rows = read_qrels(judged).drop("line") if judged and folder is None else None
        none = pl.DataFrame(schema={"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32})
        docs = pl.DataFrame({"id": run.ids, "text": ""}, schema={"id": pl.String, "text": pl.String})
        collection = Collection(docs, queries, none if rows is None else rows, {"files": [str(candidates)]})
    if folder is None:
        return collection, run
    none_asked = NO_QRELS if qrels is None and options.without_judgments(folder, split) else qrels
    return load(folder, split=split, qrels=none_asked, ignore_unknown=True), run
