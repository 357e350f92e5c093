"""``ranktilt data build``: published collections from their original files."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ranktilt.cli import options
from ranktilt.cli.data.fair_ranking import fair_ranking
from ranktilt.cli.data.retrieval_qa import retrieval_qa
from ranktilt.cli.notes import note
from ranktilt.cli.output import check_paths, print_result
from ranktilt.option import Option

if TYPE_CHECKING:
    from ranktilt.datasets.natural_questions import Built

build = typer.Typer(
    help="Make a published collection from its original files.", no_args_is_help=True, rich_markup_mode=None
)


@build.command("nq320k", cls=options.Verb)
@options.verb(
    "data build nq320k train.jsonl.gz dev.jsonl.gz -o DIR", "data build nq320k train.jsonl dev.jsonl -o DIR --words 100"
)
def nq320k(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Natural Questions: its train and dev files (.jsonl, .gz).")
    ],
    output: options.Destination,
    *,
    words: Annotated[int, Option("Cut texts to so many words.", "N", min=1)] = 200,
) -> None:
    """Build NQ320K from Natural Questions: each page once, cut short, with the development set's questions."""
    from ranktilt.datasets.natural_questions import build_nq320k
    from ranktilt.datasets.save import save

    check_paths({"--output": output / "corpus.jsonl"})
    built = build_nq320k(files, words=words)
    save(built.collection, output)
    print_result(_counts(built))
    _note_next_steps(built, output)


build.command("fair-ranking", cls=options.Verb)(fair_ranking)
build.command("retrieval-qa", cls=options.Verb)(retrieval_qa)


def _counts(built: Built) -> str:
    """What was counted beside what is published, a line each."""
    from ranktilt.datasets.natural_questions import PUBLISHED

    lines = []
    for name, expected in PUBLISHED.items():
        count, published = (f"{n:,.2f}" if name == "mean words" else f"{n:,}" for n in (built.counts[name], expected))
        lines.append(f"{name:<12} {count:>8}   {published} expected" + ("" if count == published else "   differs"))
    return "\n".join([*lines, ""])


def _note_next_steps(built: Built, output: Path) -> None:
    from ranktilt.datasets.natural_questions import PUBLISHED, TRAINING

    note(f"{output}: {built.collection!r}")
    if not built.as_published:
        seen = f"{built.train_lines:,} training and {built.counts['test queries']:,} development questions were read"
        note(f"Not as published: {seen}, {TRAINING:,} and {PUBLISHED['test queries']:,} there are.")
    note("Texts begin with their title and are cut; rewrites may not be: `ranktilt check` will say.")
    note(f"Next: {shlex.join(['ranktilt', 'generate', 'rewrite', str(output), '--llm', 'openai:MODEL', '--dry-run'])}")
