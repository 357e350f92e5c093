"""``ranktilt twins``: every document in versions that differ by design, and what their factors did."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ranktilt.cli import options
from ranktilt.cli.generate import (
    INCOMPLETE,
    DryRun,
    ModelOptions,
    check_request,
    generation_notes,
    note_side,
    write_summary,
)
from ranktilt.cli.judge import note_grades
from ranktilt.cli.notes import note
from ranktilt.cli.output import Output, print_lines
from ranktilt.errors import UserError, counted
from ranktilt.experiments.twins.options import Crossing
from ranktilt.option import Option

if TYPE_CHECKING:
    from ranktilt.experiments.twins.factors import Factor
    from ranktilt.experiments.twins.make import DesignedTwins, PromptPrice
    from ranktilt.llm.base import LLM


@dataclass(frozen=True)
class OptionalModel(ModelOptions):
    """The same, where rules may do without a model."""

    llm: Annotated[str | None, Option("Model: openai:NAME or transformers:FOLDER.", "MODEL")] = None  # type: ignore[assignment]


@dataclass(frozen=True)
class JudgeOptions(options.OptionGroup):
    """The model that grades versions which say something else."""

    panel = "Model"

    judge: Annotated[
        str | None,
        Option("Model that grades versions whose facts are changed: openai:NAME.", "MODEL"),
    ] = None
    judge_prompt: Annotated[
        str,
        Option(
            "Prompt of --judge: umbrela, basic, rubric, or a file with {query} and {passage}.",
            "NAME|FILE",
        ),
    ] = "umbrela"

    def client(self, model: ModelOptions, device: str | None) -> LLM | None:
        """The judge, asked as the model is."""
        if self.judge is None and self.changed():
            raise UserError("--judge-prompt needs a judge: --judge openai:MODEL")
        return None if self.judge is None else replace(model, llm=self.judge).client(device)


@options.verb(
    "twins DIR --factors length,words,facts --by-rule -o DIR-rule",
    "twins DIR --factors source,length,words,facts --design 8 --llm openai:MODEL -o DIR-twins --dry-run",
)
def twins(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="DIR", help="A collection: BEIR, Cocktail or the papers' layout."),
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
        Path | None,
        Option(
            "Read versions that there are already: origin, text, a column a factor.", panel="Input"
        ),
    ] = None,
    level: Annotated[
        list[str] | None,
        Option(
            "Low and high value of a column of --table, such as gender=M,F.",
            "NAME=LOW,HIGH",
            panel="Input",
        ),
    ] = None,
    split: options.Split = None,
    model: OptionalModel,
    judging: JudgeOptions,
    dry_run: DryRun = False,
    price: options.Price = None,
    compute: options.Compute,
    folder_out: Annotated[
        Path | None,
        Option(
            "Folder for the designed collection.",
            "DIR",
            short="-o",
            flag="--output",
            panel="Output",
        ),
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
        if crossing or by_rule or model.changed() or judging.changed():
            raise UserError(
                "--table has its versions already: only --factors, --level and a collection go with it"
            )
        return target.write(_from_table(table, folder, names, level or (), split))
    if level:
        raise UserError("--level needs versions: --table FILE")
    from ranktilt.datasets.stated_sources import ORIGINALS, with_named_side
    from ranktilt.experiments.twins.factors import read_factors
    from ranktilt.experiments.twins.make import price_twins
    from ranktilt.experiments.twins.make import twins as make_twins

    read, how = read_factors(names, by_rule=by_rule), Crossing(**crossing)
    client, judge = _client(model, read, compute.device), judging.client(model, compute.device)
    asked: dict[str, Any] = {"llm": client, "judge": judge, "judge_prompt": judging.judge_prompt}
    collection = with_named_side(options.load_texts(Path(str(folder)), split), how.of or ORIGINALS)
    if dry_run:
        if client is None and judge is None:
            raise UserError("nothing to price: every factor is made by rule")
        pace = model.requests_per_minute
        _show_prices(
            price_twins(collection, read, how, **asked, price=prices, requests_per_minute=pace),
            output.json,
        )
        return 0
    if client is not None:
        client.check()
    from ranktilt.generation.output_folder import one_writer

    with one_writer(str(folder_out)):
        made = make_twins(collection, read, how, **asked)
        note_side(collection, how.of or ORIGINALS)
        return target.write(made)


def _client(model: ModelOptions, factors: Sequence[Factor], device: str | None) -> LLM | None:
    """The model, where a factor needs one; refuses one that no factor would ask."""
    from ranktilt.experiments.twins.factors import require_model

    require_model(factors, model.llm is not None)
    return None if model.llm is None else model.client(device)


def _from_table(
    table: Path,
    folder: Path | None,
    factors: Sequence[str],
    levels: Sequence[str],
    split: str | None,
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
        if made.grades is not None:
            note_grades(made.grades)
        if made.unanswered:
            texts = counted(made.unanswered, "text", "texts")
            note(f"{texts} got no answer; the same command again asks only for these")
        if made.unanswered or (made.grades is not None and made.grades.unanswered):
            return INCOMPLETE
        note(
            f"Next: {shlex.join(['ranktilt', 'explain', str(saved.folder), '-r', 'bm25', '--by-factor'])}"
        )
        return 0


def _show_prices(rows: Sequence[PromptPrice], json: str | None) -> None:
    """Show what each prompt would cost, and all of them."""
    shown, content = list[tuple[str, str]](), dict[str, Any](factors=[])
    for row in rows:
        read, written = row.tokens
        about = {
            "prompt": row.prompt,
            "texts": row.texts,
            "tokens_in": read,
            "tokens_out": written,
            "price": row.price,
            "documents": row.estimate.to_dict(),
        }
        grades = row.estimate.noun == "pair"
        if grades:
            content["judge"] = about
        else:
            content["factors"].append({"factor": row.name, **about})
        cost = "" if row.price is None else f", price {row.price:,.2f}"
        texts = f"{row.texts:,} {'pairs' if grades else 'texts'}"
        shown.append((row.name, f"{texts}, {read:,} tokens in, {written:,} out{cost}"))
    prices = [row.price for row in rows if row.price is not None]
    shown.append(
        (
            "price",
            f"{sum(prices):,.2f}" if prices else "give one with --price IN,OUT per million tokens",
        )
    )
    write_summary({**content, "price": sum(prices) if prices else None}, json)
    if json != "-":
        print_lines(shown)
