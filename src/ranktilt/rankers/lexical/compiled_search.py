"""Search of postings, compiled by numba; import it through `compiler`, as numba may be missing.

Lists and scores equal those of numpy to the last bit: a document's term weights are added in the
same order, and no operation is reordered or fused. Loops are written out because numba turns them
into machine code; plain Python would be slow.

Two things make it fast. Documents are searched in blocks, whose scores stay in the processor's
cache. And a query's most frequent words are left out where they cannot lift a document into the
list by themselves (MaxScore; Turtle and Flood 1995): their weights are looked up, for the few
documents that may still be among the best. The rarest words come first in every query, so such a
sum is the same sum, cut off and continued.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, TypeVar

import numba
import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]
Keys = npt.NDArray[np.uint64]
Documents = npt.NDArray[np.int32]
Rows = npt.NDArray[np.uint32]
Lists = tuple[Ints, Documents, Scores]
"""Number of documents of each query, then documents and scores of one query after the other."""
Function = TypeVar("Function", bound=Callable[..., Any])

WORD = 64
"""Documents of one number of a bitmap."""
_BLOCK = 32_768
"""Documents whose scores are computed at a time; a multiple of `WORD`. They take 256 kB."""
_SPARSE = 4
"""A block with fewer postings than a fourth of its documents is read by its postings alone."""
_DIGIT, _PASSES = 11, 3
"""Bits that a pass of the radix sort compares, and passes."""
_GROUP = 16
"""Documents of a block that are passed over together where all of their scores are low."""
_BINS = 1 << _DIGIT
"""Bins of the scores of a query's candidates."""
_LEAST, _SCALE = 0, 1
"""Positions in `Workspace.levels`."""
_LOWEST, _ABOVE, _TAKEN = 0, 1, 2
"""Positions in `Workspace.tally`."""
_LOOKUP = 10.0
"""Additions that take as long as one look-up of a weight."""
_SLACK = 1e-6
"""Share by which bounds are widened: scores may be rounded, and sums in another order differ."""
_ROOT: int = np.int64(0)  # type: ignore[assignment]
"""Number of a heap's root. numba would compile a function once more for a literal number."""
_SMALLEST = float(np.nextafter(0.0, 1.0))
"""Smallest score of a document that is retrieved for its weight."""


def _compiled(function: Function) -> Function:
    """Compile a function when `search_lists` is compiled, as a part of it."""
    compile_inner: Any = numba.njit  # whose types lack the last two options
    compiled = compile_inner(
        nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True
    )(function)
    return compiled  # type: ignore[no-any-return]


def _compiled_and_stored(function: Function) -> Function:
    """Compile a function at its first call, and keep the result on disk where that is possible.

    ``nogil`` lets Python's threads search side by side. Threads of numba's own take several seconds
    longer to compile, and some of its threading layers crash when two threads start them.
    """
    try:
        compiled: Any = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    except RuntimeError:  # numba finds no folder that it may write to
        compiled = numba.njit(nogil=True, error_model="numpy")(function)

    @wraps(function)
    def call(*values: Any, **options: Any) -> Any:
        try:
            return compiled(*values, **options)
        except OSError:  # the disk is full; numba compiles before it stores the result
            return compiled(*values, **options)

    return call  # type: ignore[return-value]


class WeighedPostings(NamedTuple):
    """Postings of some terms of a table. A tuple, as numba compiles no dataclass."""

    rows: Rows
    """Documents of all postings of the table, in order within a term."""
    first_rows: Ints
    """Where each term's postings start in `rows`."""
    weights: Scores
    """What each posting adds to its document's score, at least 0, term after term.

    The weights of a term are all 0 (its inverse document frequency is) or all above 0.
    """
    starts: Ints
    """Where each term's postings start in `weights`, and where the last ones end."""
    highest: Scores
    """Largest weight of each term."""
    safe: Scores
    """For each term, a weight that as many of its documents reach as a list has; else 0."""
    slots: Ints
    """Row of each term in `bits` and `ranks`; -1 for a rare term, which has none."""
    bits: npt.NDArray[np.uint64]
    """Of each frequent term, a bit for each document, set where it holds the term."""
    ranks: npt.NDArray[np.int32]
    """How many postings each frequent term has before each number of `bits`."""


class QueryTerms(NamedTuple):
    """Terms of some queries, query after query, in the order in which their weights are added."""

    starts: Ints
    """Where each query's terms start in `positions`, and where the last ones end."""
    positions: Ints
    """Terms, as positions in `WeighedPostings.starts`."""
    counts: Scores
    """How often the query holds each of them, or its weight for each."""
    least: Scores
    """Score of each query below which no document is wanted."""
    depth: int
    """Number of documents to find for each query, at least 1."""
    is_rounded: bool
    """Whether scores are rounded to float32."""


class SearchedQuery(NamedTuple):
    """The query that is searched."""

    terms: Ints
    """Its terms, as positions in `WeighedPostings.starts`."""
    counts: Scores
    """How often it holds each of them, or its weight for each."""
    least: float
    """Score below which no document is wanted."""
    depth: int
    """Number of documents to find, at least 1."""
    is_rounded: bool
    """Whether each score is rounded to float32 when it is complete, so that more scores are equal.
    """


class Workspace(NamedTuple):
    """Arrays that all queries use, one after the other."""

    keys: Keys
    """Tie key of each document of the collection: of two equal scores the smaller key is first."""
    scores: Scores
    """Score of each document of a block; 0 between two blocks."""
    candidates: Documents
    """Documents that may be among the best."""
    candidate_scores: Scores
    """Score of each candidate."""
    candidate_bits: Keys
    """The same as whole numbers, whose order is that of the scores."""
    order: Documents
    """Positions of candidates."""
    spare: Documents
    """Room for sorting them."""
    codes: Keys
    """Leading bits of each candidate's score, the best ones lowest."""
    bins: Documents
    """Number of candidates in each bin of scores."""
    lows: Ints
    """Where each term's postings in a block start, from the term's first posting."""
    highs: Ints
    """Where they end."""
    tally: Ints
    """Lowest bin, candidates in it and above, candidates in all bins.

    Where the bins above the lowest one hold as many candidates as a list is deep, that bin and all
    documents in it are dropped.
    """
    levels: Scores
    """Lowest score of a candidate, and bins of a unit of score."""
    rests: Scores
    """Largest sum of weights of each term of a query and those after it."""
    is_taken: npt.NDArray[np.bool_]
    """Whether each document is a candidate; False between two queries."""


class ListBuffer(NamedTuple):
    """Room for the lists of some queries, which has that of any one list at least."""

    lengths: Ints
    """Number of documents of each query."""
    rows: Documents
    """Documents of one query after the other."""
    scores: Scores
    """Their scores."""


def workspace(keys: Keys, most_terms: int) -> Workspace:
    """Return room for queries of at most so many terms.

    `keys` has the tie key of each document of the collection. Arrays are made here, as numba takes
    long to compile that.
    """
    size = len(keys)
    candidates, candidate_scores = np.empty(size + 1, np.int32), np.empty(size + 1)
    order, spare, bins = (np.empty(length, np.int32) for length in (size, size, _BINS))
    lows, highs, tally = (np.empty(length, np.int64) for length in (most_terms, most_terms, 3))
    levels, rests = np.empty(2), np.empty(most_terms + 1)
    return Workspace(
        keys=keys,
        scores=np.zeros(_BLOCK),
        candidates=candidates,
        candidate_scores=candidate_scores,
        candidate_bits=candidate_scores.view(np.uint64),
        order=order,
        spare=spare,
        codes=np.empty(size, np.uint64),
        bins=bins,
        lows=lows,
        highs=highs,
        tally=tally,
        levels=levels,
        rests=rests,
        is_taken=np.zeros(size, np.bool_),
    )


@_compiled
def _candidates(postings: WeighedPostings, query: SearchedQuery, work: Workspace) -> int:
    """Take all documents of a query that may be among the best; return their number."""
    terms, counts = query.terms, query.counts
    size, rests, levels = len(work.keys), work.rests, work.levels
    _start(postings, query, work)
    if rests[0] == 0.0:
        return 0
    for base in range(0, size, _BLOCK):
        end = base + _BLOCK if base + _BLOCK < size else size
        split = _split(postings, terms, rests, levels[_LEAST])
        first_terms = terms[:split]
        posting_count = _find_spans(postings, first_terms, work, base, end=end)
        _add_weights(postings, first_terms, counts, work, base=base)
        reach = levels[_LEAST] - rests[split]
        if reach < _SMALLEST:
            reach = _SMALLEST
        if posting_count * _SPARSE < end - base:
            stop = _reaching_in_postings(postings, first_terms, work, base, reach=reach)
        else:
            stop = _reaching_in_block(work, base, reach)
        _complete(postings, query, work, split, stop=stop)
    candidates, scores = work.candidates, work.candidate_scores
    count = 0
    for position in range(work.tally[_TAKEN]):
        score = scores[position]
        if score >= levels[_LEAST]:
            candidates[count] = candidates[position]
            scores[count] = score
            count += 1
    return count


@_compiled
def _start(postings: WeighedPostings, query: SearchedQuery, work: Workspace) -> None:
    """Set the workspace back for a query."""
    terms, counts, rest = query.terms, query.counts, 0.0
    least = query.least * (1 - _SLACK)
    if least < _SMALLEST:
        least = _SMALLEST
    work.rests[len(terms)] = 0.0
    for index in range(len(terms) - 1, -1, -1):
        rest += counts[index] * postings.highest[terms[index]] * (1 + _SLACK)
        work.rests[index] = rest
        work.highs[index] = 0
        safe = counts[index] * postings.safe[terms[index]] * (1 - _SLACK)
        if safe > least:
            least = safe
    work.rests[0] = rest
    for number in range(_BINS):
        work.bins[number] = 0
    scale = _BINS / rest if rest > 0.0 else 0.0
    work.levels[_LEAST], work.levels[_SCALE] = least, scale
    work.tally[_LOWEST] = np.int64(least * scale)
    work.tally[_ABOVE] = work.tally[_TAKEN] = 0


@_compiled
def _split(postings: WeighedPostings, terms: Ints, rests: Scores, least: float) -> int:
    """Return how many of a query's terms to add; the weights of the others are looked up.

    Those are frequent terms, which without the first ones reach less than `least` together.
    """
    best = len(terms)
    added = 0.0
    for term in terms:
        added += postings.starts[term + 1] - postings.starts[term]
    cost = added
    for index in range(len(terms) - 1, 0, -1):
        term = terms[index]
        if postings.slots[term] < 0 or rests[index] >= least * (1 - _SLACK):
            break
        added -= postings.starts[term + 1] - postings.starts[term]
        if added * (1 + _LOOKUP) < cost:
            best, cost = index, added * (1 + _LOOKUP)
    return best


@_compiled
def _find_spans(
    postings: WeighedPostings, terms: Ints, work: Workspace, base: int, end: int
) -> int:
    """Find the postings of terms in a block of documents; return their number."""
    rows, posting_count = postings.rows, 0
    for index in range(len(terms)):
        term = terms[index]
        first, slot = postings.first_rows[term], postings.slots[term]
        if slot >= 0:
            low = np.int64(postings.ranks[slot, base // WORD])
            high = np.int64(postings.ranks[slot, (end + WORD - 1) // WORD])
        else:
            low = work.highs[index]
            high, length = low, postings.starts[term + 1] - postings.starts[term]
            while high < length and rows[first + high] < end:
                high += 1
        work.lows[index], work.highs[index] = low, high
        posting_count += high - low  # type: ignore[assignment]
    return posting_count


@_compiled
def _add_weights(
    postings: WeighedPostings, terms: Ints, counts: Scores, work: Workspace, base: int
) -> None:
    """Add the weights of terms to the scores of the documents of a block."""
    rows, weights, scores = postings.rows, postings.weights, work.scores
    for index in range(len(terms)):
        count = counts[index]
        first, start = postings.first_rows[terms[index]], postings.starts[terms[index]]
        if count == 1.0:  # the usual case, without a multiplication; the result is the same
            for posting in range(work.lows[index], work.highs[index]):
                scores[np.uint64(rows[first + posting] - base)] += weights[start + posting]
        else:
            for posting in range(work.lows[index], work.highs[index]):
                weight = count * weights[start + posting]
                scores[np.uint64(rows[first + posting] - base)] += weight


@_compiled
def _reaching_in_postings(
    postings: WeighedPostings, terms: Ints, work: Workspace, base: int, reach: float
) -> int:
    """Append the documents of some postings with a high enough score to the candidates.

    Return the end of the candidates; set all scores back to 0. The loop has no branch, as a
    processor could not predict it.
    """
    rows, scores = postings.rows, work.scores
    candidates, candidate_scores = work.candidates, work.candidate_scores
    count = np.uint64(work.tally[_TAKEN])
    for index in range(len(terms)):
        first = postings.first_rows[terms[index]]
        for posting in range(first + work.lows[index], first + work.highs[index]):
            row = rows[posting]
            score = scores[np.uint64(row - base)]
            scores[np.uint64(row - base)] = 0.0  # a later term's posting has none any more
            candidates[count] = row
            candidate_scores[count] = score
            count += np.uint64(score >= reach)
    return np.int64(count)  # type: ignore[return-value]


@_compiled
def _reaching_in_block(work: Workspace, base: int, reach: float) -> int:
    """Append the documents of a block with a high enough score to the candidates.

    Return the end of the candidates; set all scores back to 0.
    """
    scores, candidates, candidate_scores = work.scores, work.candidates, work.candidate_scores
    count = np.uint64(work.tally[_TAKEN])
    for first in range(np.uint64(0), np.uint64(_BLOCK), np.uint64(_GROUP)):
        is_reached = False
        for row in range(first, first + np.uint64(_GROUP)):
            is_reached |= scores[row] >= reach
        if is_reached:
            for row in range(first, first + np.uint64(_GROUP)):
                candidates[count] = base + np.int64(row)
                candidate_scores[count] = scores[row]
                count += np.uint64(scores[row] >= reach)
    for row in range(np.uint64(_BLOCK)):
        scores[row] = 0.0
    return np.int64(count)  # type: ignore[return-value]


@_compiled
def _complete(
    postings: WeighedPostings, query: SearchedQuery, work: Workspace, split: int, stop: int
) -> None:
    """Add the weights of the other terms to new candidates; keep those with high enough scores."""
    terms, counts = query.terms, query.counts
    bins, rests, tally, levels = work.bins, work.rests, work.tally, work.levels
    candidates, candidate_scores = work.candidates, work.candidate_scores
    slots, weights, starts = postings.slots, postings.weights, postings.starts
    for position in range(tally[_TAKEN], stop):
        score, row = candidate_scores[position], np.uint64(candidates[position])
        for index in range(split, len(terms)):
            if score + rests[index] < levels[_LEAST]:
                break
            term = terms[index]
            rank = _rank(postings.bits, postings.ranks, slots[term], row)
            if rank >= 0:
                score += counts[index] * weights[starts[term] + rank]
        if query.is_rounded:
            score = np.float64(np.float32(score))
        number = min(np.int64(score * levels[_SCALE]), np.int64(_BINS - 1))
        if score >= levels[_LEAST] and number >= tally[_LOWEST]:
            candidates[tally[_TAKEN]] = row
            candidate_scores[tally[_TAKEN]] = score
            tally[_TAKEN] += 1
            tally[_ABOVE] += 1
            bins[number] += 1
            _raise_lowest(bins, tally, levels, query.depth)


@_compiled
def _raise_lowest(bins: Documents, tally: Ints, levels: Scores, depth: int) -> None:
    """Drop the lowest bin of scores while those above it fill a list."""
    while tally[_ABOVE] - bins[tally[_LOWEST]] >= depth:
        tally[_ABOVE] -= bins[tally[_LOWEST]]
        tally[_LOWEST] += 1
        edge = tally[_LOWEST] / levels[_SCALE] * (1 - _SLACK)
        if edge > levels[_LEAST]:
            levels[_LEAST] = edge


@_compiled
def _rank(bits: Any, ranks: Any, slot: int, row: Any) -> int:
    """Return which posting of a frequent term is that of a document; -1 where there is none."""
    word, last = row // np.uint64(WORD), np.uint64(WORD - 1)
    number = bits[slot, word] << (last - row % np.uint64(WORD))
    if not number >> last:
        return -1
    # Compilers know this way to count bits, and use the processor's instruction.
    number -= (number >> np.uint64(1)) & np.uint64(0x5555555555555555)
    number = (number & np.uint64(0x3333333333333333)) + (
        (number >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    number = (number + (number >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    bit_count = (number * np.uint64(0x0101010101010101)) >> np.uint64(56)
    return np.int64(ranks[slot, word]) + np.int64(bit_count) - 1  # type: ignore[return-value]


@_compiled
def _take_weightless(postings: WeighedPostings, terms: Ints, work: Workspace, count: int) -> int:
    """Take all documents that hold a term without weight, for a list with room for them."""
    candidates, is_taken = work.candidates, work.is_taken
    for position in range(count):
        is_taken[candidates[position]] = True
    for term in terms:
        if postings.highest[term] == 0.0:  # so are all of its weights
            first = postings.first_rows[term]
            for posting in range(postings.starts[term + 1] - postings.starts[term]):
                row = postings.rows[first + posting]
                if not is_taken[row]:
                    is_taken[row] = True
                    candidates[count] = row
                    work.candidate_scores[count] = 0.0
                    count += 1
    for position in range(count):
        is_taken[candidates[position]] = False
    return count


@_compiled
def _cut(work: Workspace, order: Documents, count: int, depth: int) -> int:
    """Return the length of a sorted list, with all that share score and key with the last one."""
    length = count if count < depth else depth
    if length == 0:
        return 0
    last = order[length - 1]
    score, key = work.candidate_scores[last], work.keys[work.candidates[last]]
    while (
        length < count
        and work.candidate_scores[order[length]] == score
        and work.keys[work.candidates[order[length]]] == key
    ):
        length += 1
    return length


@_compiled
def _keep_best(work: Workspace, count: int, depth: int) -> int:
    """Drop the candidates that come after the best ones; return how many are left.

    With many equal scores at the end of a list, sorting all candidates would take too long.
    """
    candidates, scores, keys = work.candidates, work.candidate_scores, work.keys
    # The heap has the best candidates so far, the last of them at its root.
    order = work.order
    for position in range(count):
        order[position] = position
    _build_heap(work, order, _ROOT, depth)
    for position in range(depth, count):
        if _is_before(candidates, scores, keys, first=order[position], second=order[_ROOT]):
            order[_ROOT] = position
            _sift(work, order, _ROOT, depth, node=_ROOT)
    last = order[_ROOT]
    last_score, last_key = scores[last], keys[candidates[last]]
    length = 0
    for position in range(count):
        row, score = candidates[position], scores[position]
        if score > last_score or (score == last_score and keys[row] <= last_key):
            candidates[length] = row
            scores[length] = score
            length += 1
    return length


@_compiled
def _sorted(work: Workspace, length: int) -> Documents:
    """Return the positions of the candidates by score, key and document.

    A radix sort of the leading bits of the scores, whose order is that of the scores, is four times
    as fast as one that compares. A heap sort then orders what it leaves equal.
    """
    order, spare, codes = work.order, work.spare, work.codes
    _write_codes(work, length)
    for number in range(_PASSES):
        _sort_by_digit(work, order, spare, number, length=length)
        order, spare = spare, order
    low = _ROOT
    while low < length:
        high = low + 1
        while high < length and codes[order[high]] == codes[order[low]]:
            high += 1
        if high > low + 1:
            _heap_sort(work, order, low, last=high)
        low = high
    return order


@_compiled
def _write_codes(work: Workspace, length: int) -> None:
    """Write the leading bits of the candidates' scores, the best ones lowest, and their order."""
    bits, highest, lowest = work.candidate_bits, np.uint64(0), ~np.uint64(0)
    for position in range(length):
        highest = bits[position] if bits[position] > highest else highest
        lowest = bits[position] if bits[position] < lowest else lowest
    shift = np.uint64(0)
    while (highest - lowest) >> shift >= np.uint64(1 << (_PASSES * _DIGIT)):
        shift += np.uint64(1)
    for position in range(length):
        work.codes[position] = (highest - bits[position]) >> shift
        work.order[position] = position


@_compiled
def _sort_by_digit(
    work: Workspace, order: Documents, target: Documents, number: int, length: int
) -> None:
    """Sort positions by one digit of the candidates' codes; equal digits keep their order."""
    codes, bins, digit = work.codes, work.bins, np.uint64(number * _DIGIT)
    for index in range(_BINS):
        bins[index] = 0
    for position in range(length):
        bins[(codes[position] >> digit) % np.uint64(_BINS)] += 1
    start = 0
    for index in range(_BINS):
        bins[index], start = start, start + bins[index]
    for rank in range(length):
        index = (codes[order[rank]] >> digit) % np.uint64(_BINS)
        target[bins[index]] = order[rank]
        bins[index] += 1


@_compiled
def _heap_sort(work: Workspace, order: Documents, first: int, last: int) -> None:
    """Sort some positions of candidates by score, key and document.

    The heap has the candidate that comes last at its root. The root moves to the end, again and
    again, until nothing is left.
    """
    size = last - first
    _build_heap(work, order, first, size)
    while size > 1:
        size -= 1
        position = order[first]
        order[first] = order[first + size]
        order[first + size] = position
        _sift(work, order, first, size, node=_ROOT)


@_compiled
def _build_heap(work: Workspace, order: Documents, first: int, size: int) -> None:
    """Make a heap of some positions of candidates, from its last parents to its root."""
    node = size // 2
    while node > 0:
        node -= 1
        _sift(work, order, first, size, node=node)


@_compiled
def _sift(work: Workspace, order: Documents, first: int, size: int, node: int) -> None:
    """Move a node of a heap down until both nodes below it come before it.

    The heap is in `order`, from `first` on: below the node i are the nodes 2 i + 1 and 2 i + 2.
    """
    candidates, scores, keys = work.candidates, work.candidate_scores, work.keys
    moved = order[first + node]
    child = 2 * node + 1
    while child < size:
        if child + 1 < size and _is_before(
            candidates, scores, keys, first=order[first + child], second=order[first + child + 1]
        ):
            child += 1
        if not _is_before(candidates, scores, keys, first=moved, second=order[first + child]):
            break
        order[first + node] = order[first + child]
        node = child
        child = 2 * node + 1
    order[first + node] = moved


@_compiled
def _is_before(candidates: Documents, scores: Scores, keys: Keys, first: int, second: int) -> bool:
    """Tell whether a candidate comes before another one: by score, by key, then by document.

    Keys are far apart in memory, so they are read only where scores are equal.
    """
    if scores[first] != scores[second]:
        return bool(scores[first] > scores[second])
    row, other_row = candidates[first], candidates[second]
    if keys[row] != keys[other_row]:
        return bool(keys[row] < keys[other_row])
    return bool(row < other_row)


@_compiled_and_stored
def search_lists(
    postings: WeighedPostings,
    queries: QueryTerms,
    work: Workspace,
    lists: ListBuffer,
) -> int:
    """Write the best documents of each query, best first; ties fall by key.

    Return the number of queries whose lists found room. Documents that share score and key with the
    last one are written too, so a list may be longer than `QueryTerms.depth`. Where a query has
    fewer documents with a positive score, those that hold a term without weight follow, with a
    score of 0. A term has none where its inverse document frequency is 0, as that of a word in
    every document can be.

    Parameters
    ----------
    postings
        Postings of all terms of the queries.
    queries
        The queries, each of which may hold any of these terms.
    work
        Room that no other thread uses.
    lists
        Where to write.
    """
    end, depth = 0, queries.depth
    for number in range(len(queries.starts) - 1):
        low, high = queries.starts[number], queries.starts[number + 1]
        query = SearchedQuery(
            terms=queries.positions[low:high],
            counts=queries.counts[low:high],
            least=queries.least[number],
            depth=depth,
            is_rounded=queries.is_rounded,
        )
        count = _candidates(postings, query, work)
        if count < depth:
            count = _take_weightless(postings, query.terms, work, count)
        if count > 2 * depth:
            count = _keep_best(work, count, depth)
        order = _sorted(work, count)
        count = _cut(work, order, count, depth)
        if end + count > len(lists.rows):
            return number
        for rank in range(count):
            lists.rows[end + rank] = work.candidates[order[rank]]
            lists.scores[end + rank] = work.candidate_scores[order[rank]]
        lists.lengths[number] = count
        end += count
    return len(queries.starts) - 1
