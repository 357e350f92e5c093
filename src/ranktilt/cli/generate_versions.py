"""``ranktilt generate versions``: every document in versions that differ by design."""

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
from ranktilt.generation.versions.options import Crossing
from ranktilt.option import Option

if TYPE_CHECKING:
    from ranktilt.collection import Collection
    from ranktilt.generation.versions.factors import Factor
    from ranktilt.generation.versions.make import DesignedVersions
    from ranktilt.generation.versions.prices import PromptPrice
    from ranktilt.judging.grading import Grades
    from ranktilt.llm.base import LLM


_LLM = Option("Model: openai:NAME or transformers:FOLDER.", "MODEL")


@dataclass(frozen=True)
class OptionalModel(ModelOptions):
    """The same, where rules may do without a model."""

    llm: Annotated[str | None, _LLM] = None  # type: ignore[assignment]


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
        """Return the judge, which is asked as the model is."""
        if self.judge is None and self.changed():
            raise UserError("--judge-prompt needs a judge: --judge openai:MODEL")
        return None if self.judge is None else replace(model, llm=self.judge).client(device)


@options.verb(
    "generate versions DIR --factors length,words,facts --by-rule -o DIR-rule",
    "generate versions DIR --factors source,length,words,facts --design 8 --llm openai:MODEL -o "
    "DIR-designed --dry-run",
)
def versions(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="DIR", help="A collection: BEIR, Cocktail or the papers' layout."),
    ] = None,
    *,
    factors: Annotated[
        str,
        Option(
            "source, facts, words, gender, length, query-words, fluency, style; your own: "
            "MODULE:FUNCTION or a prompt "
            "file. With --table, its columns.",
            "NAME,...",
        ),
    ],
    crossing: Annotated[dict[str, Any], options.FieldsOf(Crossing, panel="Question")],
    by_rule: Annotated[bool, Option("Use rules only, and no language model.")] = False,
    table: Annotated[
        Path | None,
        Option("Read versions that exist already: origin, text, a column a factor.", panel="Input"),
    ] = None,
    factor: Annotated[
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
    """Write documents in combinations of factors, and check what each factor did.

    Exit 1 if answers are missing.
    """
    prices = options.read_price(price, dry_run=dry_run)
    source = table or folder
    if source is None:
        raise UserError("nothing to read: name a collection, or versions (--table FILE)")
    check_request(source, folder_out, output.json, kind="versions", dry_run=dry_run)
    names = [name.strip() for name in factors.split(",") if name.strip()]
    target = _Target(folder=folder_out, rows_per_file=rows_per_file, output=output)
    if table is not None:
        if crossing or by_rule or model.changed() or judging.changed():
            raise UserError(
                "--table has its versions already: only --factors, --factor and a collection go "
                "with it"
            )
        collection = None if folder is None else options.load_texts(folder, split)
        return target.write(_from_table(table, names, factor or (), collection))
    if factor:
        raise UserError("--factor needs versions: --table FILE")
    from ranktilt.datasets.stated_sources import ORIGINALS, with_named_side
    from ranktilt.generation.versions.factors import read_factors, require_model

    read = read_factors(names, by_rule=by_rule)
    require_model(read, has_model=model.llm is not None)
    settings = Crossing(**crossing)
    side = settings.of or ORIGINALS
    request = _Request(
        collection=with_named_side(options.load_texts(Path(str(folder)), split), side),
        factors=read,
        crossing=settings,
        llm=None if model.llm is None else model.client(compute.device),
        judge=judging.client(model, compute.device),
        judge_prompt=judging.judge_prompt,
    )
    if dry_run:
        request.show_prices(prices, model.requests_per_minute, output.json)
        return 0
    from ranktilt.generation.output_folder import one_writer

    with one_writer(str(folder_out)):
        designed, grades = request.make()
        note_side(request.collection, side)
        return target.write(designed, grades)


def _from_table(
    table: Path, factors: Sequence[str], levels: Sequence[str], collection: Collection | None
) -> DesignedVersions:
    from ranktilt.generation.versions.table import versions_from_table

    low_high: dict[str, tuple[str, str]] = {}
    for text in levels:
        name, _, values = text.partition("=")
        low, _, high = values.partition(",")
        if not (name.strip() and low.strip() and high.strip()):
            raise UserError(
                "--factor expects a column with its low and its high value, such as gender=M,F; "
                f"got {text!r}"
            )
        low_high[name.strip()] = (low.strip(), high.strip())
    return versions_from_table(table, factors, low_high, collection=collection)


@dataclass(frozen=True, kw_only=True)
class _Request:
    """What is to be written, and which models are asked."""

    collection: Collection
    factors: Sequence[Factor]
    crossing: Crossing
    llm: LLM | None
    judge: LLM | None
    judge_prompt: str

    def make(self) -> tuple[DesignedVersions, Grades | None]:
        """Write the versions, and let the judge grade those whose facts are changed."""
        from ranktilt.generation.versions.make import versions as make_versions
        from ranktilt.judging.changed_facts import grade_versions, grading_settings

        if self.judge is not None:
            # Refused before a model is paid for: what no judge could grade.
            names = [factor.name for factor in self.factors]
            grading_settings(names, self.collection.qrels, self.judge_prompt, seed=0)
            self.judge.check()
        if self.llm is not None:
            self.llm.check()
        designed = make_versions(self.collection, self.factors, self.crossing, llm=self.llm)
        if self.judge is None:
            return designed, None
        graded = grade_versions(designed, self.judge, prompt=self.judge_prompt)
        return graded.versions, graded.grades

    def show_prices(
        self,
        price: tuple[float, float] | None,
        requests_per_minute: int | None,
        json: str | None,
    ) -> None:
        """Show what each prompt would cost, and all of them."""
        from ranktilt.generation.versions.prices import price_versions
        from ranktilt.judging.changed_facts import price_grades

        if self.llm is None and self.judge is None:
            raise UserError("nothing to price: every factor is made by rule")
        pace: dict[str, Any] = {"price": price, "requests_per_minute": requests_per_minute}
        work = (self.collection, self.factors, self.crossing)
        prompts = [] if self.llm is None else price_versions(*work, self.llm, **pace)
        grades = None
        if self.judge is not None:
            grades = price_grades(*work, self.judge, prompt=self.judge_prompt, **pace)
        rows = prompts if grades is None else [*prompts, grades]
        prices = [row.price for row in rows if row.price is not None]
        total = sum(prices) if prices else None
        content: dict[str, Any] = {
            "factors": [{"factor": row.name, **_price_content(row)} for row in prompts],
            "price": total,
        }
        if grades is not None:
            content["judge"] = _price_content(grades)
        write_summary(content, json)
        if json != "-":
            hint = "give one with --price IN,OUT per million tokens"
            last = ("price", hint if total is None else f"{total:,.2f}")
            print_lines([*(_price_line(row) for row in rows), last])


def _price_content(row: PromptPrice) -> dict[str, Any]:
    return {
        "prompt": row.prompt,
        "texts": row.texts,
        "tokens_in": row.tokens_in,
        "tokens_out": row.tokens_out,
        "price": row.price,
        "documents": row.estimate.to_dict(),
    }


def _price_line(row: PromptPrice) -> tuple[str, str]:
    unit = "pairs" if row.estimate.noun == "pair" else "texts"
    tokens = f"{row.tokens_in:,} tokens in, {row.tokens_out:,} out"
    price = "" if row.price is None else f", price {row.price:,.2f}"
    return row.name, f"{row.texts:,} {unit}, {tokens}{price}"


@dataclass(frozen=True, kw_only=True)
class _Target:
    """Where a designed collection goes, and how its checks are shown."""

    folder: Path | None
    rows_per_file: int | None
    output: Output

    def write(self, designed: DesignedVersions, grades: Grades | None = None) -> int:
        """Write the collection, print what its factors did, and say what comes next."""
        from ranktilt.generation.versions.save import save_versions

        saved = save_versions(designed, str(self.folder), rows_per_file=self.rows_per_file)
        self.output.deliver(designed.checks)
        if designed.made:
            for line in generation_notes(designed, saved, "rewritten"):
                note(line)
        else:
            note(f"{saved.folder}: {designed.collection!r}")
        if grades is not None:
            note_grades(grades)
        if designed.unanswered:
            texts = counted(designed.unanswered, "text", "texts")
            note(f"{texts} got no answer; the same command again asks only for these")
        if designed.unanswered or (grades is not None and grades.unanswered):
            return INCOMPLETE
        command = ["ranktilt", "explain", str(saved.folder), "-r", "bm25", "--by-factor"]
        note(f"Next: {shlex.join(command)}")
        return 0
