"""``ranktilt cite``: whom an engine's answers cite, of what was consulted and retrieved."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, QUESTION, SELDOM, STATISTICS, UNDERSTAND, points, verb
from ranktilt.cli.cite_making import (
    AnswerOptions,
    SessionAudit,
    answers_by_factor,
    check_by_factor,
    folder_of_labels,
)
from ranktilt.cli.label_options import LabelOptions
from ranktilt.cli.output import PageOutput, collection_files, with_sidecars
from ranktilt.cli.statistics_options import statistics_settings
from ranktilt.data.formats.notation import file_of
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.data.labels.label_file import LabelFile


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
    run: Annotated[
        Path | None,
        Parameter(
            help="What was retrieved for the queries: a run, or search results.",
            metavar="FILE",
            group=INPUT,
        ),
    ] = None,
    queries: Annotated[
        Path | None,
        Parameter(
            help="Queries of the answers in their order, where answers do not name theirs.",
            metavar="FILE",
            group=SELDOM,
        ),
    ] = None,
    engine: Annotated[
        str | None,
        Parameter(
            help="Engine to audit, where the field engine of the answers names several.",
            metavar="NAME",
            group=INPUT,
        ),
    ] = None,
    exact_urls: Annotated[
        bool,
        Parameter(
            help="Compare addresses character by character, with scheme, www and parameters.",
            group=SELDOM,
        ),
    ] = False,
    by: Annotated[
        str,
        Parameter(
            help="Column whose groups are compared (default: source).",
            metavar="COLUMN",
            group=QUESTION,
        ),
    ] = "source",
    pair: Annotated[
        list[str] | None,
        Parameter(help="Groups to compare (default: all pairs).", metavar="A,B", group=QUESTION),
    ] = None,
    cluster: Annotated[
        str | None,
        Parameter(
            help="Unit within which labels are constant: domain, page or a column (default: the "
            "domain, if labels agree within it).",
            metavar="COLUMN",
            group=STATISTICS,
        ),
    ] = None,
    label_errors: options.LabelErrors = None,
    by_query: options.ByQuery = None,
    margin: Annotated[
        float,
        Parameter(
            help="Count as level within X points of a share, or X % of a rate (default: 5).",
            metavar="X",
            group=STATISTICS,
            converter=points,
        ),
    ] = 5.0,
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
    inputs = [answers, *(file_of(path) for path in (run, labels.groups) if path is not None)]
    if model.llm is not None:
        unread = {"--queries": queries, "--exact-urls": exact_urls, "--engine": engine}
        options.refuse_unread(unread, "a model answers the queries of the collection; omit it")
        files = [*inputs[1:], *collection_files(answers)]
        output.check(*files, also=with_sidecars({"--save-answers": model.save_answers}))
        return SessionAudit(
            folder=answers,
            model=model,
            labels=labels,
            run=run,
            by=by,
            pairs=options.read_pairs(pair),
            cluster=cluster,
            margin=margin,
            label_errors=label_errors,
            by_query=by_query,
        ).execute(output.deliver)
    output.check(*inputs)
    if model.by_factor:
        check_by_factor(
            {
                "--by": by != "source",
                "--by-query": by_query,
                "--pair": pair,
                "--reference": labels.reference,
                "--cluster": cluster,
                "--label-errors": label_errors,
                "--run": run,
            }
        )
        output.deliver(answers_by_factor(answers, labels))
        return 0
    page_labels: LabelFile | Collection | None = folder_of_labels(labels, by) or labels.labels
    if page_labels is None:
        raise UserError("cite needs the group of each page: --groups FILE:id=url,source=COLUMN")
    from ranktilt.citing.cite import cite as cite_answers
    from ranktilt.data.formats.citations.answer_file import read_answers
    from ranktilt.data.queries import query_texts

    names = None if queries is None else list(query_texts(queries))
    statistics = statistics_settings()
    output.deliver(
        cite_answers(
            read_answers(answers, queries=names, exact_urls=exact_urls, engine=engine),
            page_labels,
            run=run,
            by=by,
            pairs=options.read_pairs(pair),
            reference=labels.reference,
            cluster=cluster,
            margin=margin,
            resamples=statistics.resamples,
            seed=statistics.seed,
            correction=statistics.correction,
            label_errors=label_errors,
            by_query=by_query,
        )
    )
    return 0
