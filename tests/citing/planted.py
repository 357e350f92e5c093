"""Twins, queries and a run; models that cite by a planted rule; and whole worlds of citations."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ranktilt.citing.experiment.experiment import context_experiment
from ranktilt.citing.experiment.paired import PairedCitations
from ranktilt.citing.experiment.result import ContextExperiment
from ranktilt.citing.making.make import make_answers
from ranktilt.citing.making.settings import SHOWN_LABELS, AnswerMaking
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run
from ranktilt.llm.base import Prompt, Reply, Sampling
from ranktilt.llm.journal import Journal
from tests.generation.scripted import Scripted
from tests.toy import collection_of, run_of

A, B = "llm", "human"
PAIR = (A, B)
_LINE = re.compile(r"^\[(\d+)\] (?:\(author: (\w+)\) )?(.*)$", re.MULTILINE)


def twin_collection(queries: int, origins: int) -> Collection:
    """Return twins whose texts name their side, and queries without judgments."""
    docs = [
        {
            "id": f"d{origin}-{side}",
            "text": f"text {origin} of a {side} hand, with some words behind it",
            "source": side,
            "origin": f"d{origin}-{B}",
        }
        for origin in range(origins)
        for side in (B, A)
    ]
    return collection_of(docs, {f"q{n}": f"question {n}" for n in range(queries)}, {})


def ranked_run(
    collection: Collection, origins: int, *, depth: int, seed: int = 0, is_mixed: bool = False
) -> Run:
    """Return a run that ranks `depth` random documents, in human or in either versions."""
    rng = np.random.default_rng(seed)
    scores = {}
    for query in collection.queries["id"]:
        drawn = rng.choice(origins, size=depth, replace=False)
        sides = [A if is_mixed and n % 2 else B for n in range(depth)]
        names = [f"d{origin}-{side}" for origin, side in zip(drawn, sides, strict=True)]
        scores[query] = {name: float(depth - n) for n, name in enumerate(names)}
    return run_of(collection, scores)


@dataclass(frozen=True, kw_only=True)
class Document:
    """A document as a prompt shows it."""

    position: int
    author: str
    """Empty where none is shown."""
    text: str


Chance = Callable[[Document], float]
"""Probability that a model cites a document."""


def shown_documents(prompt: str) -> list[Document]:
    """Return the documents of a prompt in their order."""
    return [
        Document(position=int(number), author=author or "", text=text)
        for number, author, text in _LINE.findall(prompt)
    ]


def planted_answer(prompt: str, chance: Chance) -> str:
    """Answer with the documents that chance picks, the same for the same prompt."""
    cited = []
    for document in shown_documents(prompt):
        digest = hashlib.sha256(f"{document.position} {prompt}".encode()).digest()
        if int.from_bytes(digest[:8], "big") / 2**64 < chance(document):
            cited.append(f"[{document.position}]")
    return f"So it is {''.join(cited)}." if cited else "No document says so."


class PlantedModel(Scripted):
    """A model that cites by chance, and answers all prompts together."""

    def __init__(self, chance: Chance) -> None:
        super().__init__(lambda prompt, _times: planted_answer(prompt, chance))

    def arrivals(
        self, prompts: Iterable[Prompt], sampling: Sampling
    ) -> Generator[list[Reply], None, None]:
        # The journal takes ten milliseconds for each arrival, however many replies it has.
        yield [reply for replies in super().arrivals(prompts, sampling) for reply in replies]


def fair(document: Document) -> float:
    """Cite every document alike often."""
    return 0.4


def fond_of_llm(document: Document) -> float:
    """Cite the llm version more often, whatever its label."""
    return 0.6 if "llm hand" in document.text else 0.3


def fond_of_first(document: Document) -> float:
    """Cite the first documents more often."""
    return 0.8 if document.position <= 2 else 0.25


def fond_of_human_label(document: Document) -> float:
    """Cite what is said to be human more often, whoever wrote it."""
    return 0.65 if document.author == B else 0.3


@dataclass(frozen=True, kw_only=True)
class World:
    """How citations come about: logits of one preference, and how much they scatter."""

    preference: float = 0.0
    """How much rather a is cited than b, over all."""
    by_origin: float = 0.0
    """Standard deviation of the preference over documents: some have the better a, some the b."""
    by_query: float = 0.0
    """Standard deviation of the preference over queries."""
    position: float = 0.0
    """How much rather the version shown first is cited."""
    queries: int = 60
    pairs: int = 5
    """Pairs of versions in each context."""
    origins: int = 80


def draw_citations(world: World, rng: np.random.Generator) -> PairedCitations:
    """Draw the citations of a world: each query asked in both orders."""
    query = np.repeat(np.arange(world.queries), world.pairs * 2)
    origin = np.concatenate(
        [
            np.repeat(rng.choice(world.origins, size=world.pairs, replace=False), 2)
            for _query in range(world.queries)
        ]
    )
    is_a_first = np.tile([True, False], world.queries * world.pairs)
    of_origin = rng.normal(0, world.by_origin, world.origins)[origin]
    of_query = rng.normal(0, world.by_query, world.queries)[query]
    level = rng.normal(-0.8, 0.8, world.queries)[query]
    lead = (world.preference + of_origin + of_query) / 2
    lead = lead + np.where(is_a_first, world.position, -world.position) / 2
    draws = rng.random((2, len(query)))
    return PairedCitations(
        query=query,
        origin=origin,
        weight=np.full(len(query), 0.5),
        is_cited_a=draws[0] < _logistic(level + lead),
        is_cited_b=draws[1] < _logistic(level - lead),
    )


def by_position(citations: PairedCitations) -> PairedCitations:
    """Compare the first with the second version instead of a with b."""
    is_a_first = np.arange(len(citations)) % 2 == 0
    return PairedCitations(
        query=citations.query,
        origin=citations.origin,
        weight=citations.weight,
        is_cited_a=np.where(is_a_first, citations.is_cited_a, citations.is_cited_b),
        is_cited_b=np.where(is_a_first, citations.is_cited_b, citations.is_cited_a),
    )


def _logistic(logits: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-logits))


def draw_labelled_documents(
    preference: float, rng: np.random.Generator, *, queries: int = 40, size: int = 6
) -> pl.DataFrame:
    """Draw citations of contexts with true and swapped labels, seven in ten documents of a.

    Some answers cite much and some little, whatever the labels; `preference` is the logit by
    which a document is rather cited where it is said to be of a.
    """
    shape = (queries, 2, size)
    is_a = np.repeat((rng.random((queries, size)) < 0.7)[:, None, :], 2, axis=1)
    is_shown_as_a = is_a ^ np.array([False, True])[None, :, None]
    documents = np.array([rng.choice(60, size=size, replace=False) for _query in range(queries)])
    document = np.repeat(documents[:, None, :], 2, axis=1)
    level = rng.normal(-0.5, 1.0, (queries, 2, 1)) + rng.normal(0, 1.0, 60)[document]
    is_cited = rng.random(shape) < _logistic(level + preference * (is_shown_as_a - 0.5))
    answer = np.arange(2 * queries).reshape(queries, 2, 1)
    labels = np.array(["true", "swapped"])[None, :, None]
    columns = {
        "answer": answer,
        "query": np.arange(queries)[:, None, None],
        "shown_label": labels,
        "id": document,
        "group": np.where(is_a, A, B),
        "citation_rank": is_cited.astype(np.int64),
    }
    frame = pl.DataFrame(
        {name: np.broadcast_to(column, shape).ravel() for name, column in columns.items()}
    )
    rank = pl.col("citation_rank").replace(0, None)
    constants = {"repeat": pl.lit(1), "is_swapped": pl.lit(False)}
    return frame.with_columns(citation_rank=rank, origin="id", **constants)


def planted_experiment(
    chance: Chance, journal: Path, *, queries: int = 60, origins: int = 90, **options: Any
) -> ContextExperiment:
    """Ask a planted model about twins, with all labels unless others are named."""
    collection = twin_collection(queries, origins)
    session = make_answers(
        collection,
        PlantedModel(chance),
        ranked_run(collection, origins, depth=8),
        AnswerMaking(**{"has_twins": True, "shown_labels": SHOWN_LABELS, **options}),
        pair=PAIR,
        journal=Journal(journal),
    )
    return context_experiment(session, resamples=1_000)
