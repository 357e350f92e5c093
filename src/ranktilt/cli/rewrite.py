"""``ranktilt rewrite``: a machine-written twin for each document, by a language model."""

from __future__ import annotations

import json as json_
import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ranktilt.cli import options
from ranktilt.cli.output import reporting, results, say
from ranktilt.cli.places import check_places, collection_files, without_judgments
from ranktilt.errors import UserError, counted

if TYPE_CHECKING:
    from ranktilt.collection import Collection
    from ranktilt.generation.pooling import Pool
    from ranktilt.generation.rewrite.plan import Rewriting
    from ranktilt.generation.rewrite.rewrite import Rewritten, SourceSummary
    from ranktilt.generation.rewrite.save import SavedRewrites
    from ranktilt.llm.base import LLM

INCOMPLETE = 1
_SHOWN = 3

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A collection: BEIR, Cocktail or the papers' layout.")]
Model = Annotated[str, typer.Option("--llm", metavar="MODEL", help="Who rewrites: openai:NAME or transformers:FOLDER.")]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="DIR", help="Where the collection with its rewrites goes.")
]
BaseUrl = Annotated[
    str | None,
    typer.Option("--base-url", metavar="URL", help="Of any compatible server, such as http://localhost:8000/v1."),
]
Concurrency = Annotated[
    int | None, typer.Option("--concurrency", min=1, metavar="N", help="Requests at a time (default: 8).")
]
Batch = Annotated[
    int | None, typer.Option("--batch", min=1, metavar="N", help="Prompts at a time of a transformers: model.")
]
Rpm = Annotated[int | None, typer.Option("--rpm", min=1, metavar="N", help="Most requests a minute.")]
Tpm = Annotated[int | None, typer.Option("--tpm", min=1, metavar="N", help="Most tokens a minute.")]
Timeout = Annotated[float | None, typer.Option("--timeout", metavar="S", help="Seconds to wait for an answer.")]
Retries = Annotated[
    int | None, typer.Option("--retries", min=0, metavar="N", help="How often a failed request is sent again.")
]
MaxAnswer = Annotated[
    str | None,
    typer.Option(
        "--max-answer", metavar="SIZE", help="Of an answer as a server sends it (1MB); a longer one is not read."
    ),
]
Temperatures = Annotated[
    list[float] | None,
    typer.Option("--temperature", min=0, metavar="T", help="Default: 0.2; several make one source each."),
]
TopP = Annotated[float, typer.Option("--top-p", metavar="P", help="Share of the probability to draw from.")]
MaxTokens = Annotated[int | None, typer.Option("--max-tokens", min=1, metavar="N", help="Most tokens of an answer.")]
Seed = Annotated[int | None, typer.Option("--seed", min=0, help="For models that can repeat themselves.")]
Prompt = Annotated[
    str,
    typer.Option("--prompt", metavar="NAME|FILE", help="paper, paraphrase, summarise, polish, or a file with {text}."),
]
Attempts = Annotated[int, typer.Option("--attempts", min=1, metavar="N", help="Answers to ask for until one is good.")]
Titles = Annotated[str, typer.Option("--titles", help="keep, rewrite or drop.")]
Of = Annotated[str, typer.Option("--of", metavar="SOURCE", help="Rewrite the documents of this source.")]
Source = Annotated[
    str | None, typer.Option("--source", metavar="NAME", help="Name of the rewrites (default: MODEL-tmpT).")
]
Pooled = Annotated[
    str | None,
    typer.Option(
        "--pool",
        metavar="SPEC,...",
        help="Rewrite only what is judged or found by these rankers, such as bm25,dense:minilm.",
    ),
]
Depth = Annotated[int | None, typer.Option("--pool-depth", min=1, metavar="K", help="Documents a query of each (100).")]
Truncate = Annotated[
    bool, typer.Option("--truncate", help="Shorten texts that are too long instead of leaving them out.")
]
Context = Annotated[
    int | None, typer.Option("--context", min=1, metavar="N", help="Tokens that prompt and answer may have together.")
]
Shortest = Annotated[
    float | None,
    typer.Option("--min-length-ratio", metavar="X", help="Words, rewrite over text, below which an answer is flagged."),
]
Longest = Annotated[float | None, typer.Option("--max-length-ratio", metavar="X", help="Above which it is flagged.")]
Copied = Annotated[
    float | None,
    typer.Option("--max-copied", metavar="X", help="Share of the text's words in a row that flags a copy."),
]
First = Annotated[
    int | None, typer.Option("--limit", min=1, metavar="N", help="Only the first N documents, for a trial.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Ask nothing: show documents, tokens, price and time.")]
Price = Annotated[str | None, typer.Option("--price", metavar="IN,OUT", help="Of a million tokens, for --dry-run.")]
Json = Annotated[str | None, typer.Option("--json", metavar="FILE", help="Write what came of it; - for stdout.")]


def command(
    folder: Folder,
    *,
    llm: Model,
    output: Output = None,
    base_url: BaseUrl = None,
    concurrency: Concurrency = None,
    batch: Batch = None,
    rpm: Rpm = None,
    tpm: Tpm = None,
    timeout: Timeout = None,
    retries: Retries = None,
    max_answer: MaxAnswer = None,
    temperature: Temperatures = None,
    top_p: TopP = 1.0,
    max_tokens: MaxTokens = None,
    seed: Seed = None,
    prompt: Prompt = "paper",
    attempts: Attempts = 3,
    titles: Titles = "keep",
    of: Of = "human",
    source: Source = None,
    pool: Pooled = None,
    pool_depth: Depth = None,
    truncate: Truncate = False,
    context: Context = None,
    min_length_ratio: Shortest = None,
    max_length_ratio: Longest = None,
    max_copied: Copied = None,
    limit: First = None,
    split: options.Split = None,
    dry_run: DryRun = False,
    price: Price = None,
    device: options.Device = None,
    threads: options.Threads = None,
    json: Json = None,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Rewrite documents with a language model; resumes what was interrupted. Exit 1 if some got no answer."""
    with reporting(quiet=quiet):
        from ranktilt.executing.memory_limits import read_size
        from ranktilt.generation.rewrite.plan import Rewriting
        from ranktilt.generation.rewrite.save import recover
        from ranktilt.llm.base import llm as named

        if output is not None:
            recover(output)
        _check(folder, output, json, dry_run=dry_run, price=price, pool=pool, depth=pool_depth)
        limits = _limits(prompt, shortest=min_length_ratio, longest=max_length_ratio, copied=max_copied)
        how = Rewriting(
            prompt=prompt, temperatures=tuple(temperature or (0.2,)), top_p=top_p, max_tokens=max_tokens, seed=seed,
            attempts=attempts, titles=titles, of=of, source=source, truncate=truncate, context=context,
            limits=limits, first=limit,
        )  # fmt: skip
        given = {
            "base_url": base_url, "concurrency": concurrency, "batch": batch, "rpm": rpm, "tpm": tpm,
            "timeout": timeout, "retries": retries,
            "max_answer": None if max_answer is None else read_size(max_answer, option="--max-answer", least=1000),
            "device": device if llm.startswith("transformers:") or pool is None else None,
        }  # fmt: skip
        _check_options(llm, given)
        model = named(llm, **given)
        if not dry_run:
            model.check()
        collection = _load(folder, split)
        chosen = None if pool is None else _pool(collection, pool, pool_depth, how, device, quiet=quiet)
        if dry_run:
            _show_estimate(collection, model, how, chosen, given=(price, rpm, tpm), json=json)
            return
        code = _rewrite(collection, model, how, chosen, (Path(str(output)), json), split=split, quiet=quiet)
    if code:
        raise typer.Exit(code)


def _check(
    folder: Path, output: Path | None, json: str | None,
    *, dry_run: bool, price: str | None, pool: str | None, depth: int | None,
) -> None:  # fmt: skip
    """Refuse what cannot be done before anything is read or asked."""
    from ranktilt.generation.rewrite.manifest import require_ours, require_same

    if output is None and not dry_run:
        raise UserError("where to? Name a folder: -o DIR; or ask for the cost: --dry-run")
    if price is not None and not dry_run:
        raise UserError("--price is about the estimate; ask for it: --dry-run")
    if depth is not None and pool is None:
        raise UserError("--pool-depth is about a pool; name its rankers, such as --pool bm25")
    if output is not None and os.path.realpath(output) == os.path.realpath(folder):
        raise UserError(f"-o {output}: this is the collection that is read; choose another folder")
    if (
        output is not None
        and json not in (None, "-")
        and Path(os.path.realpath(output)) in Path(os.path.realpath(str(json))).parents
    ):
        raise UserError(f"--json {json}: lies in the folder of -o, which is replaced as a whole; choose another place")
    check_places({"--json": json}, stdout=("--json",), inputs=collection_files(folder))
    if output is not None and not dry_run:
        require_same(output, require_ours(output), folder)


_SERVER = ("base_url", "concurrency", "timeout", "retries", "rpm", "tpm", "max_answer")
_LOCAL = ("batch", "device")


def _check_options(llm: str, given: Mapping[str, Any]) -> None:
    """Refuse options of the other kind of model, by the names that were typed."""
    for kind, strange in (("openai", _LOCAL), ("transformers", _SERVER)):
        first = next((name for name in strange if given[name] is not None), None)
        if llm.strip().startswith(f"{kind}:") and first is not None:
            whose = ", ".join(f"--{name.replace('_', '-')}" for name in strange)
            other = "a transformers: model" if kind == "openai" else "a server, an openai: model"
            raise UserError(f"--{first.replace('_', '-')} is for {other} ({whose}); leave it out for {llm}")


def _limits(prompt: str, **given: float | None) -> Any:
    """Limits of the checks: those of the prompt, and what is named beside them; None where nothing is named."""
    from dataclasses import replace

    from ranktilt.generation.rewrite.flags import RewriteLimits
    from ranktilt.generation.rewrite.prompts import template

    named = {name: value for name, value in given.items() if value is not None}
    return replace(RewriteLimits(), **{**template(prompt).limits, **named}) if named else None


def _load(folder: Path, split: str | None) -> Collection:
    """The collection under the named or usual judgments; a folder without any can be rewritten too."""
    from ranktilt.datasets.load import NO_QRELS, load
    from ranktilt.generation.rewrite.save import splits

    if without_judgments(folder, split):
        return load(folder, qrels=NO_QRELS)
    there = splits(folder)
    usual = "test" if "test" in there else there[0] if there else None
    return load(folder, split=split or usual, ignore_unknown=True)


def _pool(
    collection: Collection, specs: str, depth: int | None, how: Rewriting, device: str | None, *, quiet: bool
) -> Pool:
    from ranktilt.generation.pooling import USUAL_DEPTH, pool

    rankers = options.rankers([text for text in _split(specs) if text], device=device)
    found = pool(collection, rankers, depth=depth or USUAL_DEPTH, of=how.of)
    for sentence in found.sentences:
        say(sentence, quiet=quiet)
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
    from ranktilt.generation.rewrite.estimate import estimate
    from ranktilt.generation.rewrite.plan import plan

    price, rpm, tpm = given
    found = estimate(plan(collection, llm, how, only=chosen), llm, price=_price(price), rpm=rpm, tpm=tpm)
    _write(found.to_dict(), json)
    if json != "-":
        width = max(len(name) for name, _ in found.lines)
        with results() as stream:
            stream.writelines(f"{name:<{width}}  {text}\n" for name, text in found.lines)


def _price(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    try:
        read, written = map(float, text.split(","))
    except ValueError as error:
        raise UserError(
            f"--price expects two numbers, of a million tokens in and out, such as 0.15,0.60; got {text!r}"
        ) from error
    return read, written


def _rewrite(
    collection: Collection, llm: LLM, how: Rewriting, chosen: Pool | None, places: tuple[Path, str | None],
    *, split: str | None, quiet: bool,
) -> int:  # fmt: skip
    from ranktilt.generation.rewrite.rewrite import rewrite
    from ranktilt.generation.rewrite.save import save_rewritten

    output, json = places
    rewritten = rewrite(collection, llm, how, only=chosen)
    saved = save_rewritten(rewritten, output)
    _write({**_summary(rewritten), "folder": str(output), "splits": list(saved.splits)}, json)
    for line in _notes(rewritten, saved):
        say(line, quiet=quiet)
    kept = sum(one.rewritten for one in rewritten.made)
    if rewritten.unanswered or not kept:
        why = (
            _unfinished(rewritten)
            if rewritten.unanswered
            else "no answer passed the checks: there is nothing to compare"
            if any(one.answers for one in rewritten.made)
            else "no document could be asked for: there is nothing to compare"
        )
        say(why, quiet=quiet)
        return INCOMPLETE
    named = ["--split", str(split)] if split is not None and len(saved.splits) > 1 else []
    following = shlex.join(["ranktilt", "check", str(output), *named])
    say(f"Next: {following}", quiet=quiet)
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
        with results() as stream:
            stream.write(data)
    else:
        write_files({Path(json): data.encode(errors="backslashreplace")})


def _notes(rewritten: Rewritten, saved: SavedRewrites) -> Iterator[str]:
    """Say what was made, what was left out and why, and what was paid for."""
    yield f"{saved.folder}: {rewritten.collection!r}"
    for one in rewritten.made:
        yield _told(one)
    names = {row["id"]: row["reason"] for row in rewritten.left_out.iter_rows(named=True)}
    if names:
        first = ", ".join(f"{name} ({reason})" for name, reason in list(names.items())[:_SHOWN])
        yield f"left out: {first}{', …' if len(names) > _SHOWN else ''}; all in {saved.folder / 'left-out.jsonl'}"
    fresh, answers = (sum(getattr(one, what) for one in rewritten.made) for what in ("fresh", "answers"))
    known = "" if fresh == answers else f"; {answers - fresh:,} were known"
    yield f"{counted(fresh, 'answer', 'answers')} asked for{known}"
    if saved.dropped:
        yield f"no longer part of this folder: {counted(saved.dropped, 'answer', 'answers')} of its earlier version"


def _told(one: SourceSummary) -> str:
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
