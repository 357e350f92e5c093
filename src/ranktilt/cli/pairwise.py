"""``ranktilt pairwise``: which of two documents a language model chooses, in both orders."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from ranktilt.cli import options
from ranktilt.cli.notes import note
from ranktilt.cli.output import PageOutput, collection_files, print_lines
from ranktilt.errors import UserError, counted
from ranktilt.option import Option

if TYPE_CHECKING:
    from ranktilt.rankers.llm.pairwise import Pairwise
    from ranktilt.run import Run

PROMPT = "pairwise-neutral"
PAIRS = 20


@dataclass(frozen=True)
class Questions(options.OptionGroup):
    """Who is asked about which pairs, and how."""

    panel = "Input"

    llm: Annotated[
        str | None,
        Option(
            'Model to ask: openai:NAME or transformers:FOLDER, such as "openai:m(requests_per_minute=60)".',
            "MODEL",
            panel="Model",
        ),
    ] = None
    pairs: Annotated[int | None, Option("Pairs per query and kind (default: 20).", "N", min=1)] = (
        None
    )
    prompt: Annotated[
        str | None,
        Option(
            "pairwise-neutral, pairwise-sensitive, choice, or a file (default: the first).",
            "NAME|FILE",
            panel="Model",
        ),
    ] = None
    attribute: Annotated[
        str | None,
        Option("Text for {attribute} in the prompt, such as female.", "X", panel="Model"),
    ] = None
    candidates: Annotated[
        Path | None,
        Option(
            "Run whose documents are paired (default: DIR/candidates.trec, or all documents).",
            "RUN",
        ),
    ] = None
    score_order: options.ScoreOrder = None
    queries: Annotated[
        Path | None,
        Option(
            "File of query ids to ask about, such as ADAPTER/held-out.txt (default: all).", "FILE"
        ),
    ] = None
    decisions: Annotated[
        Path | None, Option("Stored choices (JSON lines), instead of asking a model.", "FILE")
    ] = None
    save_decisions: Annotated[
        Path | None, Option("Save all choices as JSON lines.", "FILE", panel="Output")
    ] = None
    dry_run: options.DryRun = False
    price: options.Price = None

    def check(self) -> None:
        """Refuse options that do not go together."""
        if (self.llm is None) == (self.decisions is None):
            raise UserError(
                "name either a model (--llm openai:MODEL) or stored choices (--decisions FILE)"
            )
        strange = next(
            (option for option in self.changed() if option not in ("--decisions", "--queries")),
            None,
        )
        if self.decisions is not None and strange is not None:
            raise UserError(f"{strange} asks a model; omit it with --decisions")
        if self.prompt == "pairwise-sensitive" and not self.attribute:
            raise UserError(
                "--prompt pairwise-sensitive needs an attribute, such as --attribute female"
            )

    def asker(
        self, neural: options.RankerOptions, preset: str | None, max_failures: float | None
    ) -> Pairwise | None:
        """The ranker that asks; None where choices are stored."""
        from ranktilt.presets import preset as preset_named
        from ranktilt.rankers.llm.pairwise import Pairwise

        if self.llm is None:
            return None
        usual = preset_named(preset).options.get("pairwise", {}) if preset else {}
        how = {
            "prompt": self.prompt or usual.get("prompt", PROMPT),
            "attribute": self.attribute,
            "max_failures": max_failures,
        }
        found = neural.rankers([f"pairwise:{self.llm}"], preset, **how)[0]
        if not isinstance(found, Pairwise) or found.k is not None:
            raise UserError(f"--llm expects one model, such as openai:MODEL, got {self.llm!r}")
        if not self.dry_run:
            found.check()
        return found

    def run(self, folder: Path) -> Run | None:
        """The candidates, where there are any."""
        from ranktilt.datasets.builders import CANDIDATES
        from ranktilt.run import Run

        beside = folder / CANDIDATES
        chosen = self.candidates or (
            beside if self.decisions is None and beside.is_file() else None
        )
        return None if chosen is None else Run.load(chosen, score_order=self.score_order)


@options.verb(
    "pairwise DIR --llm openai:MODEL --save-decisions choices.jsonl",
    "pairwise DIR --decisions choices.jsonl --by group --protected female",
)
def pairwise(
    folder: options.Folder,
    *,
    questions: Questions,
    by: Annotated[str, Option("Column that groups documents.", "COLUMN")] = "source",
    protected: options.Protected = None,
    count_rule: Annotated[
        Literal["both-agree", "each"],
        Option("Count pairs on which both orders agree, or each answer."),
    ] = "both-agree",
    correction: options.Correction = "holm",
    level_margin: Annotated[
        float,
        Option(
            "Shares within this many points of 50 % count as level.",
            "X",
            min=0,
            max=50,
            panel="Statistics",
        ),
    ] = 5.0,
    resamples: options.Resamples = 10_000,
    seed: options.Seed = 0,
    split: options.Split = None,
    max_failures: options.MaxFailures = None,
    preset: options.Preset = None,
    neural: options.RankerOptions,
    output: PageOutput,
) -> None:
    """Ask a language model which of two documents is more relevant, in both orders, and say which group it favours."""
    from ranktilt.auditing.pairwise.choices import ask_pairs, read_decisions
    from ranktilt.auditing.pairwise.choices import pairwise as run_pairwise
    from ranktilt.auditing.pairwise.pairs import draw_pairs, two_groups
    from ranktilt.datasets.queries import read_query_ids
    from ranktilt.llm.estimate import Rehearsal

    questions.check()
    prices = options.read_price(questions.price, dry_run=questions.dry_run)
    files = (questions.decisions, questions.candidates, questions.queries)
    read = [file for file in files if file is not None]
    output.check(
        *collection_files(folder), *read, also={"--save-decisions": questions.save_decisions}
    )
    asker = questions.asker(neural, preset, max_failures)
    collection = options.load_texts(folder, split)
    sides = two_groups(collection, by, protected)
    asked = None if questions.queries is None else read_query_ids(questions.queries, collection)
    if asker is None:
        decided = read_decisions(str(questions.decisions), collection, sides)
    else:
        number, run = questions.pairs or PAIRS, questions.run(folder)
        drawn = draw_pairs(
            collection, sides, pairs=number, seed=seed, candidates=run, queries=asked
        )
        if questions.dry_run:
            rehearsal = Rehearsal(asker.model())
            ask_pairs(collection, drawn, asker, asker=rehearsal)
            print_lines(rehearsal.lines(prices))
            return
        queries = counted(drawn.frame["query"].n_unique(), "query", "queries")
        note(
            f"{counted(drawn.frame.height, 'pair', 'pairs')} of {queries}: {2 * drawn.frame.height:,} prompts"
        )
        decided = ask_pairs(collection, drawn, asker)
    found = run_pairwise(
        collection,
        decided,
        queries=asked,
        count_rule=count_rule,
        level=level_margin,
        correction=correction,
        resamples=resamples,
        seed=seed,
    )
    output.deliver(found, {questions.save_decisions: decided.contents})
