"""``ranktilt generate``: documents that a language model rewrites, or writes from queries."""

from __future__ import annotations

import json as json_
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, MODEL, MORE, OUTPUT, SELDOM, command_group, verb
from ranktilt.cli.language_models import language_model
from ranktilt.cli.notes import note
from ranktilt.cli.output import (
    FILE_OR_STDOUT,
    check_paths,
    collection_files,
    print_lines,
    print_result,
)
from ranktilt.cli.rankers import read_rankers
from ranktilt.cli.settings import settings
from ranktilt.errors import UserError, counted
from ranktilt.generation.settings import Answering, Rewriting
from ranktilt.spec import parse_stages

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.generation.batched_requests import GenerationInputs
    from ranktilt.generation.generated import Generated, SourceSummary
    from ranktilt.generation.output_folder import SavedFolder
    from ranktilt.generation.pooling import Pool
    from ranktilt.llm.base import LLM
    from ranktilt.llm.spec import ModelSpec

generate = command_group("generate", "Let a language model write documents.", MORE)

INCOMPLETE = 1
"""How a command ends that has to be repeated, or that made nothing."""
_SHOWN = 3

Made = Annotated[
    Path | None,
    Parameter(
        name="--output",
        alias="-o",
        help="Folder for the collection that is made.",
        metavar="DIR",
        group=OUTPUT,
    ),
]
Summary = Annotated[
    str | None,
    FILE_OR_STDOUT,
    Parameter(help="Save a summary as JSON; - for stdout.", metavar="FILE", group=OUTPUT),
]
SourceName = Annotated[
    str | None,
    Parameter(
        help="Name of the new source (default: the model's; of a rewrite with -tmpT).",
        metavar="NAME",
        group=OUTPUT,
    ),
]
Side = Annotated[
    str | None,
    Parameter(
        help="Rewrite documents of this source (default: human); names it where none has one.",
        metavar="SOURCE",
        group=INPUT,
    ),
]
Limit = Annotated[
    int | None,
    Parameter(
        help="Take only the first N, for a trial.",
        metavar="N",
        group=INPUT,
        validator=options.AT_LEAST_ONE,
        converter=options.whole_number,
    ),
]
Attempts = Annotated[
    int,
    Parameter(
        help="Maximum attempts until an answer passes the checks (default: 3).",
        metavar="N",
        group=SELDOM,
        validator=options.AT_LEAST_ONE,
        converter=options.whole_number,
    ),
]
Truncate = Annotated[
    bool,
    Parameter(help="Truncate texts that are too long, instead of leaving them out.", group=SELDOM),
]
_Ratio = Parameter(metavar="X", group=SELDOM, validator=options.NOT_NEGATIVE)


def read_model(text: str | None) -> ModelSpec:
    """Read the text of the model, which is not optional; `UserError` says how one is named."""
    if text is None:
        raise UserError("no model: name one, such as --llm openai:MODEL")
    return language_model(text)


def check_request(
    source: Path,
    output: Path | None,
    json: str | None,
    *,
    kind: str,
    dry_run: bool,
    source_type: str = "folder",
) -> None:
    """Refuse files that cannot be read or written, before anything is read or asked."""
    from ranktilt.generation.manifest import require_ours

    # hub:OWNER/NAME, or a mistake that is named where it is loaded.
    is_public = ":" in str(source)
    if not is_public and not os.path.exists(source):
        raise UserError(f"{source}: no such {source_type}")
    if output is None and not dry_run:
        raise UserError("no output: name a folder (-o DIR), or ask for the cost (--dry-run)")
    if output is not None and os.path.realpath(output) == os.path.realpath(source):
        raise UserError(f"-o {output}: this is the collection that is read; choose another folder")
    check_paths(
        {"--json": json},
        stdout=("--json",),
        inputs=[source] if os.path.isfile(source) else collection_files(source),
    )
    if output is not None and not dry_run:
        require_ours(output, source, kind)


def show_estimate(
    inputs: GenerationInputs,
    llm: LLM,
    price: tuple[float, float] | None,
    json: str | None = None,
) -> None:
    """Show what the rest of the requests would cost."""
    from ranktilt.generation.estimate import estimate

    cost = estimate(inputs, llm, price=price, requests_per_minute=requests_per_minute(llm))
    write_summary(cost.to_dict(), json)
    if json != "-":
        print_lines(cost.lines)


def requests_per_minute(llm: LLM) -> int | None:
    """Return the requests a minute that the model's text allows; None where it names no limit."""
    limit: int | None = getattr(llm, "requests_per_minute", None)
    return limit


def write_summary(content: dict[str, Any], json: str | None) -> None:
    """Write a summary as JSON, if one is asked for."""
    from ranktilt.data.files import write_files

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
    """Write the summary and the notes, and tell whether the command has not to be repeated.

    `verb` is ``rewritten`` or ``written``; `max_failures` is the share of documents that the model
    may have left without an answer.
    """
    summary = {
        "spec": dict(generated.spec),
        "summaries": [_source_content(source, verb) for source in generated.summaries],
        "left_out": generated.left_out.to_dicts(),
        "folder": str(saved.folder),
        "splits": list(saved.splits),
    }
    write_summary(summary, json)
    for line in generation_notes(generated, saved, verb):
        note(line)
    unanswered = generated.unanswered
    has_texts = any(source.rewritten for source in generated.summaries)
    if unanswered:
        message = next((text for text in generated.left_out["message"] if text), "")
        documents = counted(unanswered, "document", "documents")
        note(f"{documents} got no answer ({message}); the same command again asks only for these")
    elif not has_texts:
        has_answers = any(source.answers for source in generated.summaries)
        reason = "no answer passed the checks" if has_answers else "no document could be asked for"
        note(f"{reason}: there is nothing to {'compare' if verb == 'rewritten' else 'rank'}")
    document_count = sum(source.documents for source in generated.summaries)
    return has_texts and unanswered <= max_failures * document_count


def _source_content(source: SourceSummary, verb: str) -> dict[str, Any]:
    """Return the counts of a source for the summary; its texts are counted by their verb."""
    counts = {**source._asdict(), "rejected": dict(source.rejected), "flags": dict(source.flags)}
    return {verb if name == "rewritten" else name: value for name, value in counts.items()}


def generation_notes(generated: Generated, saved: SavedFolder, verb: str) -> Iterator[str]:
    """Say what was made, what was left out and why, and how many answers were paid for."""
    yield f"{saved.folder}: {generated.collection!r}"
    for source in generated.summaries:
        written = (
            f"{source.rewritten:,} of {counted(source.documents, 'document', 'documents')} {verb}"
        )
        parts = [f"{source.source}: {written}"]
        parts += [_reasons("left out", source.rejected)] if source.rejected else []
        parts += [_reasons("flagged answers", source.flags)] if source.flags else []
        parts += [f"{source.cut:,} of a text that was cut"] if source.cut else []
        yield "; ".join(parts)
    names = {row["id"]: row["reason"] for row in generated.left_out.iter_rows(named=True)}
    if names:
        first = ", ".join(f"{name} ({reason})" for name, reason in list(names.items())[:_SHOWN])
        ellipsis = ", …" if len(names) > _SHOWN else ""
        yield f"left out: {first}{ellipsis}; all in {saved.folder / 'left-out.jsonl'}"
    fresh_count = sum(source.fresh for source in generated.summaries)
    known_count = sum(source.answers for source in generated.summaries) - fresh_count
    known = f"; {known_count:,} were known" if known_count else ""
    yield f"{counted(fresh_count, 'answer', 'answers')} asked for{known}"


_COMMA = re.compile(r",(?![^(]*\))")
"""Between rankers, not within their brackets."""


def _reasons(label: str, counts: Mapping[str, int]) -> str:
    return f"{label}: {', '.join(f'{count:,} {reason}' for reason, count in counts.items())}"


@verb(
    "rewrite",
    "generate rewrite DIR --llm openai:MODEL --dry-run",
    "generate rewrite DIR --llm openai:MODEL -o rewritten",
    arguments="DIR",
    parent=generate,
)
def rewrite(
    folder: options.Folder,
    /,
    *,
    llm: options.LanguageModel = None,
    prompt: Annotated[
        str,
        Parameter(
            help="paper (default), paraphrase, summarise, polish, shorten, informal, or a file "
            "with {text}.",
            metavar="NAME|FILE",
            group=MODEL,
        ),
    ] = "paper",
    temperature: Annotated[
        list[Annotated[float, Parameter(validator=options.NOT_NEGATIVE)]] | None,
        Parameter(
            help="Sampling temperature (default: 0.2); several make one source each.",
            metavar="T",
            group=MODEL,
        ),
    ] = None,
    titles: Annotated[
        Literal["keep", "rewrite", "drop"],
        Parameter(help="Keep titles (default), rewrite them or drop them.", group=MODEL),
    ] = "keep",
    batch: options.Batch = False,
    dry_run: options.DryRun = False,
    price: options.Price = None,
    split: options.Split = None,
    source_to_rewrite: Side = None,
    limit: Limit = None,
    pool: Annotated[
        str | None,
        Parameter(
            help="Rewrite only documents that are judged or retrieved by these rankers, such as "
            "bm25,dense:minilm.",
            metavar="SPEC,...",
            group=INPUT,
        ),
    ] = None,
    pool_depth: Annotated[
        int | None,
        Parameter(
            help="Documents per query and ranker of the pool (default: 100).",
            metavar="K",
            group=INPUT,
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None,
    output: Made = None,
    source_name: SourceName = None,
    json: Summary = None,
    rows_per_file: options.RowsPerFile = None,
    attempts: Attempts = 3,
    truncate: Truncate = False,
    min_length_ratio: Annotated[
        float | None,
        _Ratio,
        Parameter(help="Flag answers below this ratio of words, rewrite to text."),
    ] = None,
    max_length_ratio: Annotated[
        float | None,
        _Ratio,
        Parameter(help="Flag answers above this ratio of words, rewrite to text."),
    ] = None,
) -> int:
    """Rewrite documents with a language model.

    Exit 1 if some got no answer. The same command again resumes what was interrupted, and asks only
    for what is missing.
    """
    prices = options.read_price(price, dry_run=dry_run)
    check_request(folder, output, json, kind="rewrites", dry_run=dry_run)
    if pool_depth is not None and pool is None:
        raise UserError("--pool-depth needs a pool, such as --pool bm25")
    model = read_model(llm)
    rewriting = Rewriting(
        prompt=prompt,
        titles=titles,
        of=source_to_rewrite or Rewriting.of,
        source=source_name,
        first=limit,
        attempts=attempts,
        truncate=truncate,
        shortest=min_length_ratio,
        longest=max_length_ratio,
    )
    rewriting = _with_temperatures(
        rewriting.with_sampling(model.sampling), model, str(llm), temperature
    )
    client = model.connect(batch=batch, device=settings().machine.device)
    if not dry_run:
        client.check()
    from ranktilt.data.stated_sources import with_named_side

    collection = with_named_side(options.load_texts(folder, split), rewriting.of)
    pooled = None if pool is None else _pool(collection, pool, pool_depth, rewriting)
    if output is None or dry_run:
        from ranktilt.generation.rewrite.prepare import prepare_rewrites

        inputs = prepare_rewrites(collection, client, rewriting, only=pooled)
        show_estimate(inputs, client, prices, json)
        note_side(collection, rewriting.of)
        return 0
    from ranktilt.generation.output_folder import one_writer
    from ranktilt.generation.rewrite.rewrite import rewrite as run_rewrite
    from ranktilt.generation.rewrite.save import save_rewritten

    with one_writer(output):
        rewritten = run_rewrite(collection, client, rewriting, only=pooled)
        saved = save_rewritten(rewritten, output, rows_per_file=rows_per_file)
    is_complete = conclude(rewritten, saved, "rewritten", json)
    note_side(collection, rewriting.of)
    if not is_complete:
        return INCOMPLETE
    split_words = ["--split", str(split)] if split is not None and len(saved.splits) > 1 else []
    note(f"Next: {shlex.join(['ranktilt', 'check', str(output), *split_words])}")
    return 0


def _with_temperatures(
    rewriting: Rewriting, model: ModelSpec, text: str, temperatures: Sequence[float] | None
) -> Rewriting:
    """Return the settings with the temperatures of the option, which win over one of ranktilt.toml.

    The text that was typed may not name another.
    """
    if not temperatures:
        return rewriting
    if "temperature" in parse_stages(text)[0].options:
        raise UserError(
            f"--temperature and temperature={model.sampling['temperature']:g} of {model.name}: "
            "keep one of them"
        )
    return replace(rewriting, temperatures=tuple(temperatures))


def note_side(collection: Collection, of: str) -> None:
    """Say what became of documents without a source: called as the side to rewrite, or left."""
    if "named_source" in collection.spec:
        documents = counted(
            collection.spec["named_source"]["documents"], "document is", "documents are"
        )
        note(f"no document has a source: {documents} called {of!r} (--source-to-rewrite)")
    elif collection.sourceless:
        documents = counted(collection.sourceless, "document", "documents")
        note(f"{documents} without a source: not rewritten")


def _pool(collection: Collection, specs: str, depth: int | None, rewriting: Rewriting) -> Pool:
    from ranktilt.generation.pooling import USUAL_DEPTH, pool

    rankers = read_rankers([spec.strip() for spec in _COMMA.split(specs) if spec.strip()])
    pooled = pool(collection, rankers, depth=depth or USUAL_DEPTH, of=rewriting.of)
    for sentence in pooled.sentences:
        note(sentence)
    return pooled


@verb(
    "answer",
    "generate answer queries.tsv --llm openai:MODEL --dry-run",
    "generate answer queries.tsv --llm openai:MODEL -o answered",
    arguments="QUERIES",
    parent=generate,
)
def answer(
    queries: Annotated[
        Path,
        Parameter(
            name="QUERIES",
            help="A file (TSV: id, text; or JSONL: _id, text), or a collection.",
        ),
    ],
    /,
    *,
    llm: options.LanguageModel = None,
    prompt: Annotated[
        str,
        Parameter(
            help="passage (default), question, or a file with {query}.",
            metavar="NAME|FILE",
            group=MODEL,
        ),
    ] = "passage",
    documents_per_query: Annotated[
        int,
        Parameter(
            alias="-n",
            help="Documents per query (default: 1).",
            metavar="N",
            group=MODEL,
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = 1,
    batch: options.Batch = False,
    dry_run: options.DryRun = False,
    price: options.Price = None,
    max_failures: options.MaxFailures = None,
    split: Annotated[
        str | None,
        Parameter(
            help="Queries judged in qrels/<split>.tsv; for a file, the split's name.",
            metavar="SPLIT",
            group=INPUT,
        ),
    ] = None,
    limit: Limit = None,
    output: Made = None,
    source_name: SourceName = None,
    json: Summary = None,
    attempts: Attempts = 3,
) -> int:
    """Write documents from queries with a language model.

    Exit 1 if some are missing. The same command again resumes what was interrupted, and asks only
    for what is missing.
    """
    from ranktilt.generation.answer.answer import answer, prepare_answers
    from ranktilt.generation.answer.save import KIND, save_answered
    from ranktilt.generation.output_folder import one_writer

    prices = options.read_price(price, dry_run=dry_run)
    check_request(queries, output, json, kind=KIND, dry_run=dry_run, source_type="file or folder")
    model = read_model(llm)
    # With several documents a query, a temperature of 0 in the model's text is refused.
    answering = Answering(
        prompt=prompt,
        n=documents_per_query,
        source=source_name,
        first=limit,
        attempts=attempts,
    ).with_sampling(model.sampling)
    client = model.connect(batch=batch, device=settings().machine.device)
    collection = _load(queries, split)
    inputs = prepare_answers(collection, client, answering)
    if output is None or dry_run:
        show_estimate(inputs, client, prices, json)
        return 0
    with one_writer(output):
        answered = answer(collection, client, answering)
        saved = save_answered(answered, output)
    if not conclude(answered, saved, "written", json, max_failures=max_failures or 0.0):
        return INCOMPLETE
    note(
        f"qrels/{saved.splits[0]}.tsv is generated, not judged: each document counts as relevant "
        "to the query it was written for"
    )
    if os.path.isdir(queries):
        _note_mixing(queries, collection, output, split=saved.splits[0] if split else None)
    return 0


def _note_mixing(
    folder: Path, collection: Collection, answered: Path, *, split: str | None
) -> None:
    """Say how the documents of a folder and the written ones become one collection."""
    from ranktilt.data.stated_sources import ORIGINALS

    if collection.sourceless:
        documents = counted(collection.sourceless, "document has", "documents have")
        command = ["ranktilt", "data", "load", str(folder), "--source", ORIGINALS, "-o", "NEW"]
        note(
            f"{folder}: {documents} no source, and will be in no group; name it before you mix: "
            f"{shlex.join(command)}"
        )
    split_words = [] if split is None else ["--split", split]
    command = ["ranktilt", "data", "mix", str(folder), str(answered), *split_words, "-o", "mixed"]
    note(f"Next: {shlex.join(command)}")


def _load(queries: Path, split: str | None) -> Collection:
    """Return the queries of a file, or those of a collection that its judgments name."""
    from ranktilt.data.queries import read_queries

    if os.path.isdir(queries) or str(queries).startswith(("hub:", "irds:")):
        return options.load_texts(queries, split)
    if split is not None and Path(split).name != split:
        raise UserError(f"--split expects a name such as train, got {split!r}")
    read = read_queries(queries)
    return read if split is None else replace(read, spec={**read.spec, "split": split})
