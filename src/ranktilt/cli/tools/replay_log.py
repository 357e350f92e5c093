"""``ranktilt tools replay-log``: what an LLM ranker's stored answers say.

A *log* holds the answers of a language model that was asked to order passages. Its *parser* is the
code that made a ranking of each answer, the *published run*.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ranktilt.cli.app import verb
from ranktilt.cli.label_options import LabelOptions
from ranktilt.cli.output import PageOutput
from ranktilt.cli.statistics_options import statistics_settings
from ranktilt.cli.tools.group import tools
from ranktilt.cli.tools.replay_inputs import ReplayInputs
from ranktilt.cli.tools.replay_question import ReplayQuestion
from ranktilt.cli.tools.replay_saving import ReplaySaving

FAILED = 1
"""Exit status where more answers failed than allowed."""


@verb(
    "replay-log",
    "tools replay-log calls.json --candidates bm25.trec --collection DIR",
    "tools replay-log calls.json --candidates requests.json --groups labels.csv",
    arguments="LOG",
    parent=tools,
)
def replay_log(
    log: Annotated[
        Path,
        Parameter(
            name="LOG", help="Stored calls: rank_llm's JSON, or lines of query, ids and answer."
        ),
    ],
    /,
    *,
    inputs: ReplayInputs,
    labels: LabelOptions = LabelOptions(),
    question: ReplayQuestion = ReplayQuestion(),
    saving: ReplaySaving = ReplaySaving(),
    output: PageOutput = PageOutput(),
) -> int:
    """Separate what an LLM ranker ranked from what its parser did.

    Each stored answer gets a type. The published run is made again as RankGPT and rank_llm read
    answers, and split into the input order, the model's part and the parser's part. You need no
    model.
    """
    from ranktilt.auditing.replay_log.runs import log_runs

    output.check(log, *inputs.files(labels), also=saving.files)
    question.check()
    inputs.check()
    collection, candidates = inputs.load()
    collection = labels.labelled(collection, question.by or "source")
    pairs = question.pairs_to_compare(collection, labels)
    replayed = log_runs(log, candidates, collection, seed=statistics_settings().seed)
    result = question.split_effects(replayed, collection, pairs)
    output.deliver(result, saving.contents(replayed))
    return 0 if result.passed else FAILED
