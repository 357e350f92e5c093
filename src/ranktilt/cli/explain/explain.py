"""``ranktilt explain``: how the texts of both sides differ, and what goes with a ranker's gap.

A *gap* is how differently a ranker or a run treats the two sides: twins, which are versions of one
text, or groups of documents without twins.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ranktilt.cli.app import UNDERSTAND, verb
from ranktilt.cli.audit.from_audit import is_citation_audit
from ranktilt.cli.explain.citations import explain_audit_of_citations
from ranktilt.cli.explain.inputs import ExplainInputs
from ranktilt.cli.explain.question import ExplainQuestion
from ranktilt.cli.output import PageOutput
from ranktilt.cli.rankers import rank_with
from ranktilt.errors import UserError


@verb(
    "explain",
    "explain DIR -o texts.html",
    "explain DIR --attribution -r bm25 -r dense:minilm",
    "explain --groups labels.csv --run run.trec",
    arguments="[DIR]",
    panel=UNDERSTAND,
)
def explain(
    folder: Annotated[
        Path | None,
        Parameter(
            name="DIR",
            help="A collection in the layout of BEIR, Cocktail or the papers, or an audit to "
            "explain (FILE.json). Not needed with --run and --groups.",
        ),
    ] = None,
    /,
    *,
    inputs: ExplainInputs = ExplainInputs(),
    question: ExplainQuestion = ExplainQuestion(),
    output: PageOutput = PageOutput(),
) -> None:
    """Show how the two sides' texts differ, and what goes with the gap.

    Probes examine the texts. --attribution shows which of their properties go with the gap of a
    ranker (-r) or a run (--run), within the lists: between twins, or between groups if there are
    none.

    For a collection of designed versions, --by-factor shows what each factor causes.

    For an audit of citations (ranktilt cite --json), it shows which properties of pages go with
    the gap between their citation rates: columns of numbers, the search rank, and texts (a column
    text) of the label file.
    """
    inputs = replace(inputs, folder=folder)
    if folder is not None and folder.is_file() and is_citation_audit(folder):
        explain_audit_of_citations(folder, inputs, question, output)
        return
    output.check(*inputs.files)
    if question.is_about_factors:
        question.check_factors(inputs)
        output.deliver(question.explain_factors(inputs))
        return
    question.check_gaps(inputs)
    runs = inputs.load_runs()
    rankers = inputs.read_rankers()
    encoder = inputs.read_encoder()
    collection = inputs.load_documents(question.by, runs)
    from ranktilt.explaining.properties.gaps import are_mostly_twins
    from ranktilt.explaining.properties.values import NoPropertiesError

    if not (rankers or runs) or are_mostly_twins(collection, question.by):
        explanation = question.explain_twins(
            collection, [*rankers, *runs], encoder=encoder, reference=inputs.reference
        )
        output.deliver(explanation)
        return
    if encoder is not None:
        raise UserError("--encoder compares the vectors of twins, but these groups have no twins")
    all_runs = [*rank_with(rankers, collection), *runs]
    try:
        output.deliver(question.explain_groups(collection, all_runs, inputs))
    except NoPropertiesError as error:
        if folder is not None:
            raise
        command = shlex.join(inputs.words_with_texts(question.by))
        raise UserError(f"{error}; or name a folder DIR with the texts: {command}") from error
