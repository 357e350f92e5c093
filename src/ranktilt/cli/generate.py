"""``ranktilt generate``: documents that a language model rewrites, or writes from queries."""

from __future__ import annotations

import json as json_
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ranktilt.cli import options
from ranktilt.cli.notes import note
from ranktilt.cli.output import check_paths, collection_files, print_lines, print_result
from ranktilt.errors import UserError, counted
from ranktilt.generation.settings import Answering, Rewriting
from ranktilt.option import Option

if TYPE_CHECKING:
    from ranktilt.collection import Collection
    from ranktilt.generation.batched_requests import GenerationPlan
    from ranktilt.generation.generated import Generated
    from ranktilt.generation.output_folder import SavedFolder
    from ranktilt.generation.pooling import Pool
    from ranktilt.llm.base import LLM


INCOMPLETE = 1
"""How a command ends that has to be repeated, or that made nothing."""
_SHOWN = 3

DryRun = Annotated[
    bool, Option("Send nothing; show documents, tokens, price and time.", panel="Model")
]
Summary = Annotated[
    str | None, Option("Save a summary as JSON; - for stdout.", "FILE", panel="Output")
]


@dataclass(frozen=True)
class ModelOptions(options.OptionGroup):
    """The language model, and how it is asked."""

    panel = "Model"

    llm: Annotated[str, Option("Model: openai:NAME or transformers:FOLDER.", "MODEL")]
    base_url: Annotated[
        str | None,
        Option("Address of a compatible server, such as http://localhost:8000/v1.", "URL"),
    ] = None
    concurrency: Annotated[int | None, Option("Concurrent requests (default: 8).", "N", min=1)] = (
        None
    )
    batch_size: Annotated[
        int | None, Option("Batch size of a transformers: model.", "N", min=1)
    ] = None
    batch: Annotated[
        bool, Option("Ask through the server's batches: within 24 hours, at half the price.")
    ] = False
    poll_interval: Annotated[
        float | None, Option("Seconds between looks at a batch (default: 30).", "S")
    ] = None
    give_up_batch: Annotated[
        list[str] | None,
        Option("Submit anew what this batch, which is lost, has not answered.", "ID"),
    ] = None
    requests_per_minute: Annotated[
        int | None, Option("Maximum requests per minute.", "N", min=1)
    ] = None
    timeout: Annotated[float | None, Option("Seconds to wait for an answer.", "S")] = None
    retries: Annotated[int | None, Option("Retries of a failed request.", "N", min=0)] = None

    def client(self, device: str | None) -> LLM:
        """The model, ready to be asked."""
        from ranktilt.llm.base import llm
        from ranktilt.llm.batches import in_batches

        given = dict(vars(self))
        batch, interval, give_up = (
            given.pop("batch"),
            given.pop("poll_interval"),
            given.pop("give_up_batch"),
        )
        for option, value in (("--poll-interval", interval), ("--give-up-batch", give_up)):
            if value and not batch:
                raise UserError(f"{option} needs --batch")
        model = llm(given.pop("llm"), batch=given.pop("batch_size"), **given, device=device)
        return in_batches(model, interval, give_up=give_up or ()) if batch else model


def check_request(
    given: Path, output: Path | None, json: str | None, *, kind: str, dry_run: bool
) -> None:
    """Refuse places that cannot be written before anything is read or asked."""
    from ranktilt.generation.manifest import require_ours

    if output is None and not dry_run:
        raise UserError("no output: name a folder (-o DIR), or ask for the cost (--dry-run)")
    if output is not None and os.path.realpath(output) == os.path.realpath(given):
        raise UserError(f"-o {output}: this is the collection that is read; choose another folder")
    check_paths(
        {"--json": json},
        stdout=("--json",),
        inputs=[given] if os.path.isfile(given) else collection_files(given),
    )
    if output is not None and not dry_run:
        require_ours(output, given, kind)


def show_estimate(
    planned: GenerationPlan,
    llm: LLM,
    price: tuple[float, float] | None,
    model: ModelOptions,
    json: str | None,
) -> None:
    """Show what the rest of a plan would cost."""
    from ranktilt.generation.estimate import estimate

    found = estimate(planned, llm, price=price, requests_per_minute=model.requests_per_minute)
    write_summary(found.to_dict(), json)
    if json != "-":
        print_lines(found.lines)


def write_summary(content: dict[str, Any], json: str | None) -> None:
    """Write a summary as JSON, if one is asked for."""
    from ranktilt.io.files import write_files

    if json is None:
        return
    data = json_.dumps(content, indent=1, ensure_ascii=False) + "\n"
    if json == "-":
        print_result(data)
    else:
        write_files({Path(json): data.encode(errors="backslashreplace")})


def conclude(
    generated: Generated,
    saved: SavedFolder,
    verb: str,
    json: str | None,
    *,
    max_failures: float = 0.0,
) -> bool:
    """Write the summary, say what was made (`verb` is ``rewritten``, …), and tell whether nothing has to be repeated.

    `max_failures` is the share of documents that the model may have left without an answer.
    """
    made = [
        {**source._asdict(), "lost": dict(source.lost), "flags": dict(source.flags)}
        for source in generated.made
    ]
    summary = {
        "spec": dict(generated.spec),
        "made": [
            {verb if name == "rewritten" else name: value for name, value in row.items()}
            for row in made
        ],
        "left_out": generated.left_out.to_dicts(),
        "folder": str(saved.folder),
        "splits": list(saved.splits),
    }
    write_summary(summary, json)
    for line in generation_notes(generated, saved, verb):
        note(line)
    unanswered, some = generated.unanswered, any(source.rewritten for source in generated.made)
    if unanswered:
        message = next((text for text in generated.left_out["message"] if text), "")
        documents = counted(unanswered, "document", "documents")
        note(f"{documents} got no answer ({message}); the same command again asks only for these")
    elif not some:
        asked = any(source.answers for source in generated.made)
        why = "no answer passed the checks" if asked else "no document could be asked for"
        note(f"{why}: there is nothing to {'compare' if verb == 'rewritten' else 'rank'}")
    return some and unanswered <= max_failures * sum(source.documents for source in generated.made)


def generation_notes(generated: Generated, saved: SavedFolder, verb: str) -> Iterator[str]:
    """What was made, what was left out and why, and what was paid for."""
    yield f"{saved.folder}: {generated.collection!r}"
    for source in generated.made:
        written = (
            f"{source.rewritten:,} of {counted(source.documents, 'document', 'documents')} {verb}"
        )
        parts = [f"{source.source}: {written}"]
        parts += [_reasons("left out", source.lost)] if source.lost else []
        parts += [_reasons("flagged answers", source.flags)] if source.flags else []
        parts += [f"{source.cut:,} of a text that was cut"] if source.cut else []
        yield "; ".join(parts)
    names = {row["id"]: row["reason"] for row in generated.left_out.iter_rows(named=True)}
    if names:
        first = ", ".join(f"{name} ({reason})" for name, reason in list(names.items())[:_SHOWN])
        yield f"left out: {first}{', …' if len(names) > _SHOWN else ''}; all in {saved.folder / 'left-out.jsonl'}"
    fresh, answers = (
        sum(getattr(one, what) for one in generated.made) for what in ("fresh", "answers")
    )
    known = "" if fresh == answers else f"; {answers - fresh:,} were known"
    yield f"{counted(fresh, 'answer', 'answers')} asked for{known}"


_COMMA = re.compile(r",(?![^(]*\))")
"""Between rankers, not within their brackets."""


def _reasons(what: str, counts: Mapping[str, int]) -> str:
    return f"{what}: {', '.join(f'{n:,} {reason}' for reason, n in counts.items())}"


@options.verb(
    "generate rewrite DIR --llm openai:MODEL --dry-run --price 0.15,0.60",
    "generate rewrite DIR --llm openai:MODEL -o rewritten",
    panel="Input",
)
def rewrite(
    folder: options.Folder,
    *,
    model: ModelOptions,
    output: Annotated[
        Path | None,
        Option("Folder for the collection with its rewrites.", "DIR", short="-o", panel="Output"),
    ] = None,
    rewriting: Annotated[dict[str, Any], options.FieldsOf(Rewriting, panel="Model")],
    pool: Annotated[
        str | None,
        Option(
            "Rewrite only documents that are judged or retrieved by these rankers, such as bm25,dense:minilm.",
            "SPEC,...",
        ),
    ] = None,
    pool_depth: Annotated[
        int | None, Option("Pool depth: documents per query and ranker (default: 100).", "K", min=1)
    ] = None,
    split: options.Split = None,
    rows_per_file: options.RowsPerFile = None,
    dry_run: DryRun = False,
    price: options.Price = None,
    compute: options.Compute,
    json: Summary = None,
) -> int:
    """Rewrite documents with a language model; resumes what was interrupted. Exit 1 if some got no answer."""
    prices = options.read_price(price, dry_run=dry_run)
    check_request(folder, output, json, kind="rewrites", dry_run=dry_run)
    if pool_depth is not None and pool is None:
        raise UserError("--pool-depth needs a pool, such as --pool bm25")
    how = Rewriting(**rewriting)
    device = compute.device
    client = model.client(device if model.llm.startswith("transformers:") or pool is None else None)
    if not dry_run:
        client.check()
    from ranktilt.datasets.stated_sources import with_named_side

    collection = with_named_side(options.load_texts(folder, split), how.of)
    chosen = None if pool is None else _pool(collection, pool, pool_depth, how, device)
    if output is None or dry_run:
        from ranktilt.generation.rewrite.plan import plan

        show_estimate(plan(collection, client, how, only=chosen), client, prices, model, json)
        note_side(collection, how.of)
        return 0
    from ranktilt.generation.output_folder import one_writer
    from ranktilt.generation.rewrite.rewrite import rewrite as run_rewrite
    from ranktilt.generation.rewrite.save import save_rewritten

    with one_writer(output):
        rewritten = run_rewrite(collection, client, how, only=chosen)
        saved = save_rewritten(rewritten, output, rows_per_file=rows_per_file)
    is_complete = conclude(rewritten, saved, "rewritten", json)
    note_side(collection, how.of)
    if not is_complete:
        return INCOMPLETE
    named = ["--split", str(split)] if split is not None and len(saved.splits) > 1 else []
    note(f"Next: {shlex.join(['ranktilt', 'check', str(output), *named])}")
    return 0


def note_side(collection: Collection, of: str) -> None:
    """Say that all documents are called as the side to rewrite, where none has a source; count those left without."""
    if "named_source" in collection.spec:
        documents = counted(
            collection.spec["named_source"]["documents"], "document is", "documents are"
        )
        note(f"no document has a source: {documents} called {of!r} (--source-to-rewrite)")
    elif collection.sourceless:
        note(
            f"{counted(collection.sourceless, 'document', 'documents')} without a source: not rewritten"
        )


def _pool(
    collection: Collection, specs: str, depth: int | None, how: Rewriting, device: str | None
) -> Pool:
    from ranktilt.generation.pooling import USUAL_DEPTH, pool

    rankers = options.read_rankers(
        [one.strip() for one in _COMMA.split(specs) if one.strip()], device=device
    )
    found = pool(collection, rankers, depth=depth or USUAL_DEPTH, of=how.of)
    for sentence in found.sentences:
        note(sentence)
    return found


@options.verb(
    "generate answer queries.tsv --llm openai:MODEL --dry-run",
    "generate answer queries.tsv --llm openai:MODEL -o answered",
    panel="Input",
)
def answer(
    queries: Annotated[
        Path,
        typer.Argument(
            metavar="QUERIES", help="A file (TSV: id, text; or JSONL: _id, text), or a collection."
        ),
    ],
    *,
    model: ModelOptions,
    output: Annotated[
        Path | None,
        Option("Folder for the documents, as a collection.", "DIR", short="-o", panel="Output"),
    ] = None,
    answering: Annotated[dict[str, Any], options.FieldsOf(Answering, panel="Model")],
    split: Annotated[
        str | None,
        Option("Queries judged in qrels/<split>.tsv; for a file, the split's name.", "SPLIT"),
    ] = None,
    max_failures: options.MaxFailures = None,
    dry_run: DryRun = False,
    price: options.Price = None,
    compute: options.Compute,
    json: Summary = None,
) -> int:
    """Write documents from queries with a language model; resumes what was interrupted. Exit 1 if some are missing."""
    from ranktilt.generation.answer.answer import answer, plan_answers
    from ranktilt.generation.answer.save import KIND, save_answered
    from ranktilt.generation.output_folder import one_writer

    prices = options.read_price(price, dry_run=dry_run)
    check_request(queries, output, json, kind=KIND, dry_run=dry_run)
    how = Answering(**answering)
    client = model.client(compute.device)
    collection = _load(queries, split)
    planned = plan_answers(collection, client, how)
    if output is None or dry_run:
        show_estimate(planned, client, prices, model, json)
        return 0
    with one_writer(output):
        answered = answer(collection, client, how)
        saved = save_answered(answered, output)
    if not conclude(answered, saved, "written", json, max_failures=max_failures or 0.0):
        return INCOMPLETE
    note(
        f"qrels/{saved.splits[0]}.tsv is generated, not judged: each document counts as relevant to the "
        "query it was written for"
    )
    if os.path.isdir(queries):
        if collection.sourceless:
            from ranktilt.datasets.stated_sources import ORIGINALS

            documents = counted(collection.sourceless, "document has", "documents have")
            way = shlex.join(
                ["ranktilt", "data", "load", str(queries), "--source", ORIGINALS, "-o", "NEW"]
            )
            note(
                f"{queries}: {documents} no source, and will be in no group; name it before you mix: {way}"
            )
        named = ["--split", saved.splits[0]] if split is not None else []
        note(
            f"Next: {shlex.join(['ranktilt', 'data', 'mix', str(queries), str(output), *named, '-o', 'mixed'])}"
        )
    return 0


def _load(queries: Path, split: str | None) -> Collection:
    """The queries of a collection, under the named or usual judgments where it has any, or those of a file."""
    from ranktilt.datasets.queries import read_queries

    if os.path.isdir(queries) or str(queries).startswith(("hub:", "irds:")):
        return options.load_texts(queries, split)
    if split is not None and Path(split).name != split:
        raise UserError(f"--split expects a name such as train, got {split!r}")
    read = read_queries(queries)
    return read if split is None else replace(read, spec={**read.spec, "split": split})
