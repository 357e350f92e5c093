"""``ranktilt audit``: whether a ranker favours one side of a collection."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ranktilt.cli import options
from ranktilt.cli.output import reporting
from ranktilt.cli.results import Destination
from ranktilt.errors import UserError


def command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A collection: BEIR, Cocktail or the papers' layout.")],
    *,
    ranker: options.Rankers = None,
    run: Annotated[list[Path] | None, typer.Option("--run", metavar="FILE", help="A run in TREC format.")] = None,
    measure: options.Measures = None,
    by: Annotated[
        str, typer.Option("--by", metavar="COLUMN", help="Group documents by it; none for no groups.")
    ] = "source",
    pair: Annotated[list[str] | None, typer.Option("--pair", metavar="A,B", help="Compare only these groups.")] = None,
    split: Annotated[
        str | None, typer.Option("--split", help="Judgments in qrels/<split>.tsv (default: test, or the only one).")
    ] = None,
    text: options.Text = None,
    exclude_self: Annotated[
        bool | None,
        typer.Option(
            "--exclude-self/--no-exclude-self",
            help="Drop a query's own document where queries are documents.",
        ),
    ] = None,
    ignore_unknown: Annotated[
        bool,
        typer.Option("--ignore-unknown", help="Keep judgments of unknown documents out of group measures."),
    ] = False,
    ties: Annotated[str, typer.Option("--ties", help="expected, or trec_eval for published numbers.")] = "expected",
    rounding: Annotated[str, typer.Option("--rounding", help="none, or paper: means to 0.1 % first.")] = "none",
    test: Annotated[str, typer.Option("--test", help="permutation or t.")] = "permutation",
    correction: Annotated[str, typer.Option("--correction", help="holm or bonferroni.")] = "holm",
    level: Annotated[float, typer.Option("--level", min=0, help="Half-width of what counts as level, in %.")] = 5.0,
    resamples: Annotated[
        int, typer.Option("--resamples", min=100, help="Bootstrap resamples and sign flips.")
    ] = 10_000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of every random draw.")] = 0,
    device: options.Device = None,
    threads: options.Threads = None,
    format: options.Format = "table",
    json: options.Json = None,
    per_query: Annotated[
        Path | None, typer.Option("--per-query", metavar="FILE.csv", help="Write a row a query.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="DIR", help="Write audit, table and runs there.")
    ] = None,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    """Audit rankers on a collection: which side stands higher, by how much, and how surely."""
    if not ranker and not run:
        raise UserError("nothing to audit: name a ranker, such as -r bm25, or a run, such as --run FILE")
    with reporting(quiet=quiet):
        from ranktilt.auditing.audit import DEFAULT_MEASURES, audit
        from ranktilt.auditing.groups import choose_pairs, grouping
        from ranktilt.data.load import load
        from ranktilt.measures.base import measure as read_measure

        out = Destination(format, json, per_query, save, quiet)
        column = None if by == "none" else by
        pairs = _pairs(pair)
        measures = [read_measure(m) for m in measure or DEFAULT_MEASURES]
        specs = [*(ranker or []), *(_replay(r) for r in run or [])]
        rankers = options.rankers(specs, text=text, exclude_self=exclude_self, device=device)
        collection = load(folder, split=split, ignore_unknown=ignore_unknown)
        choose_pairs(grouping(collection, column), pairs)  # what cannot be compared need not be ranked
        runs = [r.rank(collection) for r in rankers]
        result = audit(
            collection, runs, measures, by=column, pairs=pairs, ties=ties, rounding=rounding, test=test,
            correction=correction, level=level, resamples=resamples, seed=seed,
        )  # fmt: skip
        out.deliver(result, runs)


def _replay(path: Path) -> str:
    from ranktilt.rankers.stage import Stage

    return str(Stage("replay", str(path)))


def _pairs(texts: list[str] | None) -> list[tuple[str, str]] | None:
    if not texts:
        return None
    pairs = []
    for text in texts:
        a, comma, b = text.partition(",")
        if not comma or not a.strip() or not b.strip():
            raise UserError(f"--pair expects two groups, such as human,llm; got {text!r}")
        pairs.append((a.strip(), b.strip()))
    return pairs
