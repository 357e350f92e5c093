"""The documents that each request shows to a language model: chosen from a run, and ordered.

A *run* lists the documents that were retrieved for each query. A *context* is the documents of one
request; a query may be asked several times, which are its *repeats*. A *source* is who wrote a
document, such as a human or a language model. *Twins* are two versions of a document, written by
two sources; in a *swapped* context they have exchanged their positions. A *designed* collection has
several versions of each document, which differ in factors such as length; each repeat shows one.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from ranktilt.citing.making.settings import AnswerMaking, ShownLabel
from ranktilt.citing.making.twins import Pair, Twins
from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run, collection_rows
from ranktilt.errors import DataError, UserError
from ranktilt.explaining.factors.effects import FactorDesign
from ranktilt.generation.versions.design import PREFIX
from ranktilt.rankers.base import top_k


@dataclass(frozen=True, kw_only=True)
class Context:
    """The documents that one request shows, and how."""

    query: str
    """Id of the query."""
    repeat: int
    """Number of the repeat, from 1."""
    rows: tuple[int, ...]
    """Rows of the documents in the collection, in the order in which they are shown."""
    is_swapped: bool = False
    """Whether the two versions of each document have exchanged their positions."""
    shown_label: ShownLabel = "none"
    """The author that is printed with each document.

    None, the true one, or the other of the two groups that are compared.
    """


@dataclass(frozen=True, kw_only=True)
class UnshownEntries:
    """Numbers of queries and documents of a run that no request shows."""

    without_text: int
    """Number of queries that the collection does not hold, or whose text is empty."""
    without_documents: int
    """Number of queries whose list has no document to show, or, if twins are shown, no twins."""
    unknown_documents: int
    """Number of entries of the run whose document the collection does not hold."""


@dataclass(frozen=True, kw_only=True, eq=False)  # it has a dictionary, which cannot be hashed
class ContextSet:
    """The contexts of all requests, and what was left out."""

    contexts: tuple[Context, ...]
    """One context for each request, in the order of the requests."""
    ranked: dict[str, tuple[int, ...]]
    """The documents of each query, as rows of the collection in the order of the run."""
    left_out: UnshownEntries
    """Numbers of queries and documents of the run that no request shows."""

    @property
    def rows(self) -> set[int]:
        """Rows of all documents that some request shows."""
        return set().union(*self.ranked.values())


def build_contexts(
    collection: Collection, run: Run, making: AnswerMaking, pair: Pair | None = None
) -> ContextSet:
    """Choose the documents of each query, and order them for each repeat.

    A request shows the first documents of the query's list. With twins it shows both versions of
    the first documents that have two, even if only one was ranked. With drawn versions
    (`making.draws_versions`) it shows one version of each document, and another in the next repeat.
    Where documents tie at the last rank, a hash of the document decides, which is the same for all
    its versions.

    Parameters
    ----------
    collection : Collection
        Documents and queries.
    run : Run
        The documents that were retrieved for each query.
    making : AnswerMaking
        Size and order of contexts, repeats, twins and labels.
    pair : (str, str), optional
        The two sources whose versions are twins; None if no twins are shown.

    Raises
    ------
    DataError
        If the run ranks no query, or no document, of the collection.
    UserError
        If no query has a document to show.
    """
    lists = _RankedLists.from_run(run, collection)
    twins = None if pair is None else Twins.from_collection(collection, pair)
    versions = _DesignedVersions.from_collection(collection) if making.draws_versions else None
    with_text = _known_queries(run, collection)
    context_size = making.context
    ranked: dict[str, tuple[int, ...]] = {}
    # Scores decide the order only where neither twins nor drawn versions are shown.
    scores: dict[str, tuple[float, ...]] = {}
    queries = with_text[: making.first]  # all where `first` is None
    for query in queries:
        if twins is not None:
            known_rows, _scores = lists.best(query, None)
            rows = twins.first_pairs(known_rows, context_size // 2)
        elif versions is not None:
            known_rows, _scores = lists.best(query, None)
            rows = versions.of_first_documents(known_rows, context_size)
        else:
            rows, scores[query] = lists.best(query, context_size)
        if rows:
            ranked[query] = tuple(rows)
    if not ranked:
        raise _nothing_to_show(run, pair)
    if versions is None:
        contexts = _ordered_contexts(ranked, scores, making, twins)
    else:
        contexts = _drawn_contexts(ranked, making, versions)
    return ContextSet(
        contexts=tuple(contexts),
        ranked=ranked,
        left_out=UnshownEntries(
            without_text=len(run.queries) - len(with_text),
            without_documents=len(queries) - len(ranked),
            unknown_documents=lists.unknown_documents,
        ),
    )


def _nothing_to_show(run: Run, pair: Pair | None) -> UserError:
    """Return the error for a run none of whose queries has a document to show."""
    noun = "document" if pair is None else f"twins of {pair[0]} and {pair[1]}"
    return UserError(f"nothing to show: the lists of {run.name} hold no {noun} of the collection")


def _known_queries(run: Run, collection: Collection) -> list[str]:
    """Return the run's queries that have a text; `DataError` if none has."""
    texts = dict(collection.queries.select("id", "text").iter_rows())
    with_text = [query for query in run.queries if (texts.get(query) or "").strip()]
    if not with_text:
        examples = f"first: {run.queries[0]!r}" if run.queries else "it is empty"
        message = f"no overlap: none of its queries has a text in the collection ({examples})"
        raise DataError(_file_of(run), message)
    return with_text


def _file_of(run: Run) -> str:
    """Return the file that a run was read from; for a run without a file, its name."""
    return str(run.spec.get("file", run.name))


def _ordered_contexts(
    ranked: dict[str, tuple[int, ...]],
    scores: dict[str, tuple[float, ...]],
    making: AnswerMaking,
    twins: Twins | None,
) -> Iterator[Context]:
    """Yield the contexts of each query and repeat: in both orders of twins, and with each label.

    `ranked` has the documents of each query, and `scores` their scores in the run, which are not
    needed with twins.
    """
    for (query, rows), repeat in product(ranked.items(), range(1, making.repeats + 1)):
        rng = random.Random(f"{making.order_seed} {query} {repeat}")
        if making.order == "shuffled":
            order = rng.sample(rows, len(rows))
        elif twins is None:
            order = _by_score(rows, scores[query], rng)
        else:
            # Documents stay as the run ranks them. Which of two twins comes first is random,
            # because a ranker may favour one of their sources.
            order = twins.randomly_ordered(rows, rng)
        orders = [(False, order)]
        if twins is not None:
            orders.append((True, twins.with_exchanged_positions(order)))
        for (is_swapped, documents), label in product(orders, making.shown_labels):
            yield Context(
                query=query,
                repeat=repeat,
                rows=tuple(documents),
                is_swapped=is_swapped,
                shown_label=label,
            )


def _drawn_contexts(
    ranked: dict[str, tuple[int, ...]], making: AnswerMaking, versions: _DesignedVersions
) -> Iterator[Context]:
    """Yield a context for each query and repeat, with one version of each document."""
    for query, rows in ranked.items():
        for repeat in range(1, making.repeats + 1):
            order = versions.draw(rows, query, repeat, seed=making.order_seed)
            if making.order == "shuffled":
                rng = random.Random(f"{making.order_seed} {query} {repeat}")
                order = rng.sample(order, len(order))
            yield Context(query=query, repeat=repeat, rows=tuple(order))


def _by_score(rows: Sequence[int], scores: Sequence[float], rng: random.Random) -> list[int]:
    """Return documents by falling score, tied ones in random order.

    If ids decided between tied documents, those of one source might always come first.
    """
    tie_breakers = [rng.random() for _row in rows]
    order = sorted(range(len(rows)), key=lambda index: (-scores[index], tie_breakers[index]))
    return [rows[index] for index in order]


@dataclass(frozen=True, kw_only=True, eq=False)  # `==` of arrays is no single truth value
class _RankedLists:
    """A run's lists as rows of a collection; an entry is a document in the list of a query."""

    rows: np.ndarray
    """Row of each entry's document in the collection; −1 if the collection does not hold it."""
    scores: np.ndarray
    """Score of each entry."""
    keys: np.ndarray
    """Number for each row of the collection, by which tied documents are ordered."""
    bounds: dict[str, tuple[int, int]]
    """Index of the first entry of each query, and of the entry after its last."""

    @classmethod
    def from_run(cls, run: Run, collection: Collection) -> _RankedLists:
        """Find the rows of a run's documents; `DataError` if none is in the collection."""
        bounds = zip(run.offsets[:-1].tolist(), run.offsets[1:].tolist(), strict=True)
        # A run has each id once, in `run.ids`; `run.docs` has the index of each entry's id there.
        rows_of_ids = collection_rows(run, collection)
        rows = rows_of_ids[run.docs]
        if len(rows) and (rows < 0).all():
            first = run.ids[int(run.docs[0])]
            message = f"no overlap: none of its documents is in the collection (first: {first!r})"
            raise DataError(_file_of(run), message)
        return cls(
            rows=rows,
            scores=run.scores,
            keys=collection.tie_keys(),
            bounds=dict(zip(run.queries, bounds, strict=True)),
        )

    @property
    def unknown_documents(self) -> int:
        """Number of entries whose document the collection does not hold."""
        return int((self.rows < 0).sum())

    def best(self, query: str, count: int | None) -> tuple[list[int], tuple[float, ...]]:
        """Return rows and scores of the best documents of a query.

        These are `count` documents, or all if it is None. There are more than `count` if versions
        of one document tie at the last rank.
        """
        start, end = self.bounds[query]
        rows, scores = self.rows[start:end], self.scores[start:end]
        is_known = rows >= 0
        rows, scores = rows[is_known], scores[is_known]
        best = top_k(scores, self.keys[rows], len(rows) if count is None else count)
        return rows[best].tolist(), tuple(scores[best].tolist())


@dataclass(frozen=True, kw_only=True, eq=False)
class _DesignedVersions:
    """The versions of each document of a designed collection, as rows of the collection."""

    document_of: tuple[int, ...]
    """Number of the document of each row."""
    versions_of: dict[int, tuple[int, ...]]
    """Rows of each document's versions."""

    @classmethod
    def from_collection(cls, collection: Collection) -> _DesignedVersions:
        """Group the rows of a designed collection by document.

        `UserError` if it has no design, or no factor whose effect can be estimated.
        """
        if not any(name.startswith(PREFIX) for name in collection.docs.columns):
            raise UserError(
                "--by-factor needs versions by design: a collection with columns factor:NAME, as "
                "ranktilt generate versions DIR --factors position,length writes it"
            )
        # This refuses a design that says nothing about factors, before a model is asked.
        FactorDesign.from_collection(
            collection, collection.spec.get("design", {}).get("failed", ())
        )
        document_of = tuple(collection.origin_codes().tolist())
        rows_by_document: dict[int, list[int]] = {}
        for row, document in enumerate(document_of):
            rows_by_document.setdefault(document, []).append(row)
        versions_of = {document: tuple(rows) for document, rows in rows_by_document.items()}
        return cls(document_of=document_of, versions_of=versions_of)

    def of_first_documents(self, rows: Sequence[int], count: int) -> list[int]:
        """Return all versions of the first `count` documents of a list, document by document."""
        documents = list(dict.fromkeys(self.document_of[row] for row in rows))[:count]
        versions = list[int]()
        for document in documents:
            versions += self.versions_of[document]
        return versions

    def draw(self, rows: Sequence[int], query: str, repeat: int, *, seed: int) -> list[int]:
        """Draw a version of each document of a list, for a query and the number of a repeat.

        A document with n versions shows each of them once in n repeats, in random order.
        """
        versions_drawn = list[int]()
        for document in dict.fromkeys(self.document_of[row] for row in rows):
            versions = self.versions_of[document]
            rng = random.Random(f"{seed} {query} {document} versions")
            order = rng.sample(versions, len(versions))
            versions_drawn.append(order[(repeat - 1) % len(order)])
        return versions_drawn
