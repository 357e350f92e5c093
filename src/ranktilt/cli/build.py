"""``ranktilt build``: make a published collection from the files it was made of; one command a collection."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ranktilt.cli import options
from ranktilt.cli.output import reporting, results, say
from ranktilt.cli.places import check_places

if TYPE_CHECKING:
    from ranktilt.datasets.natural_questions import Built

app = typer.Typer(
    help="Make a published collection from the files it was made of.", no_args_is_help=True, rich_markup_mode=None
)


@app.callback()
def _kinds() -> None:
    """Make a published collection from the files it was made of."""


@app.command("nq320k")
def nq320k(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Natural Questions: its train and dev files (.jsonl, .gz).")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Where the collection goes.")],
    *,
    words: Annotated[int, typer.Option("--words", min=1, metavar="N", help="Cut texts after so many words.")] = 200,
    titles: Annotated[
        options.Titles,
        typer.Option("--titles", help="text: a text begins with its title, as published; field: only in title."),
    ] = options.Titles.text,
    layout: options.Layout = options.Layouts.beir,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Build NQ320K from Natural Questions: each page once, cut short, with the development set's questions."""
    with reporting(quiet=quiet):
        from ranktilt.datasets.natural_questions import build_nq320k
        from ranktilt.datasets.save import save

        check_places({"--output": output / "corpus.jsonl"}, stdout=(), inputs=())
        built = build_nq320k(files, words=words, titles=titles)
        save(built.collection, output, layout=layout)
    with results() as stream:
        stream.write(_counts(built))
    say(_note(built, output), quiet=quiet)


def _counts(built: Built) -> str:
    """What was counted beside what is published, a line each."""
    from ranktilt.datasets.natural_questions import PUBLISHED

    lines = []
    for name, expected in PUBLISHED.items():
        count, published = (f"{n:,.2f}" if name == "mean words" else f"{n:,}" for n in (built.counts[name], expected))
        lines.append(f"{name:<12} {count:>8}   {published} expected" + ("" if count == published else "   differs"))
    return "\n".join([*lines, ""])


def _note(built: Built, output: Path) -> str:
    from ranktilt.datasets.natural_questions import PUBLISHED, TRAINING

    lines = [f"{output}: {built.collection!r}"]
    if not built.as_published:
        seen = f"{built.train_lines:,} training and {built.counts['test queries']:,} development questions were read"
        lines.append(f"Not as published: {seen}, {TRAINING:,} and {PUBLISHED['test queries']:,} there are.")
    if built.collection.spec["titles"] == "text":
        lines.append("Texts begin with their title and are cut; rewrites may not be: `ranktilt check` will say.")
    following = shlex.join(["ranktilt", "rewrite", str(output), "--llm", "openai:MODEL", "--dry-run"])
    return "\n".join([*lines, f"Next: {following}"])
