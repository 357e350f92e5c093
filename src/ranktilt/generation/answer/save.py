"""Write documents that were made from queries as a collection's folder, with its data card."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ranktilt.errors import counted, join_words, visible
from ranktilt.generation.answer.answer import AnsweredQueries
from ranktilt.generation.datacard_sections import (
    counts_section,
    files_section,
    model_section,
    prompt_section,
)
from ranktilt.generation.output_folder import SavedFolder, open_folder, write_folder

KIND = "answers"
_JUDGMENTS = (
    "Made, not judged: each document is taken as relevant (grade 1) to the query it was written from, because it was "
    "written from it. Nobody has looked whether it answers the query, or whether it is true. Measures computed with "
    "these judgments alone say how well a ranker finds a document's own query, and no more."
)
_LICENCE = (
    "The queries keep the licence they came with. The terms of the model, or of whoever serves it, say what may be "
    "done with its answers, such as whether a model may be trained on them. Neither is known to the program that wrote "
    "this card. Look both up before you pass this folder on."
)


def save_answered(answered: AnsweredQueries, folder: str | Path) -> SavedFolder:
    """Write documents that were made from queries, their data card, every answer, and the hashes of it all.

    `folder` is new or empty, or an earlier output, which is replaced as a whole, or not at all; it
    holds ``corpus.jsonl``, ``queries.jsonl``, ``qrels/<split>.tsv`` (the split of the queries, or
    ``test``), ``README.md`` (the data card), ``left-out.jsonl``, ``answers.jsonl.gz`` (every answer
    as it came) and ``manifest.json``. `UserError` if it holds anything else, or cannot be written.
    """
    about = answered.spec["collection"]
    place = open_folder(folder, about.get("path"), KIND)
    split = str(about.get("split", "test"))
    split = split if Path(split).name == split else "test"
    judged = {split: answered.collection.qrels} if answered.collection.qrels.height else {}
    write_folder(place, answered, judged, datacard(answered, judged), answered.spec, kind=KIND)
    return SavedFolder(Path(folder), tuple(judged))


def datacard(answered: AnsweredQueries, judged: Iterable[str]) -> str:
    """Write the data card of documents made from queries as Markdown; `judged` are the names of the qrels files."""
    given = (
        "`{query}` stands for the query. The model is given nothing else: no document, no judgment."
    )
    parts = [
        "# Documents written from queries",
        _opening(answered),
        "## Model",
        model_section(answered),
        "## Prompt",
        prompt_section(answered, given),
        "## What came of the queries",
        counts_section(answered, "written"),
        "## Judgments",
        _JUDGMENTS,
        "## Licence",
        _LICENCE,
        "## Files",
        files_section(
            judged,
            "the documents, with `source`, `query_id`, `model`, `temperature`, `prompt`",
            "each document beside its query, grade 1: made, not judged",
            "a good answer",
        ),
    ]
    return visible("\n\n".join(parts)) + "\n"


def _opening(answered: AnsweredQueries) -> str:
    spec, queries = answered.spec, counted(answered.collection.queries.height, "query", "queries")
    path = spec["collection"].get("path")
    sources = join_words([f"`{name}`" for name in spec["sources"]])
    each = f"{counted(spec['n'], 'document', 'documents')} for each query"
    first = (
        f" This is a trial: only the first {spec['first']:,} were asked for."
        if spec["first"]
        else ""
    )
    return (
        f"Documents that a language model wrote from {queries}{f' of `{path}`' if path else ''}, {each}, as "
        f"{'source' if len(spec['sources']) == 1 else 'sources'} {sources}. No document was rewritten: each is its own "
        f"`origin`, and `query_id` names its query.{first} Made by ranktilt {spec['ranktilt']}."
    )
