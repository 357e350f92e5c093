"""Search of postings, compiled by numba; import it through `compiler`, as numba may be missing.

Lists and scores equal those of numpy to the last bit: a document's term weights are added in the
same order, and no operation is reordered or fused. Loops are written out because numba turns them
into machine code; plain Python would be slow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]
Keys = npt.NDArray[np.uint64]
Documents = npt.NDArray[np.int32]
Lists = tuple[Ints, Documents, Scores]
"""Number of documents of each query, then documents and scores of one query after the other."""
Function = TypeVar("Function", bound=Callable[..., Any])

_SPARSE = 4
"""A query with fewer postings than a fourth of the documents is read by its postings alone."""


def _compiled(function: Function) -> Function:
    """Compile a function at its first call, and keep the result on disk where that is possible.

    ``nogil`` lets Python's threads search side by side. Threads of numba's own take several seconds
    longer to compile, and some of its threading layers crash when two threads start them.
    """
    try:
        compiled: Any = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    except RuntimeError:  # numba finds no folder that it may write to
        compiled = numba.njit(nogil=True, error_model="numpy")(function)
    return compiled  # type: ignore[no-any-return]


class WeighedPostings(NamedTuple):
    """Postings of some terms, term after term. A tuple, as numba compiles no dataclass."""

    rows: Ints
    """Documents."""
    weights: Scores
    """What each posting adds to its document's score, at least 0."""
    ends: Ints
    """Where each term starts in `rows`, and where the last one ends."""


class _Workspace(NamedTuple):
    """Arrays that all queries use, one after the other."""

    keys: Keys
    """Tie key of each document of the collection."""
    scores: Scores
    """Score of each document of the collection; 0 between two queries."""
    candidates: Documents
    """Documents that may be among the best."""
    candidate_scores: Scores
    heap: Scores
    """Scores of the best documents so far, the worst of them first: a heap."""
    heap_keys: Keys
    order: Documents
    """Positions of the best candidates."""
    spare: Documents
    """Room for sorting them."""


@_compiled
def search_lists(
    postings: WeighedPostings,
    starts: Ints,
    positions: Ints,
    counts: Scores,
    keys: Keys,
    depth: int,
) -> Lists:
    """Return the best documents of each query, best first; ties fall by key.

    Documents that share score and key with the last one are returned too, so a list may be longer
    than `depth`. Where few documents have a positive score, those that hold a term without weight
    follow, with a score of 0.

    Parameters
    ----------
    postings
        Postings of all terms of the queries.
    starts
        Where each query starts in `positions`, and where the last one ends.
    positions, counts
        Terms of the queries, as positions in `postings.ends`, and how often the query holds each.
    keys
        Tie key of each document of the collection.
    depth
        Documents to return for each query, at least 1.
    """
    size, room = len(keys), max(min(depth, len(keys)), 1)
    work = _Workspace(
        keys,
        np.zeros(size),
        np.empty(size, np.int32),
        np.empty(size),
        np.empty(room),
        np.empty(room, np.uint64),
        np.empty(size, np.int32),
        np.empty(size, np.int32),
    )
    query_count = len(starts) - 1
    lengths = np.zeros(query_count, np.int64)
    rows, scores = np.empty(query_count * room, np.int32), np.empty(query_count * room)
    end = 0
    for query in range(query_count):
        terms = positions[starts[query] : starts[query + 1]]
        posting_count = _add_weights(
            postings, terms, counts[starts[query] : starts[query + 1]], work.scores
        )
        if posting_count * _SPARSE < size:
            count = _take_from_postings(postings, terms, work)
        else:
            count = _take_from_documents(work)
        if count < room:
            count = _take_weightless(postings, terms, work, count)
        length = _keep_best(work, count)
        order = _sorted(work, length)
        if end + length > len(rows):  # equal keys at the end of lists need more room
            rows = np.append(rows, np.empty(len(rows) + length, np.int32))
            scores = np.append(scores, np.empty(len(scores) + length))
        for place in range(length):
            rows[end + place] = work.candidates[order[place]]
            scores[end + place] = work.candidate_scores[order[place]]
        lengths[query] = length
        end += length
    return lengths, rows[:end], scores[:end]


@_compiled
def _add_weights(postings: WeighedPostings, terms: Ints, counts: Scores, scores: Scores) -> int:
    """Add the weights of a query's terms to the scores; return the number of its postings."""
    rows, weights = postings.rows, postings.weights
    posting_count = 0
    for index in range(len(terms)):
        low, high = postings.ends[terms[index]], postings.ends[terms[index] + 1]
        posting_count += high - low
        count = counts[index]
        if count == 1.0:
            for posting in range(low, high):
                scores[rows[posting]] += weights[posting]
        else:
            for posting in range(low, high):
                scores[rows[posting]] += count * weights[posting]
    return posting_count


@_compiled
def _take_from_postings(postings: WeighedPostings, terms: Ints, work: _Workspace) -> int:
    """Take documents of the query's postings that may be among the best; set scores back to 0."""
    count = 0
    for term in terms:
        for posting in range(postings.ends[term], postings.ends[term + 1]):
            row = postings.rows[posting]
            score = work.scores[row]
            work.scores[row] = 0.0  # a document that a later term holds too is not taken again
            if score > 0.0:
                count = _take(work, count, row, score)
    return count


@_compiled
def _take_from_documents(work: _Workspace) -> int:
    """Take documents of the collection that may be among the best; set scores back to 0."""
    count = 0
    for row in range(len(work.scores)):
        score = work.scores[row]
        if score > 0.0:
            count = _take(work, count, row, score)
    work.scores[:] = 0.0
    return count


@_compiled
def _take_weightless(postings: WeighedPostings, terms: Ints, work: _Workspace, count: int) -> int:
    """Take documents that hold a term without weight, for a list with room for them."""
    for term in terms:
        if postings.weights[postings.ends[term]] == 0.0:
            for position in range(count):
                work.scores[work.candidates[position]] = 1.0  # marks what is taken
            for posting in range(postings.ends[term], postings.ends[term + 1]):
                row = postings.rows[posting]
                if work.scores[row] == 0.0:
                    work.scores[row] = 1.0
                    count = _take(work, count, row, 0.0)
    for position in range(count):
        work.scores[work.candidates[position]] = 0.0
    return count


@_compiled
def _take(work: _Workspace, count: int, row: int, score: float) -> int:
    """Take a document unless enough better ones were taken; return the number of candidates."""
    heap, heap_keys = work.heap, work.heap_keys
    if count >= len(heap):
        if score < heap[0]:
            return count
        _replace_worst(heap, heap_keys, score, work.keys[row])
    else:
        place = count
        while place > 0:
            parent = (place - 1) // 2
            if not _is_before(heap[parent], heap_keys[parent], score, work.keys[row]):
                break
            heap[place], heap_keys[place] = heap[parent], heap_keys[parent]
            place = parent
        heap[place], heap_keys[place] = score, work.keys[row]
    work.candidates[count] = row
    work.candidate_scores[count] = score
    return count + 1


@_compiled
def _replace_worst(heap: Scores, heap_keys: Keys, score: float, key: int) -> None:
    """Replace the worst document of a full heap by another one, unless that is worse."""
    if not _is_before(score, key, heap[0], heap_keys[0]):
        return
    place, child = 0, 1
    while child < len(heap):
        right = child + 1
        if right < len(heap) and _is_before(
            heap[child], heap_keys[child], heap[right], heap_keys[right]
        ):
            child = right
        if not _is_before(score, key, heap[child], heap_keys[child]):
            break
        heap[place], heap_keys[place] = heap[child], heap_keys[child]
        place, child = child, 2 * child + 1
    heap[place], heap_keys[place] = score, key


@_compiled
def _is_before(score: float, key: int, other_score: float, other_key: int) -> bool:
    """Tell whether a document comes before another one: by score, then by key."""
    return score > other_score or (score == other_score and key < other_key)


@_compiled
def _keep_best(work: _Workspace, count: int) -> int:
    """Put the positions of candidates that are not below the worst of the best into `order`."""
    is_full = count >= len(work.heap)
    worst, worst_key = work.heap[0], work.heap_keys[0]
    length = 0
    for position in range(count):
        score = work.candidate_scores[position]
        key = work.keys[work.candidates[position]]
        if not (is_full and _is_before(worst, worst_key, score, key)):
            work.order[length] = position
            length += 1
    return length


@_compiled
def _sorted(work: _Workspace, length: int) -> Documents:
    """Sort the first positions of `order` by score, key and document: a merge sort."""
    order, merged = work.order, work.spare
    width = 1
    while width < length:
        for low in range(0, length, 2 * width):
            middle, high = min(low + width, length), min(low + 2 * width, length)
            left, right = low, middle
            for place in range(low, high):
                if left < middle and (right >= high or _precedes(work, order[left], order[right])):
                    merged[place] = order[left]
                    left += 1
                else:
                    merged[place] = order[right]
                    right += 1
        order, merged = merged, order
        width *= 2
    return order


@_compiled
def _precedes(work: _Workspace, first: int, second: int) -> bool:
    """Tell whether a candidate comes before another one, or is the same."""
    row, other_row = work.candidates[first], work.candidates[second]
    score, other_score = work.candidate_scores[first], work.candidate_scores[second]
    if score == other_score and work.keys[row] == work.keys[other_row]:
        return bool(row <= other_row)
    return _is_before(score, work.keys[row], other_score, work.keys[other_row])
