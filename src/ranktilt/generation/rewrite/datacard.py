"""The data card: what was asked of which model, what came back, and what to know before it is used."""

from __future__ import annotations

from collections.abc import Sequence

from ranktilt.errors import counted, join_words, visible
from ranktilt.generation.datacard_sections import (
    counts_section,
    files_section,
    model_section,
    prompt_section,
)
from ranktilt.generation.rewrite.rewrite import Rewritten

_TITLES = {
    "keep": "Both twins carry the title of the original. A ranker that reads titles sees the same one twice, so "
    "the twins differ less than their texts do; `--text text` ranks without titles.",
    "rewrite": "Titles were rewritten too, each by a request of its own; a document whose title failed is left out.",
    "drop": "Rewrites have no title, the originals keep theirs: a ranker that reads titles sees more of their "
    "side. Rank with `--text text`.",
}
_LICENCE = (
    "The source texts keep the licence they came with, and a rewrite is made from them: what that licence asks for "
    "(naming the authors, no commercial use, sharing alike) holds for the rewrites too. The terms of the model, or of "
    "whoever serves it, say what may be done with its answers. Neither is known to the program that wrote this card. "
    "Look both up before you pass this folder on."
)


def datacard(rewritten: Rewritten, splits: Sequence[str]) -> str:
    """Write the data card of a collection with rewrites as Markdown, the same for the same answers."""
    parts = [
        "# A collection and its rewrites",
        _opening(rewritten, splits),
        "## Model",
        model_section(rewritten),
        "## Prompt",
        _prompt(rewritten),
        "## What came of the documents",
        counts_section(rewritten, "rewritten", cut=True),
        *_pool(rewritten),
        "## Titles",
        _TITLES[rewritten.spec["titles"]],
        "## Licence",
        _LICENCE,
        "## Files",
        files_section(
            splits,
            "all documents, with `source`, `origin`, and for rewrites `model`, `temperature`, `prompt`",
            "judgments, carried over to the rewrites",
            "a rewrite",
        ),
    ]
    return visible("\n\n".join(parts)) + "\n"


def _opening(rewritten: Rewritten, splits: Sequence[str]) -> str:
    spec, made = rewritten.spec, rewritten.made
    sources = join_words([f"`{one.source}`" for one in made])
    path = spec["collection"].get("path")
    origin = f" from `{path}`" if path else ""
    judged = (
        f"Judgments ({', '.join(splits)}) hold for a document and its rewrites alike."
        if splits
        else "No judgments."
    )
    made_here = {spec["of"], *(one.source for one in made)}
    others = [f"`{name}`" for name in rewritten.collection.sources if name not in made_here]
    before = (
        f" The collection came with {join_words(others)} already; counts and figures below are not "
        f"about {'it' if len(others) == 1 else 'them'}."
        if others
        else ""
    )
    named = spec["named_source"]
    naming = (
        f" The collection names no source: {counted(named['documents'], 'document is', 'documents are')} called "
        f"`{named['source']}` because whoever had them rewritten said so."
        if named
        else ""
    )
    first = (
        f" This is a trial: only the first {spec['first']:,} were asked for."
        if spec["first"]
        else ""
    )
    return (
        f"Documents of source `{spec['of']}`{origin}, and beside them their rewrites by a language model, as "
        f"{'source' if len(made) == 1 else 'sources'} {sources}. A rewrite and what it was made of have the same "
        f"`origin`. {judged}{naming}{before}{first} Made by ranktilt {spec['ranktilt']}."
    )


def _prompt(rewritten: Rewritten) -> str:
    known = "the document's text" + (
        " and title" if "{title}" in rewritten.spec["prompt"]["text"] else ""
    )
    return prompt_section(
        rewritten,
        f"`{{text}}` stands for the document. It is given {known}, and nothing of the queries or judgments.",
    )


def _pool(rewritten: Rewritten) -> list[str]:
    spec = rewritten.spec
    if not spec["partial"]:
        return []
    of = spec["of"]
    sentences = spec["pool"] or ["only documents that were named were rewritten"]
    said = "\n".join(f"- {sentence}" for sentence in sentences)
    chosen = (
        "Queries chose the documents: only what is judged, or what a ranker found for a query, was rewritten. The "
        f"column `pool` says which. The rest of the collection stands on the side of `{of}` alone, so a ranker outside "
        "of the pool may find its text without a twin; figures hold for the cutoffs and rankers that the pool covers."
    )
    named = f"The column `pool` says which; the rest of the collection stands on the side of `{of}` alone."
    return ["## Pool", f"{said}\n\n{chosen if spec['pool'] else named}"]
