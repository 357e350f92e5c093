"""Rankers that ask a language model.

The passages of a query are its candidates: the documents of the first stage's ranking. They are put
into order by a *sorting*, such as a heap sort, whose comparisons are questions to the model. It is
a generator: it yields the *listings* that it wants to ask about next, each the passages of one
prompt, and is sent a *reading* of each answer. The sortings of all queries run in rounds, so that
the prompts of a round are asked together. Answers are read strictly, and counted by kind
(`answers`). The *journal* keeps all answers of earlier runs, so that none is paid for twice. The
*spec* of a run says how it was made.

`chance` is always a source of random numbers. It decides what answers leave open, with a seed.
"""

from __future__ import annotations

import hashlib
import operator
import random
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from ranktilt.data.collection import TEXT_CHOICES, Collection
from ranktilt.data.runs.run import Run
from ranktilt.errors import UserError, counted
from ranktilt.llm.base import LARGEST_SEED, LLM, Answer, Prompt, Reply, Sampling, llm
from ranktilt.llm.estimate import Rehearsal, counting
from ranktilt.llm.journal import Request, journal_of, journalled
from ranktilt.llm.prompts import Slots, cut_tokens, fill, find_prompt, parse_slots
from ranktilt.rankers.base import (
    Ranker,
    readable_texts,
    require_choices,
    require_depth,
    require_range,
    reranked_run,
)
from ranktilt.rankers.candidates import Candidates
from ranktilt.rankers.llm.answers import (
    CUT_OFF,
    REFUSED,
    UNANSWERED,
    AnswerCounts,
    Reading,
    read_choice,
    read_ranking,
    require_answers,
)
from ranktilt.rankers.llm.passage_text import one_line

Scores = npt.NDArray[np.float64]
"""Scores of passages: higher is better."""
Listing = tuple[int, ...]
"""Candidates in the order of a prompt, by their position in the first stage's ranking."""
Asker = Callable[..., Generator[Reply, None, None]]
"""Function that answers requests: `journalled` asks the model, a `Rehearsal` only counts them."""
Result = TypeVar("Result")
"""Result of a sorting."""
Sorting = Generator[list[Listing], list[Reading], Scores]
"""A sorting of candidates: it yields the next prompts, and ends with a score for each candidate."""

RANKING_FORMAT = (
    "The output format should be [] > [], e.g., [2] > [1]. Name every passage once, the most "
    "relevant one first. Only respond with the ranking, do not say any word or explain."
)
"""Last line of prompts that ask for a ranking."""
CHOICE_FORMAT = (
    "Only respond with the identifier of the chosen passage, e.g., [2]. Do not say any word or "
    "explain."
)
"""Last line of prompts that ask for one passage."""
_SLOTS = ("query", "items", "count", "attribute")
"""Slots that a prompt may have."""
_MODEL_OPTIONS = (
    "base_url",
    "concurrency",
    "timeout",
    "retries",
    "requests_per_minute",
    "device",
    "batch",
    "precision",
    "adapter",
)
"""Options of a ranker that are passed on to its model."""
_FIRST_ANSWERS = 3
"""Number of answers after which a model is refused if none of them has a score.

A single answer without a score may be an error of that call.
"""
_FEWEST_RETURNED = 5
"""Fewest documents of a list that counts in `returned_input`.

Shorter lists keep their order by chance too often; five documents do once in 120 times.
"""
_TEMPLATE_TOKENS = 24
"""Approximate number of tokens that a chat template adds to a prompt."""
_WORD_TOKENS = 64
"""Tokens that an answer may have in addition to the numbers of passages: for a few words."""
_IDENTIFIER_TOKENS = 8
"""Tokens that an answer may have for each passage: its number with brackets and the next sign."""


@dataclass(frozen=True)
class LLMRanker(Ranker):
    """Asks a language model which passages come first.

    This is the base class of listwise, pairwise, setwise and pointwise rankers. The options from
    `base_url` on are options of the model. Passages that an answer does not order are shuffled,
    with the `seed`, so that no group gains by it.
    """

    argument: ClassVar[str | None] = "llm"
    scores_any_document: ClassVar[bool] = False
    prompts: ClassVar[tuple[str, ...]]
    """Names of the ranker's prompts, the default first."""
    chooses: ClassVar[bool] = False
    """Whether an answer names a single passage, and not a ranking."""
    needed: ClassVar[tuple[str, ...]] = ("query", "items")
    """Slots that a prompt must have; the passages are in the last one."""
    order_only: ClassVar[bool] = True
    """Whether only the order of the scores has a meaning."""
    logprobs: ClassVar[bool] = False
    """Whether a request asks for the log-probabilities of the answer's tokens."""

    llm: str
    """Model, as users type it."""
    k: int | None = field(default=None, kw_only=True)
    """Number of documents to return for each query; None for all candidates."""
    text: str = field(default="title+text", kw_only=True)
    """Part of a document to read."""
    prompt: str | None = field(default=None, kw_only=True)
    """Name or file of the prompt; None for the ranker's own."""
    attribute: str | None = field(default=None, kw_only=True)
    """Name of a group, for prompts with a slot ``{attribute}``."""
    passage_tokens: int = field(default=300, kw_only=True)
    """Tokens after which a passage is cut; 0 for no cut."""
    context: int | None = field(default=None, kw_only=True)
    """Tokens that the model can read; None if it says so itself."""
    max_failures: float = field(default=100.0, kw_only=True)
    """Percentage of answers that may be unreadable."""
    temperature: float = field(default=0.0, kw_only=True)
    """Sampling temperature of the model; 0 for its likeliest answer."""
    seed: int = field(default=0, kw_only=True)
    """Seed of the model's sampling, and of every random choice of the ranker."""
    base_url: str | None = field(default=None, kw_only=True)
    """Address of the model's server."""
    concurrency: int | None = field(default=None, kw_only=True)
    """Number of requests that are under way at the same time."""
    timeout: float | None = field(default=None, kw_only=True)
    """Seconds to wait for an answer."""
    retries: int | None = field(default=None, kw_only=True)
    """Times that a failed request is sent again."""
    requests_per_minute: int | None = field(default=None, kw_only=True)
    """Most requests in a minute."""
    device: str | None = field(default=None, kw_only=True)
    """Device of a local model; None chooses one."""
    batch: int | None = field(default=None, kw_only=True)
    """Prompts that a local model reads together."""
    precision: str | None = field(default=None, kw_only=True)
    """Arithmetic of a local model."""
    adapter: str | None = field(default=None, kw_only=True)
    """Folder of a LoRA adapter for a local model."""

    def __post_init__(self) -> None:
        require_depth(self.name, self.k)
        require_choices(self, text=TEXT_CHOICES)
        require_range(self, "max_failures", least=0, most=100)
        require_range(self, "passage_tokens", least=0)
        require_range(self, "seed", least=0, most=LARGEST_SEED)
        require_range(self, "context", least=1)

    # Methods in which the kinds of rankers differ

    @abstractmethod
    def sort(self, count: int, chance: random.Random) -> Sorting:
        """Order `count` candidates by the answers to the prompts that this generator yields.

        `chance` decides what the answers leave open.
        """

    @abstractmethod
    def most_shown(self, count: int) -> int:
        """Return the largest number of passages in a prompt, if there are `count` candidates."""

    @abstractmethod
    def most_requests(self, count: int) -> int:
        """Return the largest number of prompts that it takes to order `count` candidates."""

    @property
    def model_text(self) -> str:
        """The model as you would type it; with an adapter it is another model."""
        return self.llm if self.adapter is None else f"{self.llm}(adapter={self.adapter})"

    # Ranking

    def model(self) -> LLM:
        """Return the language model with this ranker's options, neither loaded nor asked yet."""
        return llm(self.llm, **{name: getattr(self, name) for name in _MODEL_OPTIONS})

    def check(self) -> None:
        """Refuse a prompt that does not fit, and a model that cannot answer, before any request."""
        self._template()
        self.model().check()

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        """Ask about the candidates; the run's spec counts tokens, and answers by kind."""
        return self._ranked(collection, run, journalled)

    def rehearse(
        self, collection: Collection, run: Run | None = None, *, certain: bool = True
    ) -> tuple[Run, Rehearsal]:
        """Rank without asking the model, to know how many requests and tokens it would take.

        Answers come from the journal, which has those of earlier runs. If it has none, the answer
        is that of a model that agrees with the first stage. Returns the resulting run, and counts
        of what would be asked. `certain` is passed on to `Rehearsal`.
        """
        rehearsal = Rehearsal(self.model(), certain=certain)
        lengths = Candidates.from_run(collection, run, self).lengths.tolist()
        rehearsal.most = sum(map(self.most_requests, lengths))
        return self._ranked(collection, run, rehearsal), rehearsal

    def agreeing_answer(self, listing: Listing) -> str:
        """Return the answer of a model that agrees with the first stage."""
        order = sorted(range(len(listing)), key=listing.__getitem__)
        best = order[:1] if self.chooses else order
        return " > ".join(f"[{position + 1}]" for position in best)

    def _ranked(self, collection: Collection, run: Run | None, asker: Asker) -> Run:
        """Rank the candidates by the answers that `asker` returns."""
        candidates = Candidates.from_run(collection, run, self)
        self._template()  # refuses a wrong prompt before texts are read
        texts = readable_texts(self, collection).gather(candidates.rows).to_list()
        passages = [cut_tokens(text, self.passage_tokens) for text in texts]
        ends = np.cumsum(candidates.lengths)
        tasks = []
        for query, start, end in zip(
            candidates.texts, ends - candidates.lengths, ends, strict=True
        ):
            tasks.append(Task(query=query, passages=list(map(one_line, passages[start:end]))))
        chances = [random.Random(f"{self.seed} {name}") for name in candidates.names]
        scores, spec = self.score(tasks, chances, asker=asker)
        if self.passage_tokens:
            is_cut = np.array(list(map(operator.ne, passages, texts)), dtype=bool)
            spec |= candidates.truncated(is_cut, self.passage_tokens, collection)
        if self.order_only:
            spec["order_only"] = True
        spec["returned_input"] = returned_input(scores)
        return reranked_run(
            self,
            collection,
            candidates,
            scores=np.concatenate([np.empty(0), *scores]),
            spec=spec,
        )

    def score(
        self, tasks: Sequence[Task], chances: Sequence[random.Random], *, asker: Asker = journalled
    ) -> tuple[list[Scores], dict[str, Any]]:
        """Return scores for the passages of each task, and how they were computed, for a spec.

        `chances` has a source of random numbers for each task, and `asker` answers the requests.
        """
        sortings = [
            self.sort(len(task.passages), chance)
            for task, chance in zip(tasks, chances, strict=True)
        ]
        request_count = sum(self.most_requests(len(task.passages)) for task in tasks)
        return self.ask(tasks, sortings, planned=request_count, asker=asker)

    def prompt_text(self, text: str) -> str:
        """Return a passage as a prompt shows it: cut, and on one line; see `one_line`."""
        return one_line(cut_tokens(text, self.passage_tokens))

    def ask(
        self,
        tasks: Sequence[Task],
        sortings: Sequence[Generator[list[Listing], list[Reading], Result]],
        *,
        planned: int = 0,
        asker: Asker = journalled,
    ) -> tuple[list[Result], dict[str, Any]]:
        """Run all sortings to their ends: ask what they yield, round after round.

        Returns the result of each sorting and, for a spec, the model, the prompt and counts of the
        answers.

        Parameters
        ----------
        tasks : sequence of Task
            Queries and passages.
        sortings : sequence of generator
            A sorting for each task.
        planned : int, optional
            Expected number of prompts, as the total of the progress; it grows if there are more.
        asker : callable, optional
            Function that answers the requests: `journalled`, or a `Rehearsal`.
        """
        template = self._template()
        model, counts = self.model(), AnswerCounts()
        is_rehearsal = isinstance(asker, Rehearsal)
        if not is_rehearsal:
            model.check()
        self.require_room(model, tasks)
        sampling = Sampling(
            temperature=self.temperature,
            max_tokens=self.answer_tokens(tasks),
            seed=self.seed,
            logprobs=self.logprobs,
        )
        rounds = _Rounds(sortings)
        with journal_of(model) as journal:
            while questions := rounds.next_questions():
                prompts = [
                    fill(template.slots, self.values(tasks[question.task], question.listing))
                    for question in questions
                ]
                if isinstance(asker, Rehearsal):
                    asker.answers = [
                        self.agreeing_answer(question.listing) for question in questions
                    ]
                replies = asker(
                    model,
                    [Request(prompt=Prompt(text=prompt)) for prompt in prompts],
                    journal,
                    sampling=sampling,
                    label=f"{self!r}: asking",
                    total=max(planned, counts.requests + len(questions)),
                    before=counts.requests,
                )
                readings = self._read_replies(replies, questions, counts)
                rounds.answer(questions, readings)
        require_answers(
            repr(self),
            counts.spec["llm_answers"],
            100.0 if is_rehearsal else self.max_failures,
            "max_failures",
        )
        return rounds.all_results(), {"llm": {**model.spec, **template.spec}, **counts.spec}

    def _read_replies(
        self,
        replies: Generator[Reply, None, None],
        questions: Sequence[_RankingQuestion],
        counts: AnswerCounts,
    ) -> list[Reading]:
        """Read and count the replies to some questions; return the readings in their order.

        Replies come in any order, and each is read as soon as it arrives. So a model that gives no
        scores is refused after a few answers, and not after all of them were paid for.
        """
        arrived, readings = dict[int, Reply](), dict[int, Reading]()
        with closing(replies):
            for reply in replies:
                number = reply.number
                arrived[number] = reply
                readings[number] = self._read(reply, len(questions[number].listing))
                if len(readings) in (_FIRST_ANSWERS, len(questions)):
                    self.require_scores(list(readings.values()))
        # Counted in the order of the questions, because the first unreadable answer is kept as an
        # example, which should not depend on the order of arrival.
        for number in range(len(questions)):
            counts.add(arrived[number], readings[number])
        return [readings[number] for number in range(len(questions))]

    def _read(self, reply: Reply, count: int) -> Reading:
        """Read the reply to a prompt about `count` passages."""
        answer = reply.answer
        if answer is None:
            return Reading(kind=UNANSWERED)
        if answer.finish == "content_filter":
            return Reading(kind=REFUSED)
        if answer.finish == "length" and not answer.text.strip():
            # All tokens went into reasoning, which the server does not put into the text.
            return Reading(kind=CUT_OFF)
        return self.read(answer, count)

    def require_scores(self, readings: Sequence[Reading]) -> None:
        """Refuse a model if none of these answers has what scores are made of.

        By default nothing is refused; a ranker that needs more than an order overrides this.
        """

    def read(self, answer: Answer, count: int) -> Reading:
        """Read an answer about `count` passages: a choice or a ranking, by the kind of ranker."""
        return (read_choice if self.chooses else read_ranking)(answer.text, count)

    def full_order(self, listing: Listing, reading: Reading, chance: random.Random) -> list[int]:
        """Order a prompt's passages as an answer does; passages that it leaves out are shuffled."""
        rest = [position for position in range(len(listing)) if position not in reading.order]
        chance.shuffle(rest)
        return [listing[position] for position in (*reading.order, *rest)]

    # Prompts

    def _template(self) -> RankingPrompt:
        """Read the prompt; refuse one whose slots do not fit the ranker and its attribute."""
        name = self.prompt or self.default_prompt
        file = find_prompt(name, self.prompts, "ranktilt.rankers.llm", slot=self.needed[-1])
        valid_slots = _SLOTS if "items" in self.needed else (*self.needed, "attribute")
        slots = parse_slots(file.text, file.location, valid_slots)
        used = {slot for _, slot in slots}
        for needed in self.needed:
            if needed not in used:
                raise UserError(f"{file.location}: expected {{{needed}}}, and found none")
        if "attribute" in used and self.attribute is None:
            raise UserError(
                f"{file.location}: the slot {{attribute}} needs a value: "
                f"{self.name}:{self.llm}(attribute=…)"
            )
        if self.attribute is not None and "attribute" not in used:
            raise UserError(
                f"{file.location}: attribute={self.attribute} is set, but the prompt has no "
                f"{{attribute}}"
            )
        ending = f"\n{self.answer_format}"
        return RankingPrompt(
            name=file.name,
            slots=(*slots, (ending, None)),
            sha256=hashlib.sha256(f"{file.text}{ending}".encode()).hexdigest(),
        )

    @property
    def default_prompt(self) -> str:
        """Name of the prompt if the user names none."""
        return self.prompts[0]

    @property
    def answer_format(self) -> str:
        """Last line of every prompt, which says how to answer."""
        return CHOICE_FORMAT if self.chooses else RANKING_FORMAT

    def prompts_of(self, tasks: Iterable[Task]) -> list[str]:
        """Return for each task the prompt that shows all of its passages in their order."""
        slots = self._template().slots
        return [fill(slots, self.values(task, tuple(range(len(task.passages))))) for task in tasks]

    def values(self, task: Task, listing: Listing) -> dict[str, str]:
        """Return the texts that fill the slots of a prompt."""
        items = "\n".join(
            f"[{number}] {task.passages[position]}" for number, position in enumerate(listing, 1)
        )
        return {
            "query": one_line(task.query),
            "items": items,
            "count": str(len(listing)),
            "attribute": self.attribute or "",
        }

    def answer_tokens(self, tasks: Sequence[Task]) -> int:
        """Return how many tokens an answer may have."""
        most = max((self.most_shown(len(task.passages)) for task in tasks), default=1)
        return _WORD_TOKENS + _IDENTIFIER_TOKENS * (1 if self.chooses else most)

    def require_room(self, model: LLM, tasks: Sequence[Task]) -> None:
        """Refuse prompts that the model's context cannot hold, before the first request."""
        context = self.context or model.context
        if context is None:
            return
        count = counting(model).count
        distinct = dict[str, None]()
        for task in tasks:
            distinct.update(dict.fromkeys((task.query, *task.passages)))
        tokens = dict(zip(distinct, count(list(distinct)), strict=True))
        literals = [literal for literal, _ in self._template().slots]
        # The line break and the number before each passage.
        (number_tokens,) = count(["\n[10] "])
        # All tokens of a prompt and its answer, except those of the query and the passages.
        other_tokens = sum(count(literals)) + _TEMPLATE_TOKENS + self.answer_tokens(tasks)
        for task in tasks:
            most = self.most_shown(len(task.passages))
            # Any passages may be in one prompt together, so there must be room for the longest.
            lengths = sorted((tokens[text] + number_tokens for text in task.passages), reverse=True)
            total = sum(lengths[:most]) + other_tokens + tokens[task.query]
            if total > context:
                raise UserError(
                    f"{self!r}: {counted(most, 'passage', 'passages')} and the answer may take "
                    f"{total:,} tokens, more than the context of {context:,}; use a smaller "
                    "window, or shorter passages (passage_tokens)"
                )


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """A query, and its candidates' texts as prompts show them."""

    query: str
    """Text of the query."""
    passages: list[str]
    """Texts of the candidates, in the order of the first stage."""


@dataclass(frozen=True, kw_only=True)
class RankingPrompt:
    """A prompt with slots, whose last line says how to answer."""

    name: str
    """Name of the prompt."""
    slots: Slots
    """Text with its slots."""
    sha256: str
    """Hash of the text."""

    @property
    def spec(self) -> dict[str, str]:
        """Name and hash, for a run's spec."""
        return {"prompt": self.name, "prompt_sha256": self.sha256}


@dataclass(frozen=True, kw_only=True)
class _RankingQuestion:
    """A prompt of a task: some of its candidates in an order."""

    task: int
    """Index of the task."""
    listing: Listing
    """Candidates in the order of the prompt."""


class _Rounds(Generic[Result]):
    """The sortings of all tasks, which ask in rounds; each has a result when it ends.

    `next_questions` and `answer` take turns, until nothing is asked any more.
    """

    def __init__(self, sortings: Sequence[Generator[list[Listing], list[Reading], Result]]) -> None:
        self._sortings = sortings
        # What is sent next to each sorting that has not ended; a generator starts with None.
        self._readings: dict[int, list[Reading] | None] = dict.fromkeys(range(len(sortings)))
        # The results of the sortings that have ended, by their task.
        self._results = dict[int, Result]()

    def next_questions(self) -> list[_RankingQuestion]:
        """Send each sorting its readings of the last round; return the next round's questions."""
        questions = list[_RankingQuestion]()
        for task, readings in self._readings.items():
            try:
                listings = self._sortings[task].send(readings)  # type: ignore[arg-type]
                while not listings:  # a sorting without a question in this round goes on
                    listings = self._sortings[task].send([])
            except StopIteration as end:
                self._results[task] = end.value
            else:
                questions += [_RankingQuestion(task=task, listing=listing) for listing in listings]
        return questions

    def answer(self, questions: Sequence[_RankingQuestion], readings: Sequence[Reading]) -> None:
        """Keep the readings of a round, which are in the order of its questions, by task."""
        by_task = dict[int, list[Reading]]()
        for question, reading in zip(questions, readings, strict=True):
            by_task.setdefault(question.task, []).append(reading)
        self._readings = {**by_task}

    def all_results(self) -> list[Result]:
        """Return the results of all sortings, after all of them have ended."""
        return [self._results[task] for task in range(len(self._sortings))]


def scores_of_order(order: Sequence[int]) -> Scores:
    """Return a score for each candidate: n for the first of an order of n, then n − 1, …, 1."""
    scores = np.empty(len(order))
    scores[list(order)] = np.arange(len(order), 0, -1)
    return scores


def returned_input(scores: Sequence[Scores]) -> dict[str, int]:
    """Count the lists that a model returned in the order in which it got them.

    A model that repeats its input does not rank. Only lists of five documents or more count.
    `scores` has the scores of each list's documents, in the order of the candidates.
    """
    counted_lists = [list_scores for list_scores in scores if len(list_scores) >= _FEWEST_RETURNED]
    returned = sum(bool((np.diff(list_scores) < 0).all()) for list_scores in counted_lists)
    return {"lists": returned, "of": len(counted_lists)}
