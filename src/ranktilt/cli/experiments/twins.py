"""``ranktilt twins``: every document in versions that differ by design, and what their factors did."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ranktilt.cli import options
from ranktilt.cli.generate import INCOMPLETE, DryRun, ModelOptions, check_request, generation_notes, write_summary
from ranktilt.cli.notes import note
from ranktilt.cli.output import Output, print_lines
from ranktilt.errors import UserError, counted
from ranktilt.experiments.twins.options import Crossing
from ranktilt.option import Option

if TYPE_CHECKING:
    from ranktilt.experiments.twins.factors import Factor
    from ranktilt.experiments.twins.make import DesignedTwins
    from ranktilt.generation.estimate import CostEstimate
    from ranktilt.llm.base import LLM


@dataclass(frozen=True)
class OptionalModel(ModelOptions):
    """The same, where rules may do without a model."""

    llm: Annotated[str | None, Option("Model: openai:NAME or transformers:FOLDER.", "MODEL")] = None  # type: ignore[assignment]


@options.verb(
    "twins DIR --factors length,words,facts --by-rule -o DIR-rule",
    "twins DIR --factors source,length,words,facts --design 8 --llm openai:MODEL -o DIR-twins --dry-run",
)
def twins(
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="A collection: BEIR, Cocktail or the papers' layout.")
    ] = None,
    *,
    factors: Annotated[
        str,
        Option(
            "source, facts, words, gender, length, query-words, fluency, style; your own: MODULE:FUNCTION or a prompt "
            "file. With --table, its columns.",
            "NAME,...",
        ),
    ],
    crossing: Annotated[dict[str, Any], options.FieldsOf(Crossing, panel="Question")],
    by_rule: Annotated[bool, Option("Use rules only, and no language model.")] = False,
    table: Annotated[
        Path | None, Option("Read versions that there are already: origin, text, a column a factor.", panel="Input")
    ] = None,
    level: Annotated[
        list[str] | None,
        Option("Low and high value of a column of --table, such as gender=M,F.", "NAME=LOW,HIGH", panel="Input"),
    ] = None,
    split: options.Split = None,
    model: OptionalModel,
    dry_run: DryRun = False,
    price: options.Price = None,
    compute: options.Compute,
    folder_out: Annotated[
        Path | None, Option("Folder for the designed collection.", "DIR", short="-o", flag="--output", panel="Output")
    ] = None,
    rows_per_file: options.RowsPerFile = None,
    output: Output,
) -> int:
    """Write documents in combinations of factors, and check what each factor did. Exit 1 if answers are missing."""
    prices = options.read_price(price, dry_run=dry_run)
    given = table or folder
    if given is None:
        raise UserError("nothing to read: name a collection, or versions (--table FILE)")
    check_request(given, folder_out, output.json, kind="twins", dry_run=dry_run)
    names = [name.strip() for name in factors.split(",") if name.strip()]
    target = _Target(folder_out, rows_per_file, output)
    if table is not None:
        if crossing or by_rule or model.changed():
            raise UserError("--table has its versions already: only --factors, --level and a collection go with it")
        return target.write(_from_table(table, folder, names, level or (), split))
    if level:
        raise UserError("--level needs versions: --table FILE")
    from ranktilt.experiments.twins.factors import read_factors
    from ranktilt.experiments.twins.make import price_twins
    from ranktilt.experiments.twins.make import twins as make_twins

    read, how = read_factors(names, by_rule=by_rule), Crossing(**crossing)
    client = _client(model, read, compute.device)
    collection = options.load_texts(Path(str(folder)), split)
    if dry_run:
        if client is None:
            raise UserError("nothing to price: every factor is made by rule")
        rows = price_twins(collection, read, how, client, price=prices, requests_per_minute=model.requests_per_minute)
        _show_prices(rows, output.json)
        return 0
    if client is not None:
        client.check()
    from ranktilt.generation.output_folder import one_writer

    with one_writer(str(folder_out)):
        return target.write(make_twins(collection, read, how, llm=client))


def _client(model: ModelOptions, factors: Sequence[Factor], device: str | None) -> LLM | None:
    """The model, where a factor needs one; refuses one that no factor would ask."""
    from ranktilt.experiments.twins.factors import require_model

    require_model(factors, model.llm is not None)
    return None if model.llm is None else model.client(device)


def _from_table(
    table: Path, folder: Path | None, factors: Sequence[str], levels: Sequence[str], split: str | None
) -> DesignedTwins:
    from ranktilt.experiments.twins.table import twins_of_table

    pairs = dict[str, tuple[str, str]]()
    for text in levels:
        name, equals, values = text.partition("=")
        low, comma, high = values.partition(",")
        if not (equals and comma and name.strip() and low.strip() and high.strip()):
            raise UserError(
                f"--level expects a column with its low and its high value, such as gender=M,F; got {text!r}"
            )
        pairs[name.strip()] = (low.strip(), high.strip())
    held = None if folder is None else options.load_texts(folder, split)
    return twins_of_table(table, factors, pairs, collection=held)


@dataclass(frozen=True)
class _Target:
    """Where a designed collection goes, and how its checks are shown."""

    folder: Path | None
    rows_per_file: int | None
    output: Output

    def write(self, made: DesignedTwins) -> int:
        """Write the collection, print what its factors did, and say what comes next."""
        from ranktilt.experiments.twins.save import save_twins

        saved = save_twins(made, str(self.folder), rows_per_file=self.rows_per_file)
        self.output.deliver(made.checks)
        if made.made:
            for line in generation_notes(made, saved, "rewritten"):
                note(line)
        else:
            note(f"{saved.folder}: {made.collection!r}")
        if made.unanswered:
            texts = counted(made.unanswered, "text", "texts")
            note(f"{texts} got no answer; the same command again asks only for these")
            return INCOMPLETE
        note(f"Next: {shlex.join(['ranktilt', 'explain', str(saved.folder), '-r', 'bm25', '--by-factor'])}")
        return 0


def _show_prices(rows: Sequence[tuple[Factor, int, CostEstimate]], json: str | None) -> None:
    """Show what each prompt would cost: the estimate for the documents as they are, times the versions of each."""
    shown, content, total = list[tuple[str, str]](), list[dict[str, Any]](), 0.0
    for factor, texts, found in rows:
        times = texts / max(found.documents - found.empty, 1)
        tokens = [round(times * number) for number in (found.tokens_in, found.tokens_out)]
        price = None if found.price is None else times * found.price
        total += price or 0.0
        content.append({
            "factor": factor.name, "prompt": factor.prompt, "texts": texts, "tokens_in": tokens[0],
            "tokens_out": tokens[1], "price": price, "documents": found.to_dict(),
        })  # fmt: skip
        cost = "" if price is None else f", price {price:,.2f}"
        shown.append((factor.name, f"{texts:,} texts, {tokens[0]:,} tokens in, {tokens[1]:,} out{cost}"))
    if any(row["price"] is not None for row in content):
        shown.append(("price", f"{total:,.2f}"))
    elif content:
        shown.append(("price", "give one with --price IN,OUT per million tokens"))
    write_summary({"factors": content, "price": total if rows and rows[0][2].price is not None else None}, json)
    if json != "-":
        print_lines(shown)
