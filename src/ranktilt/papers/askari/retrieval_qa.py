"""A collection of questions and the answers of people and of a language model: ChatGPT-RetrievalQA, or one like it."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from typing import Any

import polars as pl

from ranktilt._version import __version__
from ranktilt.data.collection import Collection
from ranktilt.errors import UserError, counted, join_words, shorten
from ranktilt.papers.askari.answered_questions import AnsweredQuestion, AnsweredQuestions

Sizes = tuple[int, int, int]
SPLITS = ("train", "dev", "test")
SHARES = (69.0, 2.5, 28.5)
"""Of training, development and test; they give the published sizes of all five domains, such as 862, 31 and 355."""
ERROR_MESSAGE = re.compile(r"\A!(?:\s|\\n)|There was an error generating a response\s*\Z")
"""What ChatGPT's page says in place of an answer, or below one that broke off; in HC3 also with a literal ``\\n``."""


@dataclass(frozen=True, kw_only=True)
class QARules:
    """How questions are split, and what the two sides are called.

    Each domain is split by `shares`, as the authors do it: development and test are rounded down,
    and training gets what is left. The authors keep the language model's answers that are error
    messages; `drop_errors` leaves them out.
    """

    shares: tuple[float, float, float] = SHARES
    sources: tuple[str, str] = ("human", "chatgpt")
    seed: int = 0
    drop_errors: bool = False

    def __post_init__(self) -> None:
        if not (min(self.shares) >= 0 and 0 < sum(self.shares) < math.inf):
            shown = ",".join(f"{share:g}" for share in self.shares)
            raise UserError(f"expected three shares of at least 0, not all of them 0, got {shown}")
        human, llm = self.sources
        if human == llm:
            raise UserError(f"the two sides need different names, both are called {human!r}")
        for name in self.sources:
            if (
                not name.strip()
                or any(sign in name for sign in "/\\\t\n\r\0")
                or name.startswith(".")
            ):
                raise UserError(
                    f"source {name!r} cannot be part of a file's name; choose another name"
                )


@dataclass(frozen=True)
class RetrievalQA:
    """Answers of both sides in one collection, judged for each split."""

    collection: Collection
    """With the judgments of the test split."""
    qrels: Mapping[str, pl.DataFrame]
    """The judgments of each split, of both sides."""
    sources: tuple[str, str]
    counts: Mapping[str, Any]

    def side(self, source: str, split: str) -> Collection:
        """Return the answers of one side, with its judgments of one split: what is trained on or searched."""
        docs = self.collection.docs.filter(pl.col("source") == source)
        judged = self.qrels[split].join(
            docs.select(doc_id="id"), on="doc_id", how="semi", maintain_order="left"
        )
        return Collection(docs, self.collection.queries, judged, {"source": source, "split": split})


def build_retrieval_qa(answered: AnsweredQuestions, rules: QARules | None = None) -> RetrievalQA:
    """Make a collection of answers, and split the questions.

    Every question is a query and every answer a document, relevant to its question with grade 1.
    Askings of one question, equal after folding, stay queries of their own, as published, but stand
    in one split, and each other's answers are relevant to them. Ids are running numbers; the number
    of an answer says nothing of its side.

    Askari et al., *A Test Collection of Synthetic Documents for Training Rankers*, CIKM 2023.
    `UserError` where a domain is too small for its split.
    """
    rules = rules or QARules()
    errors = sum(bool(ERROR_MESSAGE.search(text)) for one in answered.questions for text in one.llm)
    if rules.drop_errors:
        answered = _without_errors(answered, rules.sources[1])
    domains = Counter(one.domain for one in answered.questions)
    sizes = {name: _by_share(name, n, rules.shares) for name, n in domains.items()}
    kept = list(
        zip(answered.questions, assign_splits(answered.questions, sizes, rules.seed), strict=True)
    )
    docs, queries, judged = _tables(kept, rules.sources)
    qrels = {
        name: judged.filter(pl.col("split") == number).drop("split")
        for number, name in enumerate(SPLITS)
    }
    counts = {**_counts(answered, kept, docs, qrels, rules.sources), "error_messages": errors}
    how = {"fields": asdict(answered.fields), **asdict(rules)}
    spec = {
        "built": "retrieval-qa",
        "split": "test",
        "ranktilt": __version__,
        **how,
        "counts": counts,
    }
    files = {"files": [str(file) for file in answered.files]}
    last = (
        qrels["test"]
        if qrels["test"].height
        else next((one for one in qrels.values() if one.height), judged)
    )
    return RetrievalQA(
        Collection(docs, queries, last, {**spec, **files}), qrels, rules.sources, counts
    )


def _without_errors(answered: AnsweredQuestions, source: str) -> AnsweredQuestions:
    """Leave out the language model's answers that are error messages, and questions that have no other."""
    questions = [
        replace(one, llm=tuple(text for text in one.llm if not ERROR_MESSAGE.search(text)))
        for one in answered.questions
    ]
    left = tuple(one for one in questions if one.human or one.llm)
    if not any(one.llm for one in left):
        raise UserError(f"no answer of {source} is left without those that are error messages")
    return replace(
        answered, questions=left, unanswered=answered.unanswered + len(questions) - len(left)
    )


def _by_share(name: str, n: int, shares: Sequence[float]) -> Sizes:
    """Share `n` questions out; a split that has a share gets one at least."""
    wanted = [share > 0 for share in shares]
    if n < sum(wanted):
        splits = join_words([split for split, one in zip(SPLITS, wanted, strict=True) if one])
        questions = counted(n, "question", "questions")
        raise UserError(
            f"domain {name!r} has {questions}, too few for its split: {splits} need one each"
        )
    # Of 1,000, 28.5 % are 285, which floating point may put a hair below.
    sizes = [
        max(int(one), int(n * share / sum(shares) + 1e-9))
        for one, share in zip(wanted, shares, strict=True)
    ]
    largest = sizes.index(max(sizes)) if not wanted[0] or n - sum(sizes[1:]) < 1 else 0
    sizes[largest] += n - sum(sizes)
    return sizes[0], sizes[1], sizes[2]


def assign_splits(
    questions: Sequence[AnsweredQuestion], sizes: Mapping[str, Sizes], seed: int
) -> list[int]:
    """Assign each question a split, by number.

    Each domain gets exactly its sizes, and askings of one question one split. A question's split
    depends on the seed, its text and the others of its domain; not on their order, nor on another
    domain unless it shares a question.
    """
    groups = defaultdict[str, list[int]](list)
    for number, one in enumerate(questions):
        groups[one.key].append(number)
    room = {name: [*given] for name, given in sizes.items()}
    found = [0] * len(questions)
    order = {key: _hash(seed, key) for key in groups}
    # What is asked more than once goes first, while every split has room for it.
    for key in sorted(groups, key=lambda key: (-len(groups[key]), order[key])):
        members = groups[key]
        needed = Counter(questions[number].domain for number in members)
        fits = [
            all(room[name][split] >= n for name, n in needed.items())
            for split in range(len(SPLITS))
        ]
        split = _draw_split(order[key], room[min(needed)], fits)
        if split is None:
            asked = f"{shorten(questions[members[0]].text, 60)} is asked {len(members)} times"
            names = " and ".join(map(repr, needed))
            raise UserError(
                f"domain {names} is too small for its split: {asked}, and no split has room for all of them"
            )
        for number in members:
            found[number] = split
            room[questions[number].domain][split] -= 1
    return found


def _hash(seed: int, key: str) -> float:
    """A number in [0, 1) that the seed and a question's text give."""
    digest = hashlib.blake2b(f"{seed} {key}".encode(errors="surrogatepass"), digest_size=6).digest()
    return int.from_bytes(digest) / 2**48


def _draw_split(chance: float, room: Sequence[int], fits: Sequence[bool]) -> int | None:
    """The split that a chance in [0, 1) falls on, by the room of each; else the roomiest that fits, or none."""
    total, ends = sum(room), accumulate(room)
    drawn = next((split for split, end in enumerate(ends) if chance * total < end), None)
    if drawn is not None and fits[drawn]:
        return drawn
    return max(
        (split for split, fit in enumerate(fits) if fit),
        key=lambda split: room[split],
        default=None,
    )


def _tables(
    questions: Sequence[tuple[AnsweredQuestion, int]], sources: tuple[str, str]
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Documents, queries, and judgments with the number of their split."""
    docs, queries = list[tuple[str, str, str, str]](), list[tuple[str, str, str]]()
    answers, asked = defaultdict[str, list[str]](list), list[tuple[str, str, int]]()
    for number, (one, split) in enumerate(questions):
        query = str(number)
        queries.append((query, one.text, one.domain))
        asked.append((query, one.key, split))
        both = [
            (text, source)
            for source, side in zip(sources, (one.human, one.llm), strict=True)
            for text in side
        ]
        # Ordered by a hash of the text: where scores are tied and ids decide, no side is ahead.
        for place, (text, source) in enumerate(sorted(both, key=lambda pair: _hash(0, pair[0]))):
            docs.append((f"{query}_{place}", text, source, one.domain))
            answers[one.key].append(f"{query}_{place}")
    rows = [(query, doc, 1, split) for query, key, split in asked for doc in answers[key]]
    names = dict.fromkeys(("id", "text", "source", "domain"), pl.String)
    judged = {"query_id": pl.String, "doc_id": pl.String, "grade": pl.Int32, "split": pl.Int64}
    docs.sort(
        key=lambda row: sources.index(row[2])
    )  # as in other collections, what people wrote comes first
    return (
        pl.DataFrame(docs, schema=names, orient="row"),
        pl.DataFrame(
            queries, schema=dict.fromkeys(("id", "text", "domain"), pl.String), orient="row"
        ),
        pl.DataFrame(rows, schema=judged, orient="row"),
    )


def _counts(
    answered: AnsweredQuestions,
    kept: Sequence[tuple[AnsweredQuestion, int]],
    docs: pl.DataFrame,
    qrels: Mapping[str, pl.DataFrame],
    sources: tuple[str, str],
) -> dict[str, Any]:
    by_split = Counter((one.domain, split) for one, split in kept)
    again = Counter(one.key for one, _ in kept)
    split_of = pl.concat(
        [
            one.select(pl.lit(name).alias("split"), id="doc_id").unique()
            for name, one in qrels.items()
        ]
    )
    answers = docs.join(split_of, on="id").group_by("text").agg(pl.col("split").n_unique())
    sides = ("human", "llm")
    return {
        "queries": len(kept),
        "questions": {
            domain: {name: by_split[domain, number] for number, name in enumerate(SPLITS)}
            for domain in dict.fromkeys(one.domain for one, _ in kept)
        },
        "documents": {name: int((docs["source"] == name).sum()) for name in sources},
        "judgments": {name: one.height for name, one in qrels.items()},
        "empty_answers": {
            name: answered.empty_answers.get(side, 0)
            for name, side in zip(sources, sides, strict=True)
        },
        "no_answer_of": {
            name: sum(not getattr(one, side) for one, _ in kept)
            for name, side in zip(sources, sides, strict=True)
        },
        "no_answer_at_all": answered.unanswered,
        "asked_again": sum(n - 1 for n in again.values()),
        "in_several_splits": int((answers["split"] > 1).sum()),
    }


def _by_split(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {n:,}" for name, n in counts.items())


def summary(built: RetrievalQA) -> Iterator[tuple[str, str]]:
    """Yield what was built: a name, and what is said of it."""
    counts = built.counts
    for domain, sizes in counts["questions"].items():
        yield domain, f"{sum(sizes.values()):,} questions: {_by_split(sizes)}"
    yield "judgments", f"{sum(counts['judgments'].values()):,}: {_by_split(counts['judgments'])}"
    for source, n in counts["documents"].items():
        empty = counted(counts["empty_answers"][source], "empty answer", "empty answers")
        without = counted(counts["no_answer_of"][source], "question", "questions")
        yield source, f"{n:,} answers; {empty} left out, {without} without any"
    yield (
        "asked again",
        f"{counted(counts['asked_again'], 'question', 'questions')}, in the split of the first asking",
    )
    if counts["error_messages"]:
        kept = "judged relevant, as the authors do; --drop-errors leaves them out"
        errors = counted(
            counts["error_messages"], "answer is an error message", "answers are error messages"
        )
        yield "errors", f"{errors}, {'left out' if built.collection.spec['drop_errors'] else kept}"
    if counts["in_several_splits"]:
        texts = counted(counts["in_several_splits"], "text is an answer", "texts are answers")
        yield "repeated", f"{texts} to questions of more than one split"
    if counts["no_answer_at_all"]:
        yield (
            "no answer",
            f"{counted(counts['no_answer_at_all'], 'question', 'questions')}, left out",
        )
