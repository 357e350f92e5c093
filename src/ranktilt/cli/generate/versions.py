"""``ranktilt generate versions``: every document in versions that differ by design."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, MODEL, QUESTION, SELDOM, verb
from ranktilt.cli.generate import (
    INCOMPLETE,
    Attempts,
    Limit,
    Made,
    Side,
    check_request,
    generate,
    generation_notes,
    note_side,
    requests_per_minute,
    write_summary,
)
from ranktilt.cli.judge import note_grades
from ranktilt.cli.language_models import language_model
from ranktilt.cli.notes import note
from ranktilt.cli.output import Output, print_lines
from ranktilt.cli.settings import settings
from ranktilt.errors import UserError, counted
from ranktilt.generation.versions.options import Crossing

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.generation.versions.factors import Factor
    from ranktilt.generation.versions.make import DesignedVersions
    from ranktilt.generation.versions.prices import PromptPrice
    from ranktilt.judging.grading import Grades
    from ranktilt.judging.grading_settings import Grading
    from ranktilt.llm.base import LLM
    from ranktilt.llm.spec import ModelSpec


@verb(
    "versions",
    "generate versions DIR --factors length,words --by-rule -o DIR-rule",
    "generate versions DIR --factors source --llm openai:MODEL --dry-run",
    arguments="[DIR]",
    parent=generate,
)
def versions(
    folder: Annotated[
        Path | None,
        Parameter(name="DIR", help="A collection: BEIR, Cocktail or the papers' layout."),
    ] = None,
    /,
    *,
    factors: Annotated[
        str,
        Parameter(
            help="source, facts, words, gender, length, query-words, fluency, style; your own: "
            "MODULE:FUNCTION or a prompt file. With --table, its columns.",
            metavar="NAME,...",
            group=QUESTION,
        ),
    ],
    design: Annotated[
        Literal["8", "16", "32", "full"],
        Parameter(
            help="Runs of the design: all combinations (default), or a fraction of resolution IV "
            "or more.",
            group=QUESTION,
        ),
    ] = "full",
    cells: Annotated[
        int | None,
        Parameter(
            help="Draw K runs per document, each as often as the others (default: all).",
            metavar="K",
            group=QUESTION,
            validator=Number(gte=2),
        ),
    ] = None,
    by_rule: Annotated[
        bool, Parameter(help="Use rules only, and no language model.", group=QUESTION)
    ] = False,
    table: Annotated[
        Path | None,
        Parameter(
            help="Read versions that exist already: origin, text, a column a factor.",
            metavar="FILE",
            group=INPUT,
        ),
    ] = None,
    factor: Annotated[
        list[str] | None,
        Parameter(
            help="Low and high value of a column of --table, such as gender=M,F.",
            metavar="NAME=LOW,HIGH",
            group=INPUT,
        ),
    ] = None,
    source_to_rewrite: Side = None,
    limit: Limit = None,
    split: options.Split = None,
    llm: options.LanguageModel = None,
    batch: options.Batch = False,
    judge: Annotated[
        str | None,
        Parameter(
            help="Model that grades versions whose facts are changed, named as for --llm.",
            metavar="MODEL",
            group=MODEL,
        ),
    ] = None,
    judge_prompt: Annotated[
        str | None,
        Parameter(
            help="Prompt of --judge: umbrela (default), basic, rubric, or a file with {query} and "
            "{passage}.",
            metavar="NAME|FILE",
            group=MODEL,
        ),
    ] = None,
    dry_run: options.DryRun = False,
    price: options.Price = None,
    made_folder: Made = None,
    seed: Annotated[
        int,
        Parameter(
            help="Random seed of rules and drawn runs (default: 0).",
            metavar="N",
            group=SELDOM,
            validator=options.NOT_NEGATIVE,
        ),
    ] = 0,
    attempts: Attempts = 3,
    output: Output = Output(),
) -> int:
    """Write documents in versions that differ by design.

    Every version is a combination of factors, and what each factor did to the texts is checked.
    Exit 1 if answers are missing; the same command again asks only for these.
    """
    prices = options.read_price(price, dry_run=dry_run)
    source = table or folder
    if source is None:
        raise UserError("nothing to read: name a collection, or versions (--table FILE)")
    check_request(
        source,
        made_folder,
        output.json,
        kind="versions",
        dry_run=dry_run,
        source_type="folder" if table is None else "file",
    )
    names = [name.strip() for name in factors.split(",") if name.strip()]
    target = _Target(folder=made_folder, output=output)
    crossing = Crossing(
        design=design,
        cells=cells,
        seed=seed,
        of=source_to_rewrite,
        first=limit,
        attempts=attempts,
    )
    if table is not None:
        model_flag = options.first_typed(
            llm=llm, batch=batch, judge=judge, judge_prompt=judge_prompt
        )
        if crossing != Crossing() or by_rule or model_flag is not None:
            raise UserError(
                "--table has its versions already: only --factors, --factor and a collection go "
                "with it"
            )
        collection = None if folder is None else options.load_texts(folder, split)
        return target.write(_from_table(table, names, factor or (), collection))
    if factor:
        raise UserError("--factor needs versions: --table FILE")
    if judge is None and judge_prompt is not None:
        raise UserError("--judge-prompt needs a judge: --judge openai:MODEL")
    from ranktilt.data.stated_sources import ORIGINALS, with_named_side
    from ranktilt.generation.versions.factors import read_factors, require_model

    factors_read = read_factors(names, by_rule=by_rule)
    require_model(factors_read, has_model=llm is not None)
    writer = _Model.read(llm, batch=batch)
    grader = _Model.read(judge, batch=batch)
    if batch and writer is None and grader is None:
        raise UserError("--batch needs a model: --llm openai:MODEL, or --judge openai:MODEL")
    side = crossing.of or ORIGINALS
    request = _Request(
        collection=with_named_side(options.load_texts(Path(str(folder)), split), side),
        factors=factors_read,
        crossing=crossing if writer is None else crossing.with_sampling(writer.spec.sampling),
        llm=None if writer is None else writer.client,
        judge=None if grader is None else grader.client,
        grading=_grading(judge_prompt, grader),
    )
    if dry_run:
        request.show_prices(prices, output.json)
        return 0
    from ranktilt.generation.output_folder import one_writer

    with one_writer(str(made_folder)):
        designed, grades = request.make()
        note_side(request.collection, side)
        return target.write(designed, grades)


@dataclass(frozen=True, kw_only=True)
class _Model:
    """A language model, ready to be asked, and the text that names it."""

    spec: ModelSpec
    client: LLM

    @classmethod
    def read(cls, text: str | None, *, batch: bool) -> _Model | None:
        """Read a model's text; None where none is named."""
        if text is None:
            return None
        spec = language_model(text)
        device = settings().machine.device
        return cls(spec=spec, client=spec.connect(batch=batch, device=device))


def _grading(prompt: str | None, judge: _Model | None) -> Grading:
    """Return how the judge is asked."""
    from ranktilt.judging.grading_settings import Grading

    grading = Grading(prompt=prompt or Grading.prompt)
    return grading if judge is None else grading.with_sampling(judge.spec.sampling)


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
    grading: Grading

    def make(self) -> tuple[DesignedVersions, Grades | None]:
        """Write the versions, and let the judge grade those whose facts are changed."""
        from ranktilt.generation.versions.make import versions as make_versions
        from ranktilt.judging.changed_facts import grade_versions, require_gradable

        if self.judge is not None:
            # Refused before a model is paid for: what no judge could grade.
            names = [factor.name for factor in self.factors]
            require_gradable(names, self.collection.qrels, self.grading)
            self.judge.check()
        if self.llm is not None:
            self.llm.check()
        designed = make_versions(self.collection, self.factors, self.crossing, llm=self.llm)
        if self.judge is None:
            return designed, None
        graded = grade_versions(designed, self.judge, self.grading)
        return graded.versions, graded.grades

    def show_prices(self, price: tuple[float, float] | None, json: str | None) -> None:
        """Show what each prompt would cost, and all of them."""
        from ranktilt.generation.versions.prices import price_versions
        from ranktilt.judging.changed_facts import price_grades

        if self.llm is None and self.judge is None:
            raise UserError("nothing to price: every factor is made by rule")
        work = (self.collection, self.factors, self.crossing)
        prompts: list[PromptPrice] = []
        if self.llm is not None:
            pace = requests_per_minute(self.llm)
            prompts = price_versions(*work, self.llm, price=price, requests_per_minute=pace)
        grades = None
        if self.judge is not None:
            pace = requests_per_minute(self.judge)
            grades = price_grades(
                *work, self.judge, self.grading, price=price, requests_per_minute=pace
            )
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
    output: Output

    def write(self, designed: DesignedVersions, grades: Grades | None = None) -> int:
        """Write the collection, print what its factors did, and say what comes next."""
        from ranktilt.generation.versions.save import save_versions

        saved = save_versions(designed, str(self.folder))
        self.output.deliver(designed.checks)
        if designed.summaries:
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
