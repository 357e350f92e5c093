"""Find the sentences of a text that answer its queries, move them, and repeat them.

A text's *answer* to a query is the sentence with the most words of the query, without counting stop
words; of several such sentences it is the shortest. If a document states its answer in a column
``answer``, the words of that answer are looked for instead of the query's. A *probe* is a measured
property of a text. The *origin* of a version is the id of the document that it was made from.

Position and repetition are two of the biases of dense retrievers in ColDeR (Fayyaz, Modarressi,
Schuetze & Peng, arXiv 2503.05037), where the evidence comes first or last, and names come often or
rarely. Here the same text is written both ways, by rule and without a language model.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
import polars as pl

from ranktilt.data.text.analyzers import stop_words
from ranktilt.data.text.features import Floats
from ranktilt.errors import DataWarning, UserError, counted, shorten, unknown_name
from ranktilt.generation.versions.rules import MOST_QUERIES, SENTENCE, RuleContext, terms
from ranktilt.sizes import read_whole_number

ANSWER = "answer"
"""Column of documents with the answer to their queries."""
BEGINNING, MIDDLE, END = "beginning", "middle", "end"
PLACES = (BEGINNING, MIDDLE, END)
"""Places of a text to which answers can be moved."""
MOST_TIMES = 5
"""Maximum number of times that an answer can be stated."""
ANSWER_POSITION = "answer-position"
"""Probe: position of the answers, from 0 (first sentence of the text) to 1 (last)."""
ANSWER_OFF_CENTRE = "answer-off-centre"
"""Probe: distance of the answers from the middle of the text, 0 to 1."""
ANSWER_COUNT = "answer-count"
"""Probe: number of times that a text states its answers, on average."""
ANSWER_PROBES = (ANSWER_POSITION, ANSWER_OFF_CENTRE, ANSWER_COUNT)
"""Probes of answers, in the order in which they are measured."""

_FULL_STOP = re.compile(r"[.!?\u2026][\"')\]\u2019\u201d]*\Z")
"""Final punctuation of a sentence, and the quotes after it."""


@dataclass(frozen=True, kw_only=True)
class SplitText:
    """A text, split into sentences and the white space between them."""

    sentences: tuple[str, ...]
    """The sentences."""
    gaps: tuple[str, ...]
    """White space before the first sentence, between each two, and after the last."""

    @classmethod
    def from_text(cls, text: str) -> SplitText:
        """Split a text at the end of its sentences."""
        sentences, gaps, end = [], [], 0
        for sentence in SENTENCE.finditer(text):
            gaps.append(text[end : sentence.start()])
            sentences.append(sentence[0].rstrip())
            end = sentence.start() + len(sentences[-1])
        return cls(sentences=tuple(sentences), gaps=(*gaps, text[end:]))

    def in_order(self, order: Sequence[int]) -> str:
        """Write the sentences in an order, as their indices; a repeated index repeats a sentence.

        The white space between sentences stays where it was, so paragraphs keep their number of
        sentences. A repeated sentence follows after a blank.
        """
        gaps = iter(self.gaps[1:-1])
        parts = [self.gaps[0]]
        for index, next_index in pairwise(order):
            sentence = self.sentences[index]
            # The last sentence of a text may have no full stop, but needs one before another.
            has_full_stop = _FULL_STOP.search(sentence) is not None
            gap = " " if index == next_index else next(gaps)
            parts.append(f"{sentence}{'' if has_full_stop else '.'}{gap}")
        return "".join([*parts, self.sentences[order[-1]], self.gaps[-1]])


def answering_sentences(sentences: Sequence[str], sought: Iterable[str]) -> list[int]:
    """Return the indices of the sentences that answer, in rising order.

    For each text of `sought`, a query or a stated answer, this is the sentence that shares the most
    words with it. The choice does not depend on the order of sentences, so it is the same after
    they were moved.
    """
    contents = [terms(sentence) for sentence in sentences]
    indices = set[int]()
    for text in sought:
        sought_words = {*terms(text)} - stop_words("nltk")
        # The most shared words first, then the shortest, then the first in the alphabet.
        sort_keys = [
            (-len(sought_words.intersection(content)), len(content), content)
            for content in contents
        ]
        best = min(sort_keys, default=(0, 0, []))
        has_shared_words = best[0] < 0
        if has_shared_words:
            indices.add(sort_keys.index(best))
    return sorted(indices)


def move_answers(text: str, context: RuleContext, location: str) -> str:
    """Move the sentences that answer to a place of the text: beginning, middle or end."""
    split = SplitText.from_text(text)
    answers = answering_sentences(split.sentences, context.sought)
    others = [index for index in range(len(split.sentences)) if index not in answers]
    if not answers or not others:
        return text
    count_before = {BEGINNING: 0, MIDDLE: (len(others) + 1) // 2, END: len(others)}[location]
    order = [*others[:count_before], *answers, *others[count_before:]]
    return text if order == sorted(order) else split.in_order(order)


def repeat_answers(text: str, context: RuleContext, times: int) -> str:
    """State each sentence that answers `times` times in a row, in its place."""
    split = SplitText.from_text(text)
    answers = answering_sentences(split.sentences, context.sought)
    if not answers:
        return text
    order = list[int]()
    for index in range(len(split.sentences)):
        order += [index] * (times if index in answers else 1)
    return split.in_order(order)


def position_rule(location: str) -> Callable[[str, RuleContext], str]:
    """Return the rule that moves answers to a place, one of `PLACES`."""
    if location not in PLACES:
        raise UserError(str(unknown_name("place of the answer", location, PLACES)))
    return partial(move_answers, location=location)


def repetition_rule(times: str) -> Callable[[str, RuleContext], str]:
    """Return the rule that states answers so many times: a number from 2 to `MOST_TIMES`."""
    number = read_whole_number(times)
    if number is None or not 2 <= number <= MOST_TIMES:
        raise UserError(
            f"factor {shorten(f'repetition:{times}')}: expected how often the answer is stated, "
            f"2 to {MOST_TIMES}, such as repetition:3"
        )
    return partial(repeat_answers, times=number)


def relevant_queries(queries: pl.DataFrame, qrels: pl.DataFrame) -> dict[str, tuple[str, ...]]:
    """Return the texts of the queries that each document is relevant to, highest grade first."""
    relevant = (
        qrels.filter(pl.col("grade") > 0)
        .sort("grade", "query_id", descending=[True, False])
        .join(queries.select(query_id="id", query="text"), on="query_id", how="inner")
    )
    queries_by_document: dict[str, list[str]] = {}
    for doc_id, query in relevant.select("doc_id", "query").iter_rows():
        queries_by_document.setdefault(doc_id, []).append(query)
    return {doc_id: tuple(texts) for doc_id, texts in queries_by_document.items()}


def stated_answers(docs: pl.DataFrame) -> dict[str, str]:
    """Return the answer that each document states in its column ``answer``, by the document's id.

    Documents without an answer are left out.
    """
    if ANSWER not in docs.columns or docs.schema[ANSWER] != pl.String:
        return {}
    stated = docs.select("id", ANSWER).filter(pl.col(ANSWER).str.strip_chars() != "")
    return dict(stated.iter_rows())


def warn_of_absent_answers(docs: pl.DataFrame) -> None:
    """Warn where the stated answer of a document shares no word with its text."""
    answers = stated_answers(docs)
    texts = dict(docs.select("id", "text").iter_rows())
    absent = [
        doc_id
        for doc_id, answer in answers.items()
        if not answering_sentences(SplitText.from_text(texts[doc_id]).sentences, [answer])
    ]
    if absent:
        documents = counted(len(absent), "document states", "documents state")
        warnings.warn(
            f"{documents} an answer that shares no word with the text (first: {absent[0]!r}); "
            "such a text stays as it is",
            DataWarning,
            stacklevel=4,
        )


def sought_texts(stated_answer: str, queries: Sequence[str]) -> tuple[str, ...]:
    """Return the texts that a document's sentences are compared with.

    They are the sentences of its stated answer, or if that is empty, its first queries.
    """
    if stated_answer:
        return SplitText.from_text(stated_answer).sentences
    return tuple(queries[:MOST_QUERIES])


def measure_answers(
    docs: pl.DataFrame, sought: Mapping[str, Sequence[str]], has_added_words: Sequence[bool]
) -> dict[str, Floats]:
    """Measure where each version states its answer, and how often; NaN where it has none.

    Parameters
    ----------
    docs : DataFrame
        The versions, with columns ``text`` and ``origin``.
    sought : mapping
        By origin, the texts that its sentences are compared with (see `sought_texts`).
    has_added_words : sequence of bool
        For each version, whether its last sentence consists of query words that a rule added. Such
        a sentence is no answer.

    Returns
    -------
    dict
        A value for each version, by the names in `ANSWER_PROBES`.
    """
    rows = []
    columns = docs.select("text", "origin").iter_rows()
    for (text, origin), is_added in zip(columns, has_added_words, strict=True):
        sentences = SplitText.from_text(text).sentences
        if is_added:
            sentences = sentences[:-1]
        rows.append(_measure_text(sentences, sought.get(origin, ())))
    values = np.array(rows, dtype=np.float64).reshape(-1, len(ANSWER_PROBES))
    return dict(zip(ANSWER_PROBES, values.T, strict=True))


def _measure_text(sentences: Sequence[str], sought: Sequence[str]) -> tuple[float, float, float]:
    """Return position, distance from the middle, and count of the answers of one text."""
    indices = answering_sentences(sentences, sought)
    if not indices:
        return np.nan, np.nan, np.nan
    # Words are sorted, because the factor that swaps words may give each repetition another order.
    contents = [tuple(sorted(terms(sentence))) for sentence in sentences]
    answers = {contents[index] for index in indices}
    count = sum(content in answers for content in contents) / len(answers)
    # Positions are among different sentences, so that a repeated answer does not seem to move.
    different = list(dict.fromkeys(contents))
    if len(different) < 2:
        return np.nan, np.nan, count
    answer_indices = [index for index, content in enumerate(different) if content in answers]
    position = float(np.mean(answer_indices)) / (len(different) - 1)
    return position, abs(2 * position - 1), count
