"""``ranktilt cite``: whom an engine's answers cite, of what was consulted and retrieved."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ranktilt.cli.app import UNDERSTAND, verb
from ranktilt.cli.cite.answer_options import AnswerOptions
from ranktilt.cli.cite.inputs import AnswerFileOptions, effects_on_answers, labels_of_pages
from ranktilt.cli.cite.question import CitationQuestion
from ranktilt.cli.cite.session import SessionAudit
from ranktilt.cli.label_options import LabelOptions
from ranktilt.cli.output import PageOutput, collection_files, with_sidecars


@verb(
    "cite",
    "cite answers.jsonl --groups pages.csv:id=url,source=kind",
    "cite answers.jsonl --run search.csv:id=url --groups pages.csv:id=url,source=kind -o cite.html",
    "cite DIR --llm openai:MODEL --run bm25.trec --context 10 --repeats 3 --dry-run",
    arguments="ANSWERS|DIR",
    panel=UNDERSTAND,
)
def cite(
    answers: Annotated[
        Path,
        Parameter(
            name="ANSWERS",
            help="Answers with citations: JSON lines with the fields query and cited (consulted or "
            "not_cited too, if known), or a file or folder of responses (SerpAPI, OpenAI, "
            "Perplexity, Gemini, Anthropic, TREC RAG, texts with [1] and sources). With "
            "--llm: a collection, whose documents a model answers from.",
        ),
    ],
    /,
    *,
    labels: LabelOptions = LabelOptions(),
    model: AnswerOptions = AnswerOptions(),
    inputs: AnswerFileOptions = AnswerFileOptions(),
    question: CitationQuestion = CitationQuestion(),
    output: PageOutput = PageOutput(),
) -> int:
    """Show whom answers cite: of what they consulted, of what was retrieved, and of all cited.

    A page cited twice in an answer counts once, and every query counts alike, however often it was
    asked. Where all pages of a domain have one label, domains are the sample: below ten of them on
    a side the kind of pages stays open, and what holds for these domains is said.

    Of versions by design (ranktilt generate versions), --by-factor shows what each factor does to
    being cited, and cited first.

    With --llm, a model first answers each query from the documents of --run. Exit 1 if some
    requests got no answer; run the command again to ask only for these.
    """
    model.check()
    files = inputs.files(labels)
    if model.llm is not None:
        inputs.refuse_options_of_answers()
        answer_files = with_sidecars({"--save-answers": model.save_answers})
        output.check(*files, *collection_files(answers), also=answer_files)
        session = SessionAudit(
            folder=answers, model=model, labels=labels, run=inputs.run, question=question
        )
        return session.execute(output.deliver)
    output.check(answers, *files)
    if model.by_factor:
        question.check_by_factor(labels.reference, run=inputs.run)
        output.deliver(effects_on_answers(answers, labels))
        return 0
    page_labels = labels_of_pages(labels, question.by)
    audit = question.audit_answers(
        inputs.read_answers(answers), page_labels, run=inputs.run, reference=labels.reference
    )
    output.deliver(audit)
    return 0
