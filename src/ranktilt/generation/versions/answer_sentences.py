"""The sentences of a text that answer its queries: found, moved and repeated.

A sentence answers a query if it holds more of the query's words than any other sentence of the
text, stop words aside; of several, the shortest does. A document that states its answer (column
``answer``) is searched for the words of that answer instead. Both factors need no model.

Position and repetition are two of the biases of dense retrievers in ColDeR (Fayyaz, Modarressi,
Schuetze & Peng, arXiv 2503.05037), where the evidence stands first or last, and names come often or
rarely. Here the same text is written both ways.
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
from ranktilt.errors import DataWarning, UserError, counted, unknown
from ranktilt.generation.versions.rules import MOST_QUERIES, SENTENCE, Origin, terms

ANSWER = "answer"
"""Column of the documents that states what answers their queries."""
BEGINNING, MIDDLE, END = "beginning", "middle", "end"
PLACES = (BEGINNING, MIDDLE, END)
"""Where the sentences that answer can be moved."""
MOST_TIMES = 5
"""Most times that an answer can be stated."""
ANSWER_POSITION = "answer-position"
"""Probe: where the answer stands, 0 for the first sentence of a text to 1 for the last."""
ANSWER_OFF_CENTRE = "answer-off-centre"
"""Probe: how far from the middle of the text, 0 to 1."""
ANSWER_COUNT = "answer-count"
"""Probe: how often a text states its answer."""
ANSWER_PROBES = (ANSWER_POSITION, ANSWER_OFF_CENTRE, ANSWER_COUNT)

_FULL_STOP = re.compile(r"[.!?\u2026][\"')\]\u2019\u201d]*\Z")


@dataclass(frozen=True, kw_only=True)
class SplitText:
    """A text as its sentences and what is between them."""

    sentences: tuple[str, ...]
    gaps: tuple[str, ...]
    """What comes before the first sentence, between two, and after the last."""

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
        """Write the sentences in an order, in which some may come several times in a row.

        What was between two sentences stays where it was; paragraphs keep their length.
        """
        gaps = iter(self.gaps[1:-1])
        parts = [self.gaps[0]]
        for sentence_number, next_number in pairwise(order):
            sentence = self.sentences[sentence_number]
            # The last sentence may have no full stop, and needs one before the next.
            is_ended = _FULL_STOP.search(sentence) is not None
            gap = " " if sentence_number == next_number else next(gaps)
            parts.append(f"{sentence}{'' if is_ended else '.'}{gap}")
        return "".join([*parts, self.sentences[order[-1]], self.gaps[-1]])


def answer_numbers(sentences: Sequence[str], sought: Iterable[str]) -> list[int]:
    """Return the numbers of the sentences that answer: the best for each text sought, rising.

    Which sentence is the best depends on no order, so that it is the same in a moved text.
    """
    contents = [terms(sentence) for sentence in sentences]
    numbers = set[int]()
    for text in sought:
        sought_words = {*terms(text)} - stop_words("nltk")
        ranks = [
            (-len(sought_words.intersection(content)), len(content), content)
            for content in contents
        ]
        best = min(ranks, default=(0, 0, []))
        if best[0]:
            numbers.add(ranks.index(best))
    return sorted(numbers)


def answer_moved(text: str, origin: Origin, part: str) -> str:
    """Move the sentences that answer to the beginning, the middle or the end of a text."""
    split = SplitText.from_text(text)
    answers = answer_numbers(split.sentences, origin.sought)
    others = [number for number in range(len(split.sentences)) if number not in answers]
    if not answers or not others:
        return text
    before = {BEGINNING: 0, MIDDLE: (len(others) + 1) // 2, END: len(others)}[part]
    order = [*others[:before], *answers, *others[before:]]
    return text if order == sorted(order) else split.in_order(order)


def answer_repeated(text: str, origin: Origin, times: int) -> str:
    """State each sentence that answers several times in a row, so that its place stays."""
    split = SplitText.from_text(text)
    answers = answer_numbers(split.sentences, origin.sought)
    if not answers:
        return text
    order = list[int]()
    for number in range(len(split.sentences)):
        order += [number] * (times if number in answers else 1)
    return split.in_order(order)


def placed_edit(part: str) -> Callable[[str, Origin], str]:
    """Return the rule that moves answers to a place; `UserError` names the places."""
    if part not in PLACES:
        raise UserError(str(unknown("place of the answer", part, PLACES)))
    return partial(answer_moved, part=part)


def repeated_edit(times: str) -> Callable[[str, Origin], str]:
    """Return the rule that states answers 2 to `MOST_TIMES` times."""
    if not times.isascii() or not times.isdigit() or not 2 <= int(times) <= MOST_TIMES:
        raise UserError(
            f"factor 'repetition:{times}': expected how often the answer is stated, 2 to "
            f"{MOST_TIMES}, such as repetition:3"
        )
    return partial(answer_repeated, times=int(times))


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
    """Return the answer that each document states in its column ``answer``, by id."""
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
        if not answer_numbers(SplitText.from_text(texts[doc_id]).sentences, [answer])
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
    """Return what sentences are searched for: those of the stated answer, or the first queries."""
    if stated_answer:
        return SplitText.from_text(stated_answer).sentences
    return tuple(queries[:MOST_QUERIES])


def measure_answers(
    docs: pl.DataFrame, sought: Mapping[str, Sequence[str]], has_added_words: Sequence[bool]
) -> dict[str, Floats]:
    """Measure where each version states its answer, and how often; NaN where none is found.

    The last sentence of a version with added query words is the factor's, and answers nothing.
    """
    rows = []
    columns = docs.select("text", "origin").iter_rows()
    for (text, origin), is_added in zip(columns, has_added_words, strict=True):
        sentences = SplitText.from_text(text).sentences
        rows.append(_measured(sentences[:-1] if is_added else sentences, sought.get(origin, ())))
    values = np.array(rows, dtype=np.float64).reshape(-1, len(ANSWER_PROBES))
    return dict(zip(ANSWER_PROBES, values.T, strict=True))


def _measured(sentences: Sequence[str], sought: Sequence[str]) -> tuple[float, float, float]:
    """Return position, distance from the middle, and count of one text."""
    numbers = answer_numbers(sentences, sought)
    if not numbers:
        return np.nan, np.nan, np.nan
    # Swapped words change a repeated sentence in other places than the first.
    contents = [tuple(sorted(terms(sentence))) for sentence in sentences]
    answers = {contents[number] for number in numbers}
    count = sum(content in answers for content in contents) / len(answers)
    # A place is one among different sentences: repeating an answer does not move it.
    different = list(dict.fromkeys(contents))
    if len(different) < 2:
        return np.nan, np.nan, count
    stated = [number for number, content in enumerate(different) if content in answers]
    position = float(np.mean(stated)) / (len(different) - 1)
    return position, abs(2 * position - 1), count
