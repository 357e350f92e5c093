"""Write documents from queries as a collection's folder, with its data card.

A *data card* is the README of a collection. A *split*, such as ``test``, has judgments of its own,
in the file ``qrels/<split>.tsv``.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ranktilt.errors import counted, escape_invisible, join_words
from ranktilt.generation.answer.answer import AnsweredQueries
from ranktilt.generation.datacard_sections import (
    counts_section,
    files_section,
    model_section,
    prompt_section,
    trial_note,
)
from ranktilt.generation.output_folder import SavedFolder, open_folder, write_folder

KIND = "answers"
"""Kind of generated documents, a key of `ranktilt.generation.manifest.COMMANDS`."""
_JUDGMENTS = (
    "Made, not judged: each document counts as relevant (grade 1) to the query it was written "
    "from. Nobody has checked whether it answers the query, or whether it is true. Measures "
    "computed with these judgments alone only say how well a ranker matches a document with its "
    "own query."
)
"""Paragraph on judgments in the data card."""
_LICENCE = (
    "The queries keep their licence. The terms of the model, or of its provider, say what you may "
    "do with its answers, such as whether you may train a model on them. The program that wrote "
    "this card knows neither. Look both up before you pass this folder on."
)
"""Paragraph on licences in the data card."""


def save_answered(answered: AnsweredQueries, folder: str | Path) -> SavedFolder:
    """Write documents from queries with their data card, every answer and a manifest.

    The folder gets ``corpus.jsonl``, ``queries.jsonl``, ``qrels/<split>.tsv`` (the split of the
    queries, or ``test``), ``README.md`` (the data card), ``left-out.jsonl``, ``answers.jsonl.gz``
    (every answer as it came) and ``manifest.json``.

    Parameters
    ----------
    answered : AnsweredQueries
        The documents.
    folder : str or Path
        New or empty, or an earlier output, which is replaced completely or not at all.

    Returns
    -------
    SavedFolder
        The folder, and the names of its splits.

    Raises
    ------
    UserError
        If the folder has other files, or cannot be written.
    """
    queries_from = answered.spec["collection"]  # path and split
    target = open_folder(folder, queries_from.get("path"), KIND)
    split = str(queries_from.get("split", "test"))
    if Path(split).name != split:  # a split may be the path of a file
        split = "test"
    judged = {split: answered.collection.qrels} if answered.collection.qrels.height else {}
    write_folder(
        target,
        answered,
        judged=judged,
        card=datacard(answered, splits=judged),
        spec=answered.spec,
        kind=KIND,
    )
    return SavedFolder(folder=Path(folder), splits=tuple(judged))


def datacard(answered: AnsweredQueries, splits: Iterable[str]) -> str:
    """Write the data card of documents from queries as Markdown; `splits` names the qrels files."""
    slot_note = (
        "`{query}` stands for the query. The model gets nothing else: no document, no judgment."
    )
    parts = [
        "# Documents written from queries",
        _opening(answered),
        "## Model",
        model_section(answered),
        "## Prompt",
        prompt_section(answered, slot_note),
        "## What became of the queries",
        counts_section(answered, "written"),
        "## Judgments",
        _JUDGMENTS,
        "## Licence",
        _LICENCE,
        "## Files",
        files_section(
            splits,
            corpus="the documents, with `source`, `query_id`, `model`, `temperature`, `prompt`",
            qrels="each document with its query, grade 1: made, not judged",
            left_out="a good answer",
        ),
    ]
    # Names of sources and files may hold control characters.
    return escape_invisible("\n\n".join(parts)) + "\n"


def _opening(answered: AnsweredQueries) -> str:
    """Return the first paragraph of the data card."""
    spec = answered.spec
    queries = counted(answered.collection.queries.height, "query", "queries")
    if spec["collection"].get("path"):
        queries += f" of `{spec['collection']['path']}`"
    documents = counted(spec["n"], "document", "documents")
    noun = "source" if len(spec["sources"]) == 1 else "sources"
    sources = join_words([f"`{name}`" for name in spec["sources"]])
    return (
        f"Documents that a language model wrote from {queries}, {documents} for each query, as "
        f"{noun} {sources}. No document was rewritten: each is its own `origin`, and `query_id` "
        f"names its query.{trial_note(spec)} Made by ranktilt {spec['ranktilt']}."
    )
