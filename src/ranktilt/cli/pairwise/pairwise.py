"""``ranktilt pairwise``: which of two documents a language model chooses, in both orders."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from ranktilt.cli import options
from ranktilt.cli.app import QUESTION, SELDOM, STATISTICS, UNDERSTAND, points, verb
from ranktilt.cli.output import PageOutput, collection_files
from ranktilt.cli.pairwise.questions import Questions
from ranktilt.cli.pairwise.request import PairRequest
from ranktilt.cli.statistics_options import margin_of_shares, statistics_settings

PAIRS = 20
"""Pairs per query and kind, unless another number is given."""


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
            help="Column to group documents by (default: source).",
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
            validator=Number(lte=50),
            converter=points,
        ),
    ] = None,
    split: options.Split = None,
    preset: options.Preset = None,
    output: PageOutput = PageOutput(),
) -> None:
    """Show which group a language model prefers between two documents.

    It asks the model which document of a pair is more relevant, in both orders.
    """
    from ranktilt.auditing.pairwise.audit import pairwise as run_pairwise
    from ranktilt.auditing.pairwise.decision_file import read_decisions
    from ranktilt.auditing.pairwise.pairs import draw_pairs, two_groups
    from ranktilt.data.queries import read_query_ids

    questions.check()
    prices = options.read_price(questions.price, dry_run=questions.dry_run)
    output.check(
        *collection_files(folder),
        *questions.files,
        also={"--save-decisions": questions.save_decisions},
    )
    statistics = statistics_settings()
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
            seed=statistics.seed,
            candidates=questions.run(folder),
            queries=query_ids,
        )
        request = PairRequest(collection=collection, drawn=drawn, asker=asker)
        if questions.dry_run:
            request.show_estimate(prices)
            return
        decided = request.ask()
    result = run_pairwise(
        collection,
        decided,
        queries=query_ids,
        count_rule=count_rule,
        margin=margin_of_shares(margin),
        resamples=statistics.resamples,
        seed=statistics.seed,
        correction=statistics.correction,
    )
    output.deliver(result, {questions.save_decisions: decided.contents})
