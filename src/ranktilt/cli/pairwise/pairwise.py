"""``ranktilt pairwise``: which of two documents a language model chooses, in both orders."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, MODEL, OUTPUT, QUESTION, SELDOM, STATISTICS, UNDERSTAND, verb
from ranktilt.cli.language_models import language_model_text
from ranktilt.cli.notes import note
from ranktilt.cli.output import PageOutput, collection_files, print_lines
from ranktilt.cli.rankers import read_rankers
from ranktilt.cli.settings import settings
from ranktilt.cli.statistics_options import sampling_of_tests
from ranktilt.errors import UserError, counted

if TYPE_CHECKING:
    from ranktilt.data.run import Run
    from ranktilt.rankers.llm.pairwise import Pairwise

PROMPT = "pairwise-neutral"
PAIRS = 20


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Questions:
    """Who is asked about which pairs, and how."""

    llm: options.LanguageModel = None
    prompt: Annotated[
        str | None,
        Parameter(
            help="pairwise-neutral, pairwise-sensitive, choice, or a file (default: the first).",
            metavar="NAME|FILE",
            group=MODEL,
        ),
    ] = None
    attribute: Annotated[
        str | None,
        Parameter(
            help="Text for {attribute} in the prompt, such as female.", metavar="TEXT", group=MODEL
        ),
    ] = None
    text: options.Text = None
    max_failures: options.MaxFailures = None
    dry_run: options.DryRun = False
    price: options.Price = None
    pairs: Annotated[
        int | None,
        Parameter(
            help="Pairs per query and kind (default: 20).",
            metavar="N",
            group=INPUT,
            validator=options.AT_LEAST_ONE,
            converter=options.whole_number,
        ),
    ] = None
    queries: Annotated[
        Path | None,
        Parameter(
            help="File of query ids to ask about, such as ADAPTER/held-out.txt (default: all).",
            metavar="FILE",
            group=INPUT,
        ),
    ] = None
    candidates: Annotated[
        Path | None,
        Parameter(
            help="Run whose documents are paired (default: DIR/candidates.trec, or all documents).",
            metavar="RUN",
            group=INPUT,
        ),
    ] = None
    score_order: options.ScoreOrder = None
    decisions: Annotated[
        Path | None,
        Parameter(
            help="Stored choices (JSON lines), instead of asking a model.",
            metavar="FILE",
            group=INPUT,
        ),
    ] = None
    save_decisions: Annotated[
        Path | None,
        Parameter(help="Save all choices as JSON lines.", metavar="FILE", group=OUTPUT),
    ] = None

    def check(self) -> None:
        """Refuse options that do not go together."""
        if (self.llm is None) == (self.decisions is None):
            raise UserError(
                "name either a model (--llm openai:MODEL) or stored choices (--decisions FILE)"
            )
        asking = options.first_typed(
            pairs=self.pairs,
            prompt=self.prompt,
            attribute=self.attribute,
            text=self.text,
            candidates=self.candidates,
            score_order=self.score_order,
            save_decisions=self.save_decisions,
            dry_run=self.dry_run,
            price=self.price,
        )
        if self.decisions is not None and asking is not None:
            raise UserError(f"{asking} asks a model; omit it with --decisions")
        if self.prompt == "pairwise-sensitive" and not self.attribute:
            raise UserError(
                "--prompt pairwise-sensitive needs an attribute, such as --attribute female"
            )

    def asker(self, preset: str | None) -> Pairwise | None:
        """Return the ranker that asks; None where choices are stored."""
        from ranktilt.presets import preset as preset_named
        from ranktilt.rankers.llm.pairwise import Pairwise

        if self.llm is None:
            return None
        usual = preset_named(preset).options.get("pairwise", {}) if preset else {}
        ranker = read_rankers(
            [f"pairwise:{language_model_text(self.llm)}"],
            preset,
            prompt=self.prompt or usual.get("prompt", PROMPT),
            attribute=self.attribute,
            text=self.text,
            max_failures=self.max_failures,
        )[0]
        if not isinstance(ranker, Pairwise) or ranker.k is not None:
            raise UserError(f"--llm expects one model, such as openai:MODEL, got {self.llm!r}")
        if not self.dry_run:
            ranker.check()
        return ranker

    def run(self, folder: Path) -> Run | None:
        """Return the run whose documents are paired; None for all documents."""
        from ranktilt.data.builders import CANDIDATES
        from ranktilt.data.run import Run

        file = self.candidates
        if file is None and self.decisions is None and (folder / CANDIDATES).is_file():
            file = folder / CANDIDATES
        return None if file is None else Run.load(file, score_order=self.score_order)


@verb(
    "pairwise",
    "pairwise DIR --llm openai:MODEL --save-decisions choices.jsonl",
    "pairwise DIR --decisions choices.jsonl --by group --protected female",
    arguments="DIR",
    panel=UNDERSTAND,
)
def pairwise(
    folder: options.Folder,
    /,
    *,
    questions: Questions = Questions(),
    by: Annotated[
        str,
        Parameter(
            help="Column that groups documents (default: source).",
            metavar="COLUMN",
            group=QUESTION,
        ),
    ] = "source",
    protected: options.Protected = None,
    count_rule: Annotated[
        Literal["both-agree", "each"],
        Parameter(
            help="Count pairs on which both orders agree (default), or each answer.", group=SELDOM
        ),
    ] = "both-agree",
    margin: Annotated[
        float | None,
        Parameter(
            help="Shares within this many points of 50 % count as level (default: 5).",
            metavar="X",
            group=STATISTICS,
            validator=Number(gte=0, lte=50),
        ),
    ] = None,
    split: options.Split = None,
    preset: options.Preset = None,
    output: PageOutput = PageOutput(),
) -> None:
    """Ask a language model which of two documents is more relevant.

    Each pair is asked about in both orders; the answer says which group the model favours.
    """
    from ranktilt.auditing.pairwise.choices import ask_pairs, read_decisions
    from ranktilt.auditing.pairwise.choices import pairwise as run_pairwise
    from ranktilt.auditing.pairwise.pairs import draw_pairs, two_groups
    from ranktilt.data.queries import read_query_ids
    from ranktilt.llm.estimate import Rehearsal

    questions.check()
    prices = options.read_price(questions.price, dry_run=questions.dry_run)
    files = (questions.decisions, questions.candidates, questions.queries)
    input_files = [file for file in files if file is not None]
    output.check(
        *collection_files(folder),
        *input_files,
        also={"--save-decisions": questions.save_decisions},
    )
    asker = questions.asker(preset)
    collection = options.load_texts(folder, split)
    sides = two_groups(collection, by, protected)
    query_ids = None if questions.queries is None else read_query_ids(questions.queries, collection)
    if asker is None:
        decided = read_decisions(str(questions.decisions), collection, sides)
    else:
        drawn = draw_pairs(
            collection,
            sides,
            pairs=questions.pairs or PAIRS,
            seed=settings().configuration.statistics.seed,
            candidates=questions.run(folder),
            queries=query_ids,
        )
        if questions.dry_run:
            rehearsal = Rehearsal(asker.model())
            ask_pairs(collection, drawn, asker, asker=rehearsal)
            print_lines(rehearsal.lines(prices))
            return
        pairs = counted(drawn.frame.height, "pair", "pairs")
        queries = counted(drawn.frame["query"].n_unique(), "query", "queries")
        note(f"{pairs} of {queries}: {2 * drawn.frame.height:,} prompts")
        decided = ask_pairs(collection, drawn, asker)
    result = run_pairwise(
        collection,
        decided,
        queries=query_ids,
        count_rule=count_rule,
        margin=_margin(margin),
        **sampling_of_tests(),
    )
    output.deliver(result, {questions.save_decisions: decided.contents})


def _margin(typed: float | None) -> float:
    """Return the points within which a share counts as level: --margin, or [statistics]."""
    from ranktilt.measures.margin import DEFAULT_MARGIN, read_margin

    if typed is not None:
        return typed
    margin = settings().configuration.statistics.margin
    points = DEFAULT_MARGIN if margin is None else read_margin(margin, "[statistics] margin")
    # A margin in ranks says nothing about shares.
    return DEFAULT_MARGIN if isinstance(points, str) else points
