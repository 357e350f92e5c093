# ruff: noqa: RUF001
"""Rankers that ask a language model: prompts of all queries go out together, answers are read strictly and counted."""

from __future__ import annotations

import hashlib
import random
import re
import unicodedata
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from ranktilt.data.collection import TEXT_CHOICES, Collection
from ranktilt.data.run import Run
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

Scores = npt.NDArray[np.float64]
Listing = tuple[int, ...]
"""Candidates of a query, by their place in the first stage's ranking, in the order in which a prompt lists them."""
Asker = Callable[..., Generator[Reply, None, None]]
"""Answers requests: `journalled`, or a `Rehearsal`."""
Found = TypeVar("Found")
Sorting = Generator[list[Listing], list[Reading], Scores]
"""Asks about candidates, some prompts at a time, and ends with a score for each."""

RANKING_FORMAT = (
    "The output format should be [] > [], e.g., [2] > [1]. Name every passage once, the most relevant one first. Only "
    "respond with the ranking, do not say any word or explain."
)
CHOICE_FORMAT = "Only respond with the identifier of the chosen passage, e.g., [2]. Do not say any word or explain."
_SLOTS = ("query", "items", "count", "attribute")
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
_FIRST_ANSWERS = 3
"""Answers after which a model is refused that lacks in all of them what scores need; one may be a fault."""
_LONG = 5
"""Documents from which a list hardly ever keeps its order by chance."""
_TEMPLATE_TOKENS = 24
"""What a chat template adds to a prompt, about."""
_IDENTIFIER_TOKENS = 8

_INVISIBLE = "\u00ad\u034f\u061c\u115f\u1160\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
_OPEN, _CLOSE = r"\[［【〔〖〘〚⟦⟬❲⁅﹇⦋⦍⦏", r"\]］】〕〗〙〛⟧⟭❳⁆﹈⦌⦎⦐"
_BRACKETED = re.compile(f"[{_OPEN}]([\\w {_INVISIBLE}\u0300-\u036f\u20d0-\u20f0]+)[{_CLOSE}]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_MARKER = re.compile(
    rf"([<＜])(?=[{_INVISIBLE}]*(?:[|｜]|[/／]?(?:s|bos|eos|pad|unk|mask|cls|sep)[>＞]|[<＜]?[/／]?SYS[>＞]"
    r"|(?:start|end|begin)_of|end▁of|begin▁of))|(\[)(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS)\])",
    re.I,
)


@dataclass(frozen=True)
class LLMRanker(Ranker):
    """Asks a language model which passages come first; the base of listwise, pairwise, setwise and pointwise.

    The options from `base_url` on are those of the `llm`. What an answer does not put in order is
    shuffled, with the `seed`, so that neither side gains by it.
    """

    argument: ClassVar[str | None] = "llm"
    scores_given: ClassVar[bool] = False
    prompts: ClassVar[tuple[str, ...]]
    """Names of its prompts, the default first."""
    chooses: ClassVar[bool] = False
    """Whether an answer names one passage, not a ranking."""
    needed: ClassVar[tuple[str, ...]] = ("query", "items")
    """Slots that a prompt must have."""
    order_only: ClassVar[bool] = True
    """Whether scores say nothing but the order."""
    logprobs: ClassVar[bool] = False
    """Whether the log-probabilities of an answer's tokens are asked for."""

    llm: str
    k: int | None = field(default=None, kw_only=True)
    text: str = field(default="title+text", kw_only=True)
    prompt: str | None = field(default=None, kw_only=True)
    attribute: str | None = field(default=None, kw_only=True)
    passage_tokens: int = field(default=300, kw_only=True)
    context: int | None = field(default=None, kw_only=True)
    max_failures: float = field(default=1.0, kw_only=True)
    temperature: float = field(default=0.0, kw_only=True)
    seed: int = field(default=0, kw_only=True)
    base_url: str | None = field(default=None, kw_only=True)
    concurrency: int | None = field(default=None, kw_only=True)
    timeout: float | None = field(default=None, kw_only=True)
    retries: int | None = field(default=None, kw_only=True)
    requests_per_minute: int | None = field(default=None, kw_only=True)
    device: str | None = field(default=None, kw_only=True)
    batch: int | None = field(default=None, kw_only=True)
    precision: str | None = field(default=None, kw_only=True)
    adapter: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        require_depth(self.name, self.k)
        require_choices(self, text=TEXT_CHOICES)
        require_range(self, "max_failures", least=0, most=1)
        require_range(self, "passage_tokens", least=0)
        require_range(self, "seed", least=0, most=LARGEST_SEED)
        require_range(self, "context", least=1)

    # What a ranker of this kind says of itself

    @abstractmethod
    def sort(self, count: int, chance: random.Random) -> Sorting:
        """Put `count` candidates in order."""

    @abstractmethod
    def at_once(self, count: int) -> int:
        """Return how many of `count` candidates a prompt shows at most."""

    @abstractmethod
    def requests(self, count: int) -> int:
        """Return how many prompts the order of `count` candidates takes, at most."""

    @property
    def model_text(self) -> str:
        """Who is asked, as one types it: an adapter makes another model."""
        return self.llm if self.adapter is None else f"{self.llm}(adapter={self.adapter})"

    # Ranking

    def model(self) -> LLM:
        """Make the language model; asks and loads nothing."""
        return llm(self.llm, **{name: getattr(self, name) for name in _MODEL_OPTIONS})

    def check(self) -> None:
        self._template()
        self.model().check()

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        """Ask about the candidates; the run's spec counts the answers by kind, and tokens."""
        return self._ranked(collection, run, journalled)

    def rehearse(
        self, collection: Collection, run: Run | None = None, *, certain: bool = True
    ) -> tuple[Run, Rehearsal]:
        """Rank as if the model agreed with the first stage wherever the journal does not know better; asks nothing."""
        rehearsal = Rehearsal(self.model(), certain=certain)
        rehearsal.most = sum(
            map(self.requests, Candidates.from_run(collection, run, self).lengths.tolist())
        )
        return self._ranked(collection, run, rehearsal), rehearsal

    def pretended(self, listing: Listing) -> str:
        """Return the answer of a model that agrees with the first stage."""
        order = sorted(range(len(listing)), key=listing.__getitem__)
        return " > ".join(f"[{place + 1}]" for place in order[: 1 if self.chooses else None])

    def _ranked(self, collection: Collection, run: Run | None, asker: Asker) -> Run:
        found = Candidates.from_run(collection, run, self)
        self._template()
        whole = readable_texts(self, collection)
        cut = [cut_tokens(text, self.passage_tokens) for text in whole.gather(found.rows)]
        passages = list(found.by_query(np.arange(len(cut), dtype=np.float64)))
        tasks = [
            Task(query, [one_line(cut[int(place)]) for place in places])
            for query, (_, places) in zip(found.texts, passages, strict=True)
        ]
        chances = [random.Random(f"{self.seed} {key}") for key in found.names]
        scores, asked = self.score(tasks, chances, asker=asker)
        over = np.array(
            [short != text for short, text in zip(cut, whole.gather(found.rows), strict=True)],
            dtype=bool,
        )
        truncated = (
            found.truncated(over, self.passage_tokens, collection) if self.passage_tokens else {}
        )
        spec = {**asked, **truncated, **({"order_only": True} if self.order_only else {})}
        spec["returned_input"] = returned_input(scores)
        return reranked_run(self, collection, found, np.concatenate([np.empty(0), *scores]), spec)

    def score(
        self, tasks: Sequence[Task], chances: Sequence[random.Random], *, asker: Asker = journalled
    ) -> tuple[list[Scores], dict[str, Any]]:
        """Return scores for the passages of each task, and what a spec says of how; `chances` settle what is open."""
        sortings = [
            self.sort(len(task.passages), chance)
            for task, chance in zip(tasks, chances, strict=True)
        ]
        planned = sum(self.requests(len(task.passages)) for task in tasks)
        return self.ask(tasks, sortings, planned=planned, asker=asker)

    def prompt_text(self, text: str) -> str:
        """Return a text as a prompt shows it: cut, on one line, and without what looks like another one's number."""
        return one_line(cut_tokens(text, self.passage_tokens))

    def ask(
        self,
        tasks: Sequence[Task],
        sortings: Sequence[Generator[list[Listing], list[Reading], Found]],
        *,
        planned: int = 0,
        asker: Asker = journalled,
    ) -> tuple[list[Found], dict[str, Any]]:
        """Ask round after round, in each what every task's sorting wants to know next, until all have ended.

        Returns what each sorting ends with, and what a spec says of the model, the prompt and the
        answers; `planned` prompts are announced.
        """
        slots, (name, digest) = self._template()
        model, rehearsed, counts = self.model(), isinstance(asker, Rehearsal), AnswerCounts()
        if not rehearsed:
            model.check()
        self.require_room(model, tasks)
        sampling = Sampling(
            temperature=self.temperature,
            max_tokens=self.answer_tokens(tasks),
            seed=self.seed,
            logprobs=self.logprobs,
        )
        found = dict[int, Found]()
        answered: dict[int, list[Reading] | None] = dict.fromkeys(range(len(tasks)))
        with journal_of(model) as journal:
            while asked := list(_next_questions(sortings, answered, found)):
                prompts = [
                    Prompt(fill(slots, self.values(tasks[number], listing)))
                    for number, listing in asked
                ]
                requests = [Request(prompt) for prompt in prompts]
                if isinstance(asker, Rehearsal):
                    asker.answers = [self.pretended(listing) for _, listing in asked]
                told = {
                    "label": f"{self!r}: asking",
                    "total": max(planned, counts.requests + len(asked)),
                }
                replies = asker(
                    model, requests, journal, sampling=sampling, before=counts.requests, **told
                )
                with closing(
                    replies
                ) as arriving:  # read as they come: what cannot go on ends before all is asked
                    came = dict[int, tuple[Reply, Reading]]()
                    for reply in arriving:
                        came[reply.number] = reply, self._read(reply, len(asked[reply.number][1]))
                        if len(came) in (_FIRST_ANSWERS, len(asked)):
                            self.require_scores([reading for _, reading in came.values()])
                readings = dict[int, list[Reading]]()
                for place, (number, _) in enumerate(asked):
                    reply, reading = came[place]
                    counts.add(reply, reading)
                    readings.setdefault(number, []).append(reading)
                answered = {**readings}
        most_failed = 1.0 if rehearsed else self.max_failures
        require_answers(
            repr(self),
            counts.spec["llm_answers"],
            most_failed,
            f"max_failures={self.max_failures:g}",
        )
        said = {"llm": {**model.spec, "prompt": name, "prompt_sha256": digest}, **counts.spec}
        return [found[number] for number in range(len(tasks))], said

    def _read(self, reply: Reply, count: int) -> Reading:
        answer = reply.answer
        if answer is None:
            return Reading(UNANSWERED, ())
        if answer.finish == "content_filter":
            return Reading(REFUSED, ())
        if answer.finish == "length" and not answer.text.strip():
            return Reading(
                CUT_OFF, ()
            )  # all tokens went into reasoning, which the server keeps apart
        return self.read(answer, count)

    def require_scores(self, readings: Sequence[Reading]) -> None:
        """Refuse a model whose first answers, or all, lack what their scores need."""

    def read(self, answer: Answer, count: int) -> Reading:
        """Read an answer about `count` passages."""
        return (read_choice if self.chooses else read_ranking)(answer.text, count)

    def completed(self, listing: Listing, reading: Reading, chance: random.Random) -> list[int]:
        """Put what was shown in the order of an answer; what it does not name follows shuffled."""
        rest = [place for place in range(len(listing)) if place not in reading.order]
        chance.shuffle(rest)
        return [listing[place] for place in (*reading.order, *rest)]

    # Prompts

    def _template(self) -> tuple[Slots, tuple[str, str]]:
        """The prompt's slots; its name and hash."""
        name = self.prompt or self.default_prompt
        found = find_prompt(name, self.prompts, "ranktilt.rankers.llm", slot=self.needed[-1])
        slots = parse_slots(
            found.text,
            found.place,
            _SLOTS if "items" in self.needed else (*self.needed, "attribute"),
        )
        used = {slot for _, slot in slots}
        for needed in self.needed:
            if needed not in used:
                raise UserError(f"{found.place}: expected {{{needed}}}, and found none")
        if "attribute" in used and self.attribute is None:
            raise UserError(
                f"{found.place}: {{attribute}} needs one: {self.name}:{self.llm}(attribute=…)"
            )
        if self.attribute is not None and "attribute" not in used:
            raise UserError(
                f"{found.place}: attribute={self.attribute}, and the prompt has no {{attribute}}"
            )
        form = self.answer_format
        digest = hashlib.sha256(f"{found.text}\n{form}".encode()).hexdigest()
        return (*slots, (f"\n{form}", None)), (found.name, digest)

    @property
    def default_prompt(self) -> str:
        """The name of the prompt where none is given."""
        return self.prompts[0]

    @property
    def answer_format(self) -> str:
        """What stands behind every prompt: how to answer."""
        return CHOICE_FORMAT if self.chooses else RANKING_FORMAT

    def prompts_of(self, tasks: Iterable[Task]) -> list[str]:
        """Return for each task the prompt that shows all of its passages in their order."""
        slots, _ = self._template()
        return [fill(slots, self.values(task, tuple(range(len(task.passages))))) for task in tasks]

    def values(self, task: Task, listing: Listing) -> dict[str, str]:
        """Return what fills the slots of a prompt."""
        items = "\n".join(
            f"[{number}] {task.passages[place]}" for number, place in enumerate(listing, 1)
        )
        return {
            "query": one_line(task.query),
            "items": items,
            "count": str(len(listing)),
            "attribute": self.attribute or "",
        }

    def answer_tokens(self, tasks: Sequence[Task]) -> int:
        """Tokens that an answer may have."""
        most = max((self.at_once(len(task.passages)) for task in tasks), default=1)
        return 64 + _IDENTIFIER_TOKENS * (1 if self.chooses else most)

    def require_room(self, model: LLM, tasks: Sequence[Task]) -> None:
        """Refuse, before the first request, prompts that cannot fit."""
        context = self.context or model.context
        if context is None:
            return
        count, (slots, _) = counting(model).count, self._template()
        texts = list(dict.fromkeys(text for task in tasks for text in (task.query, *task.passages)))
        tokens = dict(zip(texts, count(texts), strict=True))
        number, *literals = count(["\n[10] ", *(literal for literal, _ in slots)])
        frame = sum(literals) + _TEMPLATE_TOKENS + self.answer_tokens(tasks)
        for task in tasks:
            most = self.at_once(len(task.passages))
            longest = sorted((tokens[text] + number for text in task.passages), reverse=True)[:most]
            whole = sum(longest) + frame + tokens[task.query]
            if whole > context:
                raise UserError(
                    f"{self!r}: {counted(most, 'passage', 'passages')} and the answer may take {whole:,} tokens, more "
                    f"than the context of {context:,}; use a smaller window, or shorter passages (passage_tokens)"
                )


@dataclass(frozen=True, eq=False)
class Task:
    """A query, and its candidates' texts as a prompt shows them."""

    query: str
    passages: list[str]


def _next_questions(
    sortings: Sequence[Generator[list[Listing], list[Reading], Found]],
    answered: dict[int, list[Reading] | None],
    found: dict[int, Found],
) -> Iterator[tuple[int, Listing]]:
    """Tell sortings what was answered (None begins one), and yield what they ask next; `found` gets their ends."""
    for number, readings in answered.items():
        try:
            while not (wanted := sortings[number].send(readings)):  # type: ignore[arg-type]  # None begins it
                readings = []
            yield from ((number, listing) for listing in wanted)
        except StopIteration as end:
            found[number] = end.value


def in_order(order: Sequence[int]) -> Scores:
    """Return a score for each candidate, falling by one along an order."""
    scores = np.empty(len(order))
    scores[list(order)] = np.arange(len(order), 0, -1)
    return scores


def one_line(text: str) -> str:
    """Return a text as a prompt shows it: on one line, a number in brackets of any script in round ones.

    So no passage can pass for another. Marks by which chat models tell who speaks (``<|im_end|>``,
    ``[INST]``) are broken by a blank, for a server may read them as such.
    """
    plain = _BRACKETED.sub(_round, " ".join(_CONTROL.sub(" ", text).split()))
    return _MARKER.sub(lambda found: f"{found[0]} ", plain)


def _round(found: re.Match[str]) -> str:
    """A bracketed number in round brackets, in plain digits; anything else as it stands."""
    plain = unicodedata.normalize("NFKC", found[1])
    digits = "".join(str(unicodedata.digit(sign)) for sign in plain if sign.isdigit())
    return f"({digits})" if digits and not any(sign.isalpha() for sign in plain) else found[0]


def returned_input(scores: Sequence[Scores]) -> dict[str, int]:
    """Count the lists that a model gave back in the order in which it got them, of those that are long enough.

    `scores` are those of each list's documents, in the order of the candidates.
    """
    longer = [of_list for of_list in scores if len(of_list) >= _LONG]
    kept = sum(bool((np.diff(of_list) < 0).all()) for of_list in longer)
    return {"lists": kept, "of": len(longer)}
