"""``ranktilt cite``: whom an engine's answers cite, of what was consulted and retrieved.

An *engine* answers a query in text, from pages that it *retrieved* and *consulted*, and *cites*
some of them. A *page* is a web page, or a document of a collection. *Labels* say which group each
page is in. Answers are read from a file, or a model writes them first (`session`, ``--llm``).

Where documents were written in *versions by design*, each version is a combination of *factors*,
properties such as length with a low and a high level (``--by-factor``).
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, SELDOM, UNDERSTAND, verb
from ranktilt.cli.cite.question import CitationQuestion
from ranktilt.cli.cite.session import AnswerOptions, SessionAudit
from ranktilt.cli.label_options import LabelOptions
from ranktilt.cli.output import PageOutput, collection_files, with_sidecars
from ranktilt.data.formats.notation import file_of
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.data.answers import Answers
    from ranktilt.data.collection import Collection
    from ranktilt.data.labels.label_file import LabelFile
    from ranktilt.explaining.factors.result import FactorEffects


@Parameter(name="*", group=INPUT)
@dataclass(frozen=True, kw_only=True)
class AnswerFileOptions:
    """How answers are read, and what was retrieved for their queries."""

    run: Annotated[
        Path | None,
        Parameter(
            help="What was retrieved for the queries: a run, or search results.", metavar="FILE"
        ),
    ] = None
    queries: Annotated[
        Path | None,
        Parameter(
            help="Queries of the answers in their order, where answers do not name theirs.",
            metavar="FILE",
            group=SELDOM,
        ),
    ] = None
    engine: Annotated[
        str | None,
        Parameter(
            help="Engine to audit, where the field engine of the answers names several.",
            metavar="NAME",
        ),
    ] = None
    exact_urls: Annotated[
        bool,
        Parameter(
            help="Compare addresses character by character, with scheme, www and parameters.",
            group=SELDOM,
        ),
    ] = False

    def files(self, labels: LabelOptions) -> list[Path]:
        """Return the files of the run, the queries and the labels, which no output may replace."""
        paths = (self.run, self.queries, labels.groups)
        return [file_of(path) for path in paths if path is not None]

    def refuse_options_of_answers(self) -> None:
        """Refuse options for reading answers; call this where a model writes them."""
        unread = {
            "--queries": self.queries,
            "--exact-urls": self.exact_urls,
            "--engine": self.engine,
        }
        options.refuse_unread(unread, "a model answers the queries of the collection; omit it")

    def read_answers(self, file: Path) -> Answers:
        """Read the answers of a file or folder."""
        from ranktilt.data.formats.citations.answer_file import read_answers
        from ranktilt.data.queries import query_texts

        query_names = None if self.queries is None else list(query_texts(self.queries))
        return read_answers(
            file, queries=query_names, exact_urls=self.exact_urls, engine=self.engine
        )


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
        question.check_by_factor(labels, run=inputs.run)
        output.deliver(_effects_on_answers(answers, inputs, labels))
        return 0
    page_labels = _labels_of_pages(labels, question.column)
    audit = question.audit_answers(
        inputs.read_answers(answers), page_labels, run=inputs.run, reference=labels.reference
    )
    output.deliver(audit)
    return 0


def _labels_of_pages(labels: LabelOptions, by: str) -> LabelFile | Collection:
    """Return the labels of the pages: a label file, or a collection whose documents are cited.

    `by` is the column that holds the labels.
    """
    if labels.groups is not None and os.path.isdir(labels.groups):
        collection = options.load_texts(Path(labels.groups), None)
        return replace(labels, groups=None).labelled(collection, by)
    label_file = labels.labels
    if label_file is None:
        raise UserError("cite needs the group of each page: --groups FILE:id=url,source=COLUMN")
    return label_file


def _effects_on_answers(
    answers: Path, inputs: AnswerFileOptions, labels: LabelOptions
) -> FactorEffects:
    """Estimate what each factor of a designed collection does to citations in stored answers."""
    from ranktilt.citing.experiment.factors import citation_factor_effects

    folder = labels.groups
    if folder is None or not os.path.isdir(folder):
        raise UserError(
            "--by-factor needs the versions that were read: name their collection, --groups DIR"
        )
    return citation_factor_effects(
        inputs.read_answers(answers),
        options.load_texts(Path(folder), None),
        engine=inputs.engine or answers.stem,
    )
