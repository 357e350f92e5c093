"""Questions with answers by people and a language model, as a collection with splits.

ChatGPT-RetrievalQA is such a collection. People and the language model are its two *sides*; a
*domain* is the subject of a question. A question may be asked several times; each of these
*askings* is a query. Judgments (qrels) say which answers are relevant to a query, and a split is a
part of the questions with its judgments. The source of an answer is the side that wrote it.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from typing import Any, NamedTuple

import polars as pl

from ranktilt._version import __version__
from ranktilt.data.collection import Collection
from ranktilt.errors import UserError, counted, join_words, shorten
from ranktilt.papers.askari.answered_questions import AnsweredQuestion, AnsweredQuestions

Sizes = tuple[int, int, int]
"""Number of questions in training, development and test."""
SPLITS = ("train", "dev", "test")
"""Names of the splits, in the order of `SHARES`."""
SHARES = (69.0, 2.5, 28.5)
"""Shares of training, development and test, in percent.

The authors do not state shares. With these, all five domains have their published sizes, such as
862, 31 and 355.
"""
ERROR_MESSAGE = re.compile(r"\A!(?:\s|\\n)|There was an error generating a response\s*\Z")
"""Error message of ChatGPT's web page, instead of an answer or at the end of an incomplete one.

The first form begins with an exclamation mark and a blank. In HC3, the blank may be a line break
that is written as a backslash and an n. The second form is at the end of the answer.
"""


@dataclass(frozen=True, kw_only=True)
class QARules:
    """How questions are split, and the names of the two sides.

    Each domain is split by `shares`, as the authors do it: the sizes of development and test are
    rounded down, and training gets all other questions. The authors keep the language model's
    answers that are error messages; `drop_errors` leaves them out.
    """

    shares: tuple[float, float, float] = SHARES
    """Shares of training, development and test, in any unit: they are divided by their sum."""
    sources: tuple[str, str] = ("human", "chatgpt")
    """Names of the two sides, people first."""
    seed: int = 0
    """Seed that decides which questions are in which split."""
    drop_errors: bool = False
    """Whether to leave out answers that are error messages."""

    def __post_init__(self) -> None:
        if not (min(self.shares) >= 0 and 0 < sum(self.shares) < math.inf):
            shares = ",".join(f"{share:g}" for share in self.shares)
            raise UserError(f"expected three shares of at least 0, not all of them 0, got {shares}")
        human, llm = self.sources
        if human == llm:
            raise UserError(f"the two sides need different names; both are called {human!r}")
        for name in self.sources:
            has_forbidden_sign = any(sign in name for sign in "/\\\t\n\r\0")
            if not name.strip() or name.startswith(".") or has_forbidden_sign:
                raise UserError(
                    f"source {name!r} cannot be part of a file's name; choose another name"
                )


@dataclass(frozen=True, kw_only=True)
class RetrievalQA:
    """Answers of both sides in one collection, judged for each split."""

    collection: Collection
    """All answers, with the judgments of the test split."""
    qrels: Mapping[str, pl.DataFrame]
    """Judgments of both sides by split."""
    sources: tuple[str, str]
    """Names of the two sides, people first."""
    counts: Mapping[str, Any]
    """Numbers of the collection and of what was left out, by name."""

    def side(self, source: str, split: str) -> Collection:
        """Return one side's answers, with its judgments of one split, to train on or to search."""
        docs = self.collection.docs.filter(pl.col("source") == source)
        doc_ids = docs.select(doc_id="id")
        qrels = self.qrels[split].join(doc_ids, on="doc_id", how="semi", maintain_order="left")
        return Collection(docs, self.collection.queries, qrels, {"source": source, "split": split})


def build_retrieval_qa(answered: AnsweredQuestions, rules: QARules | None = None) -> RetrievalQA:
    """Make a collection of answers, and split the questions.

    Every question is a query and every answer a document, relevant to its question with grade 1.
    Askings of one question are separate queries, as published, but they are in the same split, and
    the answers to one of them are relevant to all. Ids are running numbers; the number of an answer
    does not depend on its side.

    Source: Askari et al., *A Test Collection of Synthetic Documents for Training Rankers*, CIKM
    2023. Raises a `UserError` if a domain is too small for its split.
    """
    rules = rules or QARules()
    errors = sum(map(_error_messages, answered.questions))
    if rules.drop_errors:
        answered = _without_errors(answered, rules.sources[1])
    domains = Counter(question.domain for question in answered.questions)
    sizes = {name: _by_share(name, number, rules.shares) for name, number in domains.items()}
    splits = assign_splits(answered.questions, sizes, rules.seed)
    tables = _tables(answered.questions, splits, rules.sources)
    qrels = {
        name: tables.qrels.filter(pl.col("split") == number).drop("split")
        for number, name in enumerate(SPLITS)
    }
    counts = _counts(answered, splits, tables.docs, qrels, sources=rules.sources)
    counts["error_messages"] = errors
    spec = {
        "built": "retrieval-qa",
        "split": "test",
        "ranktilt": __version__,
        "fields": asdict(answered.fields),
        **asdict(rules),
        "counts": counts,
        "files": [str(file) for file in answered.files],
    }
    splits_with_judgments = [frame for frame in (qrels["test"], *qrels.values()) if frame.height]
    judgments = splits_with_judgments[0] if splits_with_judgments else tables.qrels
    return RetrievalQA(
        collection=Collection(tables.docs, tables.queries, judgments, spec),
        qrels=qrels,
        sources=rules.sources,
        counts=counts,
    )


def _error_messages(question: AnsweredQuestion) -> int:
    """Return how many of the language model's answers are error messages."""
    return sum(1 for answer in question.llm if ERROR_MESSAGE.search(answer))


def _without_errors(answered: AnsweredQuestions, source: str) -> AnsweredQuestions:
    """Leave out the language model's error messages, and questions without another answer."""
    questions = [_without_error_messages(question) for question in answered.questions]
    remaining = tuple(question for question in questions if question.has_answer)
    if not any(question.llm for question in remaining):
        raise UserError(f"no answer of {source} is left after dropping error messages")
    unanswered = answered.unanswered + len(questions) - len(remaining)
    return replace(answered, questions=remaining, unanswered=unanswered)


def _without_error_messages(question: AnsweredQuestion) -> AnsweredQuestion:
    """Return a question without the answers that are error messages."""
    answers = tuple(answer for answer in question.llm if not ERROR_MESSAGE.search(answer))
    return replace(question, llm=answers)


def _by_share(domain: str, count: int, shares: Sequence[float]) -> Sizes:
    """Return how many of a domain's `count` questions each split gets.

    A split with a share above 0 gets at least one.
    """
    fewest = [int(share > 0) for share in shares]
    if count < sum(fewest):
        splits = join_words([split for split, few in zip(SPLITS, fewest, strict=True) if few])
        questions = counted(count, "question", "questions")
        raise UserError(
            f"domain {domain!r} has {questions}, too few for its split: {splits} need one each"
        )
    # 28.5 % of 1,000 is 285, but floating point may give 284.99999999999994. So a little is added
    # before the number is rounded down.
    train, dev, test = (
        max(few, int(count * share / sum(shares) + 1e-9))
        for few, share in zip(fewest, shares, strict=True)
    )
    if fewest[0] and count - dev - test >= 1:
        return count - dev - test, dev, test
    # If training has no share, or no question would be left for it, the largest split gets the
    # rest.
    sizes = [train, dev, test]
    sizes[sizes.index(max(sizes))] += count - sum(sizes)
    train, dev, test = sizes
    return train, dev, test


def assign_splits(
    questions: Sequence[AnsweredQuestion], sizes: Mapping[str, Sizes], seed: int
) -> list[int]:
    """Return the split of each question, as a number: its index in `SPLITS`.

    In each domain, the splits have exactly its `sizes`, and all askings of one question are in the
    same split. A question's split depends on the seed, on its text, and on the other questions of
    its domain; but not on their order, nor on another domain, unless a question is in both.

    Raises a `UserError` if a question has more askings than any split has free places.
    """
    askings_by_key = defaultdict[str, list[int]](list)
    for number, question in enumerate(questions):
        askings_by_key[question.key].append(number)
    # Number of free places, by domain and split.
    room = {domain: list(domain_sizes) for domain, domain_sizes in sizes.items()}
    splits = [0] * len(questions)
    chances = {key: _hash(seed, key) for key in askings_by_key}
    # Questions with many askings come first, while splits still have room for all of them.
    for key in sorted(chances, key=lambda key: (-len(askings_by_key[key]), chances[key])):
        askings = askings_by_key[key]
        needed = Counter(questions[number].domain for number in askings)
        fits = [_has_room(room, needed, split) for split in range(len(SPLITS))]
        split = _draw_split(chances[key], room[min(needed)], fits)
        if split is None:
            text = shorten(questions[askings[0]].text, 60)
            domains = " and ".join(map(repr, needed))
            raise UserError(
                f"domain {domains} is too small for its split: {text} is asked {len(askings)} "
                "times, and no split has room for all of them"
            )
        for number in askings:
            splits[number] = split
            room[questions[number].domain][split] -= 1
    return splits


def _has_room(room: Mapping[str, Sequence[int]], needed: Mapping[str, int], split: int) -> bool:
    """Tell whether a split has room for the askings of a question, in each of their domains."""
    return all(room[domain][split] >= number for domain, number in needed.items())


def _hash(seed: int, key: str) -> float:
    """Return a number in [0, 1) that depends on the seed and a text alone."""
    digest = hashlib.blake2b(f"{seed} {key}".encode(errors="surrogatepass"), digest_size=6).digest()
    return int.from_bytes(digest) / 2**48


def _draw_split(chance: float, room: Sequence[int], fits: Sequence[bool]) -> int | None:
    """Return the split of a question, by a random number in [0, 1).

    `room` has the free places of each split. A split with twice as many has twice the probability.
    `fits` says which splits have room for all askings of the question. If the drawn split has none,
    the split with most free places among those that have room is returned; None if there is none.
    """
    total = sum(room)
    for split, end in enumerate(accumulate(room)):
        if chance * total < end:
            if fits[split]:
                return split
            break
    fitting = [split for split, fit in enumerate(fits) if fit]
    return max(fitting, key=room.__getitem__, default=None)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Tables:
    """The tables of a collection."""

    docs: pl.DataFrame
    """Answers with their side and domain."""
    queries: pl.DataFrame
    """Questions."""
    qrels: pl.DataFrame
    """Judgments with the number of their split."""


class _Answer(NamedTuple):
    """A row of documents; its fields are the columns."""

    id: str
    """Id of the document."""
    text: str
    """The answer."""
    source: str
    """Side that wrote it."""
    domain: str
    """Domain of its question."""


def _tables(
    questions: Sequence[AnsweredQuestion], splits: Sequence[int], sources: tuple[str, str]
) -> _Tables:
    """Return documents, queries and judgments.

    The answers to one asking of a question are relevant to all its askings.
    """
    answers, queries = list[_Answer](), list[tuple[str, str, str]]()
    answer_ids = defaultdict[str, list[str]](list)
    for number, question in enumerate(questions):
        query = str(number)
        queries.append((query, question.text, question.domain))
        for answer in _answers(query, question, sources):
            answers.append(answer)
            answer_ids[question.key].append(answer.id)
    judgments = list[tuple[str, str, int, int]]()
    for number, (question, split) in enumerate(zip(questions, splits, strict=True)):
        for answer_id in answer_ids[question.key]:
            judgments.append((str(number), answer_id, 1, split))
    # As in other collections, documents by people come first.
    answers.sort(key=lambda answer: sources.index(answer.source))
    answer_columns = dict.fromkeys(_Answer._fields, pl.String)
    query_columns = dict.fromkeys(("id", "text", "domain"), pl.String)
    columns = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32, "split": pl.Int64}
    return _Tables(
        docs=pl.DataFrame(answers, schema=answer_columns, orient="row"),
        queries=pl.DataFrame(queries, schema=query_columns, orient="row"),
        qrels=pl.DataFrame(judgments, schema=columns, orient="row"),
    )


def _answers(query: str, question: AnsweredQuestion, sources: tuple[str, str]) -> Iterator[_Answer]:
    """Yield the answers of both sides, in the order of a hash of their texts.

    Ids are numbered in this order. So if scores are tied and ids decide, neither side is favoured.
    """
    human, llm = sources
    texts = [*((text, human) for text in question.human), *((text, llm) for text in question.llm)]
    texts.sort(key=lambda pair: _hash(0, pair[0]))
    for number, (text, source) in enumerate(texts):
        yield _Answer(id=f"{query}_{number}", text=text, source=source, domain=question.domain)


def _counts(
    answered: AnsweredQuestions,
    splits: Sequence[int],
    docs: pl.DataFrame,
    qrels: Mapping[str, pl.DataFrame],
    *,
    sources: tuple[str, str],
) -> dict[str, Any]:
    """Return the numbers of the collection by name, and of what was left out."""
    questions, empty_answers = answered.questions, answered.empty_answers
    human, llm = sources
    without_human = [question for question in questions if not question.human]
    without_llm = [question for question in questions if not question.llm]
    distinct_questions = {question.key for question in questions}
    asked_again = len(questions) - len(distinct_questions)
    documents = {name: int((docs["source"] == name).sum()) for name in sources}
    judgments = {split: frame.height for split, frame in qrels.items()}
    empty_by_source = {human: empty_answers.get("human", 0), llm: empty_answers.get("llm", 0)}
    return {
        "queries": len(questions),
        "questions": _domain_sizes(questions, splits),
        "documents": documents,
        "judgments": judgments,
        "empty_answers": empty_by_source,
        "no_answer_of": {human: len(without_human), llm: len(without_llm)},
        "no_answer_at_all": answered.unanswered,
        "asked_again": asked_again,
        "in_several_splits": _texts_in_several_splits(docs, qrels),
    }


def _domain_sizes(
    questions: Sequence[AnsweredQuestion], splits: Sequence[int]
) -> dict[str, dict[str, int]]:
    """Return the number of questions of each domain in each split."""
    domains = [question.domain for question in questions]
    questions_in = Counter(zip(domains, splits, strict=True))
    sizes = {domain: dict.fromkeys(SPLITS, 0) for domain in domains}
    for (domain, split), number in questions_in.items():
        sizes[domain][SPLITS[split]] = number
    return sizes


def _texts_in_several_splits(docs: pl.DataFrame, qrels: Mapping[str, pl.DataFrame]) -> int:
    """Return how many texts of answers occur in more than one split."""
    judged_answers = [
        frame.select(pl.lit(split).alias("split"), id="doc_id").unique()
        for split, frame in qrels.items()
    ]
    answers = docs.join(pl.concat(judged_answers), on="id")
    texts = answers.group_by("text").agg(pl.col("split").n_unique())
    return int((texts["split"] > 1).sum())


def _by_split(counts: Mapping[str, int]) -> str:
    """Write the numbers of the splits, such as ``train 10, dev 2``."""
    return ", ".join(f"{split} {number:,}" for split, number in counts.items())


def summary(answers: RetrievalQA) -> Iterator[tuple[str, str]]:
    """Yield the numbers of the collection, each as a name and a text, to print."""
    counts = answers.counts
    for domain, sizes in counts["questions"].items():
        yield domain, f"{sum(sizes.values()):,} questions: {_by_split(sizes)}"
    yield "judgments", f"{sum(counts['judgments'].values()):,}: {_by_split(counts['judgments'])}"
    for source, number in counts["documents"].items():
        empty = counted(counts["empty_answers"][source], "empty answer", "empty answers")
        without = counted(counts["no_answer_of"][source], "question", "questions")
        yield source, f"{number:,} answers; {empty} left out, {without} without an answer"
    repeated = counted(counts["asked_again"], "question", "questions")
    yield "asked again", f"{repeated}, in the split where they are asked first"
    if counts["error_messages"]:
        errors = counted(
            counts["error_messages"], "answer is an error message", "answers are error messages"
        )
        fate = "judged relevant, as the authors do; --drop-errors leaves them out"
        if answers.collection.spec["drop_errors"]:
            fate = "left out"
        yield "errors", f"{errors}, {fate}"
    if counts["in_several_splits"]:
        texts = counted(counts["in_several_splits"], "text is an answer", "texts are answers")
        yield "repeated", f"{texts} to questions of more than one split"
    if counts["no_answer_at_all"]:
        unanswered = counted(counts["no_answer_at_all"], "question", "questions")
        yield "no answer", f"{unanswered}, left out"
