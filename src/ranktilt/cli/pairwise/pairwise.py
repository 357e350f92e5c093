"""``ranktilt pairwise``: which of two documents a language model chooses, in both orders.

A *choice* is the document of a pair that the model calls more relevant. A pair has a document of
either side: the protected group, and all other groups.
"""

from __future__ import annotations

from ranktilt.cli import options
from ranktilt.cli.app import UNDERSTAND, verb
from ranktilt.cli.output import PageOutput, collection_files
from ranktilt.cli.pairwise.choices import ChoiceOptions
from ranktilt.cli.pairwise.question import PairwiseQuestion
from ranktilt.cli.pairwise.request import PairRequest


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
    choices: ChoiceOptions = ChoiceOptions(),
    question: PairwiseQuestion = PairwiseQuestion(),
    split: options.Split = None,
    preset: options.Preset = None,
    output: PageOutput = PageOutput(),
) -> None:
    """Show which group a language model prefers between two documents.

    It asks the model which document of a pair is more relevant, in both orders.
    """
    from ranktilt.auditing.pairwise.decision_file import read_decisions
    from ranktilt.auditing.pairwise.pairs import two_groups

    choices.check()
    prices = options.read_price(choices.price, dry_run=choices.dry_run)
    output.check(
        *collection_files(folder),
        *choices.files,
        also={"--save-decisions": choices.save_decisions},
    )
    ranker = choices.ranker(preset)
    collection = options.load_texts(folder, split)
    sides = two_groups(collection, question.by, question.protected)
    query_ids = choices.read_query_ids(collection)
    if ranker is None:
        decisions = read_decisions(str(choices.decisions), collection, sides)
    else:
        drawn = choices.draw_pairs(folder, collection, sides, query_ids)
        request = PairRequest(collection=collection, drawn=drawn, ranker=ranker)
        if choices.dry_run:
            request.show_estimate(prices)
            return
        decisions = request.ask()
    result = question.audit(collection, decisions, query_ids)
    output.deliver(result, {choices.save_decisions: decisions.contents})
