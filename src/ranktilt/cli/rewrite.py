"""``ranktilt rewrite``: a machine-written twin for each document, by a language model."""

from __future__ import annotations

import json as json_
import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ranktilt.cli import options
from ranktilt.cli.notes import note
from ranktilt.cli.output import check_paths, collection_files, print_result
from ranktilt.errors import UserError, counted

if TYPE_CHECKING:
    from ranktilt.collection import Collection
    from ranktilt.generation.generated import SourceSummary
    from ranktilt.generation.output_folder import SavedFolder
    from ranktilt.generation.pooling import Pool
    from ranktilt.generation.rewrite.plan import Rewriting
    from ranktilt.generation.rewrite.rewrite import Rewritten
    from ranktilt.llm.base import LLM

INCOMPLETE = 1
_SHOWN = 3
_SERVER = ("base_url", "concurrency", "timeout", "retries", "rpm", "tpm", "max_answer")
_LOCAL = ("batch", "device")


@dataclass(frozen=True)
class ModelOptions(options.OptionGroup):
    """The language model, and how it is asked."""

    llm: Annotated[
        str, typer.Option("--llm", metavar="MODEL", help="The model that rewrites: openai:NAME or transformers:FOLDER.")
    ]
    base_url: Annotated[
        str | None,
        typer.Option(
            "--base-url", metavar="URL", help="Address of any compatible server, such as http://localhost:8000/v1."
        ),
    ] = None
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", min=1, metavar="N", help="Requests at a time (default: 8).")
    ] = None
    batch: Annotated[
        int | None, typer.Option("--batch", min=1, metavar="N", help="Prompts at a time of a transformers: model.")
    ] = None
    rpm: Annotated[int | None, typer.Option("--rpm", min=1, metavar="N", help="Most requests per minute.")] = None
    tpm: Annotated[int | None, typer.Option("--tpm", min=1, metavar="N", help="Most tokens per minute.")] = None
    timeout: Annotated[float | None, typer.Option("--timeout", metavar="S", help="Seconds to wait for an answer.")] = (
        None
    )
    retries: Annotated[
        int | None, typer.Option("--retries", min=0, metavar="N", help="How often a failed request is sent again.")
    ] = None
    max_answer: Annotated[
        str | None,
        typer.Option("--max-answer", metavar="SIZE", help="Largest answer that is read from a server (default: 1MB)."),
    ] = None

    def client(self, device: str | None) -> LLM:
        """The model, ready to be asked; refuses options of the other kind of model, by the names that were typed."""
        from ranktilt.executing.memory_limits import read_size
        from ranktilt.llm.base import llm

        given: dict[str, Any] = {**{name: getattr(self, name) for name in (*_SERVER, "batch")}, "device": device}
        if self.max_answer is not None:
            given["max_answer"] = read_size(self.max_answer, option="--max-answer", least=1000)
        for kind, strange in (("openai", _LOCAL), ("transformers", _SERVER)):
            first = next((name for name in strange if given[name] is not None), None)
            if self.llm.strip().startswith(f"{kind}:") and first is not None:
                whose = ", ".join(f"--{name.replace('_', '-')}" for name in strange)
                other = "a transformers: model" if kind == "openai" else "a server, an openai: model"
                raise UserError(f"--{first.replace('_', '-')} is for {other} ({whose}); leave it out for {self.llm}")
        return llm(self.llm, **given)


@dataclass(frozen=True)
class RewriteOptions(options.OptionGroup):
    """What is rewritten, and how."""

    temperature: Annotated[
        list[float] | None,
        typer.Option("--temperature", min=0, metavar="T", help="Default: 0.2; several make one source each."),
    ] = None
    top_p: Annotated[float, typer.Option("--top-p", metavar="P", help="Share of the probability to draw from.")] = 1.0
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", min=1, metavar="N", help="Most tokens of an answer.")
    ] = None
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Random seed, for models that can repeat themselves.")
    ] = None
    prompt: Annotated[
        str,
        typer.Option(
            "--prompt", metavar="NAME|FILE", help="paper, paraphrase, summarise, polish, or a file with {text}."
        ),
    ] = "paper"
    attempts: Annotated[
        int, typer.Option("--attempts", min=1, metavar="N", help="Answers to ask for until one is good.")
    ] = 3
    titles: Annotated[str, typer.Option("--titles", help="keep, rewrite or drop.")] = "keep"
    source_to_rewrite: Annotated[
        str, typer.Option("--source-to-rewrite", metavar="SOURCE", help="Rewrite the documents of this source.")
    ] = "human"
    source_name: Annotated[
        str | None,
        typer.Option("--source-name", metavar="NAME", help="Source of the rewrites (default: MODEL-tmpT)."),
    ] = None
    truncate: Annotated[
        bool, typer.Option("--truncate", help="Shorten texts that are too long instead of leaving them out.")
    ] = False
    context: Annotated[
        int | None,
        typer.Option("--context", min=1, metavar="N", help="Tokens that prompt and answer may have together."),
    ] = None
    min_length_ratio: Annotated[
        float | None,
        typer.Option(
            "--min-length-ratio", metavar="X", help="Words, rewrite over text, below which an answer is flagged."
        ),
    ] = None
    max_length_ratio: Annotated[
        float | None,
        typer.Option(
            "--max-length-ratio", metavar="X", help="Words, rewrite over text, above which an answer is flagged."
        ),
    ] = None
    max_copied: Annotated[
        float | None,
        typer.Option("--max-copied", metavar="X", help="Share of the text's words in a row that flags a copy."),
    ] = None
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="Only the first N documents, for a trial.")
    ] = None

    def rewriting(self) -> Rewriting:
        """As the function takes it; limits that are not named are the prompt's."""
        from ranktilt.generation.flags import RewriteLimits
        from ranktilt.generation.rewrite.plan import Rewriting
        from ranktilt.generation.templates import template

        given = {"shortest": self.min_length_ratio, "longest": self.max_length_ratio, "copied": self.max_copied}
        named = {name: value for name, value in given.items() if value is not None}
        limits = replace(RewriteLimits(), **{**template(self.prompt).limits, **named}) if named else None
        return Rewriting(
            prompt=self.prompt, temperatures=tuple(self.temperature or (0.2,)), top_p=self.top_p,
            max_tokens=self.max_tokens, seed=self.seed, attempts=self.attempts, titles=self.titles,
            of=self.source_to_rewrite, source=self.source_name, truncate=self.truncate, context=self.context,
            limits=limits, first=self.limit,
        )  # fmt: skip


@options.verb
def rewrite(
    folder: options.Folder,
    *,
    model: ModelOptions,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="DIR", help="Where the collection with its rewrites goes.")
    ] = None,
    rewriting: RewriteOptions,
    pool: Annotated[
        str | None,
        typer.Option(
            "--pool",
            metavar="SPEC,...",
            help="Rewrite only what is judged or found by these rankers, such as bm25,dense:minilm.",
        ),
    ] = None,
    pool_depth: Annotated[
        int | None,
        typer.Option("--pool-depth", min=1, metavar="K", help="Documents per query and ranker (default: 100)."),
    ] = None,
    split: options.Split = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Ask nothing: show documents, tokens, price and time.")
    ] = False,
    price: options.Price = None,
    compute: options.Compute,
    json: Annotated[str | None, typer.Option("--json", metavar="FILE", help="Write a summary; - for stdout.")] = None,
) -> int:
    """Rewrite documents with a language model; resumes what was interrupted. Exit 1 if some got no answer."""
    from ranktilt.generation.output_folder import recover

    if output is not None:
        recover(output)
    if output is None and not dry_run:
        raise UserError("where to? Name a folder: -o DIR; or ask for the cost: --dry-run")
    if price is not None and not dry_run:
        raise UserError("--price is about the estimate; ask for it: --dry-run")
    if pool_depth is not None and pool is None:
        raise UserError("--pool-depth is about a pool; name its rankers, such as --pool bm25")
    _check_output(folder, output, json, dry_run=dry_run)
    how = rewriting.rewriting()
    device = compute.device
    client = model.client(device if model.llm.startswith("transformers:") or pool is None else None)
    if not dry_run:
        client.check()
    collection = _load(folder, split)
    chosen = None if pool is None else _pool(collection, pool, pool_depth, how, device)
    if output is None or dry_run:
        _show_estimate(collection, client, how, chosen, given=(price, model.rpm, model.tpm), json=json)
        return 0
    return _rewrite(collection, client, how, chosen, (output, json), split=split)


def _check_output(folder: Path, output: Path | None, json: str | None, *, dry_run: bool) -> None:
    """Refuse places that cannot be written before anything is read or asked."""
    from ranktilt.generation.manifest import require_ours, require_same

    if output is not None:
        target = Path(os.path.realpath(output))
        if target == Path(os.path.realpath(folder)):
            raise UserError(f"-o {output}: this is the collection that is read; choose another folder")
        if json not in (None, "-") and target in Path(os.path.realpath(str(json))).parents:
            raise UserError(
                f"--json {json}: lies in the folder of -o, which is replaced as a whole; choose another place"
            )
    check_paths({"--json": json}, stdout=("--json",), inputs=collection_files(folder))
    if output is not None and not dry_run:
        require_same(output, require_ours(output), folder)


def _load(folder: Path, split: str | None) -> Collection:
    """The collection under the named or usual judgments; a folder without any can be rewritten too."""
    from ranktilt.datasets.load import NO_QRELS, load
    from ranktilt.generation.rewrite.save import splits

    if options.without_judgments(folder, split):
        return load(folder, qrels=NO_QRELS)
    existing = splits(folder)
    usual = "test" if "test" in existing else existing[0] if existing else None
    return load(folder, split=split or usual, ignore_unknown=True)


def _pool(collection: Collection, specs: str, depth: int | None, how: Rewriting, device: str | None) -> Pool:
    from ranktilt.generation.pooling import USUAL_DEPTH, pool

    rankers = options.read_rankers([text for text in _split(specs) if text], device=device)
    found = pool(collection, rankers, depth=depth or USUAL_DEPTH, of=how.of)
    for sentence in found.sentences:
        note(sentence)
    return found


def _split(specs: str) -> list[str]:
    """Rankers apart at commas, but not at those within brackets."""
    parts, depth = [""], 0
    for letter in specs:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _show_estimate(
    collection: Collection, llm: LLM, how: Rewriting, chosen: Pool | None, *, given: tuple[Any, ...], json: str | None
) -> None:
    from ranktilt.generation.estimate import estimate
    from ranktilt.generation.rewrite.plan import plan

    price, rpm, tpm = given
    found = estimate(plan(collection, llm, how, only=chosen), llm, price=options.read_price(price), rpm=rpm, tpm=tpm)
    _write(found.to_dict(), json)
    if json != "-":
        width = max(len(name) for name, _ in found.lines)
        print_result("".join(f"{name:<{width}}  {text}\n" for name, text in found.lines))


def _rewrite(
    collection: Collection, llm: LLM, how: Rewriting, chosen: Pool | None, paths: tuple[Path, str | None],
    *, split: str | None,
) -> int:  # fmt: skip
    from ranktilt.generation.rewrite.rewrite import rewrite
    from ranktilt.generation.rewrite.save import save_rewritten

    output, json = paths
    rewritten = rewrite(collection, llm, how, only=chosen)
    saved = save_rewritten(rewritten, output)
    _write({**_summary(rewritten), "folder": str(output), "splits": list(saved.splits)}, json)
    for line in _notes(rewritten, saved):
        note(line)
    kept = sum(one.rewritten for one in rewritten.made)
    if rewritten.unanswered or not kept:
        why = (
            _unfinished(rewritten)
            if rewritten.unanswered
            else "no answer passed the checks: there is nothing to compare"
            if any(one.answers for one in rewritten.made)
            else "no document could be asked for: there is nothing to compare"
        )
        note(why)
        return INCOMPLETE
    named = ["--split", str(split)] if split is not None and len(saved.splits) > 1 else []
    note(f"Next: {shlex.join(['ranktilt', 'check', str(output), *named])}")
    return 0


def _summary(rewritten: Rewritten) -> dict[str, Any]:
    return {
        "spec": dict(rewritten.spec),
        "made": [{**one._asdict(), "lost": dict(one.lost), "flags": dict(one.flags)} for one in rewritten.made],
        "left_out": rewritten.left_out.to_dicts(),
    }


def _write(content: dict[str, Any], json: str | None) -> None:
    from ranktilt.io.files import write_files

    if json is None:
        return
    data = json_.dumps(content, indent=1, ensure_ascii=False) + "\n"
    if json == "-":
        print_result(data)
    else:
        write_files({Path(json): data.encode(errors="backslashreplace")})


def _notes(rewritten: Rewritten, saved: SavedFolder) -> Iterator[str]:
    """Say what was made, what was left out and why, and what was paid for."""
    yield f"{saved.folder}: {rewritten.collection!r}"
    for one in rewritten.made:
        yield _of_source(one)
    names = {row["id"]: row["reason"] for row in rewritten.left_out.iter_rows(named=True)}
    if names:
        first = ", ".join(f"{name} ({reason})" for name, reason in list(names.items())[:_SHOWN])
        yield f"left out: {first}{', …' if len(names) > _SHOWN else ''}; all in {saved.folder / 'left-out.jsonl'}"
    fresh, answers = (sum(getattr(one, what) for one in rewritten.made) for what in ("fresh", "answers"))
    known = "" if fresh == answers else f"; {answers - fresh:,} were known"
    yield f"{counted(fresh, 'answer', 'answers')} asked for{known}"
    if saved.dropped:
        yield f"no longer part of this folder: {counted(saved.dropped, 'answer', 'answers')} of its earlier version"


def _of_source(one: SourceSummary) -> str:
    lost = ", ".join(f"{n:,} {reason}" for reason, n in one.lost.items())
    flags = ", ".join(f"{n:,} {flag}" for flag, n in one.flags.items())
    parts = [f"{one.source}: {one.rewritten:,} of {counted(one.documents, 'document', 'documents')} rewritten"]
    parts += [f"left out: {lost}"] if lost else []
    parts += [f"flagged answers: {flags}"] if flags else []
    parts += [f"{one.cut:,} of a text that was cut"] if one.cut else []
    return "; ".join(parts)


def _unfinished(rewritten: Rewritten) -> str:
    n = rewritten.unanswered
    message = next((m for m in rewritten.left_out["message"] if m), "")
    return (
        f"{counted(n, 'document', 'documents')} got no answer ({message}); the same command again asks only for these"
    )
