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
_ROOM = 4
"""Multiple of the depth: with so many candidates, all but the best are dropped."""
_STRIDE = 64
"""A sample of the documents has every 64th of them."""
_SAMPLE_DEPTH = 2
"""Multiple of the depth that a sample is read down to, so that its score is seldom too high."""
_MARGIN = 16
"""Ranks that a sample is read deeper still: a few documents say little about a short list."""
_SMALLEST = float(np.nextafter(0.0, 1.0))
"""Smallest score of a document that is retrieved for its weight."""


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
    """What each posting adds to its document's score, at least 0.

    The weights of a term are all 0 (its inverse document frequency is) or all above 0.
    """
    starts: Ints
    """Where each term's postings start in `rows`, and where the last ones end."""


class QueryTerms(NamedTuple):
    """Terms of some queries, query after query."""

    starts: Ints
    """Where each query's terms start in `positions`, and where the last ones end."""
    positions: Ints
    """Terms, as positions in `WeighedPostings.starts`."""
    counts: Scores
    """How often the query holds each of them."""


class _Workspace(NamedTuple):
    """Arrays that all queries use, one after the other."""

    keys: Keys
    """Tie key of each document of the collection: of two equal scores the smaller key is first."""
    scores: Scores
    """Score of each document of the collection; 0 between two queries."""
    candidates: Documents
    """Documents that may be among the best."""
    candidate_scores: Scores
    """Score of each candidate."""
    order: Documents
    """Positions of candidates."""
    spare: Documents
    """Room for sorting them."""


@_compiled
def search_lists(postings: WeighedPostings, queries: QueryTerms, keys: Keys, depth: int) -> Lists:
    """Return the best documents of each query, best first; ties fall by key.

    Documents that share score and key with the last one are returned too, so a list may be longer
    than `depth`. Where fewer than `depth` documents have a positive score, those that hold a term
    without weight follow, with a score of 0. A term has none where its inverse document frequency
    is 0, as that of a word in every document can be.

    Parameters
    ----------
    postings
        Postings of all terms of the queries.
    queries
        The queries, each of which may hold any of these terms.
    keys
        Tie key of each document of the collection.
    depth
        Documents to return for each query, at least 1.
    """
    starts, positions, counts = queries.starts, queries.positions, queries.counts
    size = len(keys)
    work = _Workspace(
        keys,
        np.zeros(size),
        np.empty(size, np.int32),
        np.empty(size),
        np.empty(size, np.int32),
        np.empty(size, np.int32),
    )
    query_count = len(starts) - 1
    lengths = np.zeros(query_count, np.int64)
    rows = np.empty(query_count * min(depth, size), np.int32)
    scores = np.empty(len(rows))
    end = 0
    for query in range(query_count):
        terms = positions[starts[query] : starts[query + 1]]
        posting_count = _add_weights(
            postings, terms, counts[starts[query] : starts[query + 1]], work.scores
        )
        if posting_count * _SPARSE < size:
            count = _take_from_postings(postings, terms, work, depth)
        else:
            count = _take_from_documents(work, depth)
        if count < depth:
            count = _take_weightless(postings, terms, work, count)
        count = _keep_best(work, count, depth)
        order = _sorted(work, count)
        if end + count > len(rows):  # equal keys at the end of lists need more room
            rows = np.append(rows, np.empty(len(rows) + count, np.int32))
            scores = np.append(scores, np.empty(len(scores) + count))
        for rank in range(count):
            rows[end + rank] = work.candidates[order[rank]]
            scores[end + rank] = work.candidate_scores[order[rank]]
        lengths[query] = count
        end += count
    return lengths, rows[:end], scores[:end]


@_compiled
def _add_weights(postings: WeighedPostings, terms: Ints, counts: Scores, scores: Scores) -> int:
    """Add the weights of a query's terms to the scores; return the number of its postings."""
    rows, weights = postings.rows, postings.weights
    posting_count = 0
    for index in range(len(terms)):
        low, high = postings.starts[terms[index]], postings.starts[terms[index] + 1]
        posting_count += high - low
        count = counts[index]
        if count == 1.0:  # the usual case, without a multiplication; the result is the same
            for posting in range(low, high):
                scores[rows[posting]] += weights[posting]
        else:
            for posting in range(low, high):
                scores[rows[posting]] += count * weights[posting]
    return posting_count


@_compiled
def _take_from_postings(
    postings: WeighedPostings, terms: Ints, work: _Workspace, depth: int
) -> int:
    """Take documents of the query's postings that may be among the best; set scores back to 0."""
    scores, candidates, candidate_scores = work.scores, work.candidates, work.candidate_scores
    count, limit, least = 0, _ROOM * depth, _SMALLEST
    for term in terms:
        for posting in range(postings.starts[term], postings.starts[term + 1]):
            row = postings.rows[posting]
            score = scores[row]
            scores[row] = 0.0  # a document that a later term holds too is not taken again
            if score >= least:
                candidates[count] = row
                candidate_scores[count] = score
                count += 1
                if count == limit:
                    count = _keep_best(work, count, depth)
                    least = candidate_scores[:count].min()
                    # Equal scores and keys can leave almost as many as there were. With room for as
                    # many again, the work stays proportional to the number of postings.
                    limit = max(_ROOM * depth, 2 * count)
    return count


@_compiled
def _take_from_documents(work: _Workspace, depth: int) -> int:
    """Take documents of the collection that may be among the best; set scores back to 0."""
    least = _likely_score(work, depth)
    count = _take_from(work, depth, least)
    if count < depth and least > _SMALLEST:  # the sample had too many of the best
        count = _take_from(work, depth, _SMALLEST)
    work.scores[:] = 0.0
    return count


@_compiled
def _likely_score(work: _Workspace, depth: int) -> float:
    """Return a score that more documents than the depth are likely to reach, from a sample.

    It is too high now and then; `_take_from_documents` then starts again from the smallest score.
    """
    count = 0
    for row in range(0, len(work.scores), _STRIDE):
        if work.scores[row] > 0.0:
            work.candidates[count] = row
            work.candidate_scores[count] = work.scores[row]
            count += 1
    rank = _SAMPLE_DEPTH * depth // _STRIDE + _MARGIN
    if rank >= count:
        return _SMALLEST
    return float(work.candidate_scores[_select(work, count, rank)])


@_compiled
def _take_from(work: _Workspace, depth: int, least: float) -> int:
    """Take documents with at least a score, and drop most of those that are not among the best."""
    scores, candidates, candidate_scores = work.scores, work.candidates, work.candidate_scores
    count, limit = 0, _ROOM * depth
    for row in range(len(scores)):
        score = scores[row]
        if score >= least:
            candidates[count] = row
            candidate_scores[count] = score
            count += 1
            if count == limit:
                count = _keep_best(work, count, depth)
                least = candidate_scores[:count].min()
                limit = max(_ROOM * depth, 2 * count)  # as in `_take_from_postings`
    return count


@_compiled
def _take_weightless(postings: WeighedPostings, terms: Ints, work: _Workspace, count: int) -> int:
    """Take all documents that hold a term without weight, for a list with room for them."""
    for term in terms:
        # The first weight speaks for the term: all of its weights are 0, or none is.
        if postings.weights[postings.starts[term]] == 0.0:
            for position in range(count):
                work.scores[work.candidates[position]] = 1.0  # marks what is taken
            for posting in range(postings.starts[term], postings.starts[term + 1]):
                row = postings.rows[posting]
                if work.scores[row] == 0.0:
                    work.scores[row] = 1.0
                    work.candidates[count] = row
                    work.candidate_scores[count] = 0.0
                    count += 1
    for position in range(count):
        work.scores[work.candidates[position]] = 0.0
    return count


@_compiled
def _keep_best(work: _Workspace, count: int, depth: int) -> int:
    """Drop the candidates that come after the best ones; return how many are left."""
    if count <= depth:
        return count
    last = _select(work, count, depth - 1)
    last_score, last_key = work.candidate_scores[last], work.keys[work.candidates[last]]
    length = 0
    for position in range(count):
        row, score = work.candidates[position], work.candidate_scores[position]
        if score > last_score or (score == last_score and work.keys[row] <= last_key):
            work.candidates[length] = row
            work.candidate_scores[length] = score
            length += 1
    return length


@_compiled
def _select(work: _Workspace, count: int, rank: int) -> int:
    """Return the position of the candidate at a rank, from 0: Hoare's selection."""
    for position in range(count):
        work.order[position] = position
    low, high = 0, count - 1
    while low < high:
        left, right = _partition(work, low, high)
        if rank <= right:
            high = right
        elif rank >= left:
            low = left
        else:
            break
    return int(work.order[rank])


@_compiled
def _partition(work: _Workspace, low: int, high: int) -> tuple[int, int]:
    """Put candidates before a pivot first; return where both parts meet.

    That is ``(left, right)`` with right < left: the order up to `right` has no candidate after the
    pivot, from `left` on none before it. A position between them holds the pivot itself.
    """
    order = work.order
    pivot = order[(low + high) // 2]
    left, right = low, high
    while left <= right:
        while _is_before(work, order[left], pivot):
            left += 1
        while _is_before(work, pivot, order[right]):
            right -= 1
        if left <= right:
            order[left], order[right] = order[right], order[left]
            left += 1
            right -= 1
    return left, right


@_compiled
def _sorted(work: _Workspace, length: int) -> Documents:
    """Return the positions of the candidates by score, key and document: a merge sort."""
    order, merged = work.order, work.spare
    for position in range(length):
        order[position] = position
    width = 1
    while width < length:
        for low in range(0, length, 2 * width):
            middle, high = min(low + width, length), min(low + 2 * width, length)
            left, right = low, middle
            for target in range(low, high):
                if left < middle and (right >= high or _is_before(work, order[left], order[right])):
                    merged[target] = order[left]
                    left += 1
                else:
                    merged[target] = order[right]
                    right += 1
        order, merged = merged, order
        width *= 2
    return order


@_compiled
def _is_before(work: _Workspace, first: int, second: int) -> bool:
    """Tell whether a candidate comes before another one: by score, by key, then by document.

    Keys are far apart in memory, so they are read only where scores are equal.
    """
    score, other_score = work.candidate_scores[first], work.candidate_scores[second]
    if score != other_score:
        return bool(score > other_score)
    row, other_row = work.candidates[first], work.candidates[second]
    if work.keys[row] != work.keys[other_row]:
        return bool(work.keys[row] < work.keys[other_row])
    return bool(row < other_row)
