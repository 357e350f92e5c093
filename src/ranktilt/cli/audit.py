"""``ranktilt audit``: whether a ranker favours one side of a collection."""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ranktilt.cli import options
from ranktilt.cli.output import reporting, results
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.auditing.result import Audit
    from ranktilt.run import Run


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
        str | None, typer.Option("--split", help="Judgments in qrels/<split>.tsv (default: test).")
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

        check_format(format)
        pairs = _pairs(pair)
        measures = [read_measure(m) for m in measure or DEFAULT_MEASURES]
        rankers = options.rankers(
            [*(ranker or []), *(_replay(r) for r in run or [])],
            text=text,
            exclude_self=exclude_self,
            device=device,
        )
        collection = load(folder, split=split, ignore_unknown=ignore_unknown)
        if by != "none":
            choose_pairs(grouping(collection, by), pairs)  # what cannot be compared need not be ranked
        runs = [r.rank(collection) for r in rankers]
        result = audit(
            collection, runs, measures, by=None if by == "none" else by, pairs=pairs, ties=ties,
            rounding=rounding, test=test, correction=correction, level=level, resamples=resamples, seed=seed,
        )  # fmt: skip
        result = with_command(result)
        if per_query is not None:
            write_table(result, per_query)
        if save is not None:
            save_all(result, runs, save)
        finish(result, format=format, json=json, quiet=quiet)


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


def check_format(format: str) -> None:
    """Refuse an unknown format before any work is done."""
    from ranktilt.errors import unknown
    from ranktilt.reporting.table import FORMATS

    if format not in FORMATS:
        raise unknown("format", format, FORMATS)


def with_command(result: Audit) -> Audit:
    """Note in an audit's spec the command that made it."""
    return replace(result, spec={**result.spec, "command": shlex.join(["ranktilt", *sys.argv[1:]])})


def write_table(result: Audit, path: Path) -> None:
    """Write the tidy table (run, measure, group, query, value) as CSV; undefined values are empty."""
    import polars as pl

    from ranktilt.files import write_bytes

    defined = pl.when(pl.col("value").is_not_nan()).then("value")
    write_bytes(path, result.table.with_columns(defined.alias("value")).write_csv().encode())


def save_all(result: Audit, runs: list[Run], folder: Path) -> None:
    """Write ``audit.json``, ``table.parquet`` and ``runs/*.trec.gz`` into a folder."""
    import io

    from ranktilt.files import write_bytes

    result.save(folder / "audit.json")
    buffer = io.BytesIO()
    result.table.write_parquet(buffer)
    write_bytes(folder / "table.parquet", buffer.getvalue())
    for number, run in enumerate(runs, start=1):
        slug = re.sub(r"[^\w.=-]+", "_", run.name).strip("_")[:80]
        run.save(folder / "runs" / f"{number}-{slug}.trec.gz")


def finish(result: Audit, *, format: str, json: str | None, quiet: bool) -> None:
    """Print the result where it was asked for."""
    if json not in (None, "-"):
        result.save(str(json))
    with results() as stream:
        if json == "-":
            stream.write(result.to_json().decode())
        elif format == "table":
            from ranktilt.reporting.terminal import show

            show(result, stream, notes=not quiet)
        else:
            from ranktilt.reporting.table import table

            stream.write(table(result, format=format))
