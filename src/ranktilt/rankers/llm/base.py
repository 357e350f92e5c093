"""Rankers that ask a language model: prompts of all queries go out together, answers are read strictly and counted."""

from __future__ import annotations

import hashlib
import math
import random
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import orjson

from ranktilt.collection import TEXT_CHOICES, Collection
from ranktilt.errors import UserError, counted
from ranktilt.io.journal import Journal
from ranktilt.llm.base import LARGEST_SEED, LLM, Answer, Prompt, Reply, Sampling, llm
from ranktilt.llm.estimate import Rehearsal
from ranktilt.llm.journal import Request, journal_of, journalled, request_key
from ranktilt.llm.prompts import BYTES_A_TOKEN, Slots, cut_tokens, fill, find_prompt, parse_slots
from ranktilt.llm.responses import UnsupportedParameter
from ranktilt.rankers.base import Ranker, readable_texts, require_choices, require_depth, reranked_run
from ranktilt.rankers.candidates import TAIL_CHOICES, Candidates
from ranktilt.rankers.llm.answers import (
    KINDS,
    READABLE,
    REFUSED,
    UNANSWERED,
    Reading,
    read_choice,
    read_ranking,
    require_answers,
)
from ranktilt.rankers.llm.passages import one_line
from ranktilt.run import Run

Shown = tuple[int, ...]
"""Candidates of a query, by their place in the first stage's ranking, in the order in which a prompt lists them."""
Scores = npt.NDArray[np.float64]
Sorting = Generator[list[Shown], list[Reading], Scores]
"""Asks about candidates, some prompts at a time, and ends with a score for each."""
Found = TypeVar("Found")
Asker = Callable[..., Generator[Reply, None, None]]
"""Answers requests: `journalled`, or a `Rehearsal`."""

UNREADABLE = ("shuffle", "keep")
"""What becomes of passages that no readable answer puts in order."""
RANKING_FORMAT = (
    "The output format should be [] > [], e.g., [2] > [1]. Name every passage once, the most relevant one first. Only "
    "respond with the ranking, do not say any word or explain."
)
STRUCTURED = ("none", "auto", "json")
"""Whether a server holds answers to a JSON schema: not asked for, if it can, or it must."""
JSON_FORMATS = {
    "ranking": (
        'Respond with JSON only: {"ranking": [2, 1]} puts passage [2] before passage [1]. Name every passage once, the '
        "most relevant one first."
    ),
    "choice": 'Respond with JSON only, with the identifier of the chosen passage: {"choice": 2} chooses passage [2].',
}
CHOICE_FORMAT = "Only respond with the identifier of the chosen passage, e.g., [2]. Do not say any word or explain."
_SLOTS = ("query", "items", "count", "attribute")
_MODEL_OPTIONS = (
    "base_url", "concurrency", "timeout", "retries", "rpm", "tpm", "device", "batch", "precision", "adapter",
)  # fmt: skip
_TEMPLATE_TOKENS = 24
"""What a chat template adds to a prompt, about."""
_IDENTIFIER_TOKENS = 8


class Dialogue(NamedTuple):
    """What was asked and answered over all queries: kinds of answers, tokens, and the first unreadable answer."""

    kinds: Counter[str]
    requests: int
    fresh: int
    read: int
    written: int
    example: str


@dataclass(frozen=True)
class LLMRanker(Ranker):
    """Asks a language model which passages come first; the base of listwise, pairwise, setwise and pointwise.

    `llm` is ``openai:MODEL``, behind any compatible server, or ``transformers:FOLDER``; the options from `base_url` on
    are its own. The `prompt` is a name or a file with the slots ``{query}``, ``{items}``, ``{count}`` and
    ``{attribute}``, which `attribute` fills in. Passages are numbered ``[1]``, ``[2]``, …, put on one line each, and
    cut after `passage_tokens` (0: never), a token taken for four bytes; numbers in brackets within them get round ones,
    so that no passage can pass for another. Where a prompt and its answer cannot fit into `context` tokens, nothing is
    asked.

    Answers are kept: what was asked before costs nothing. What an answer does not put in order is shuffled, with the
    `seed`, so that neither side gains by it; ``unreadable=keep`` leaves it in the first stage's order. More unreadable
    answers than the share `max_failed` are refused. ``structured=json`` has a server hold its answers to a JSON schema;
    ``auto`` tries that with one prompt first, and does without where the server does not take it.
    """

    argument: ClassVar[str | None] = "llm"
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
    tail: str = field(default="drop", kw_only=True)
    prompt: str | None = field(default=None, kw_only=True)
    attribute: str | None = field(default=None, kw_only=True)
    passage_tokens: int = field(default=300, kw_only=True)
    context: int | None = field(default=None, kw_only=True)
    unreadable: str = field(default="shuffle", kw_only=True)
    max_failed: float = field(default=1.0, kw_only=True)
    structured: str = field(default="none", kw_only=True)
    temperature: float = field(default=0.0, kw_only=True)
    seed: int = field(default=0, kw_only=True)
    base_url: str | None = field(default=None, kw_only=True)
    concurrency: int | None = field(default=None, kw_only=True)
    timeout: float | None = field(default=None, kw_only=True)
    retries: int | None = field(default=None, kw_only=True)
    rpm: int | None = field(default=None, kw_only=True)
    tpm: int | None = field(default=None, kw_only=True)
    device: str | None = field(default=None, kw_only=True)
    batch: int | None = field(default=None, kw_only=True)
    precision: str | None = field(default=None, kw_only=True)
    adapter: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        require_depth(self.name, self.k)
        require_choices(self, text=TEXT_CHOICES, tail=TAIL_CHOICES, unreadable=UNREADABLE, structured=STRUCTURED)
        if not 0 <= self.max_failed <= 1:
            raise UserError(f"{self.name}: expected max_failed between 0 and 1, got {self.max_failed:g}")
        if self.passage_tokens < 0:
            raise UserError(f"{self.name}: expected passage_tokens of 0 (all) or more, got {self.passage_tokens}")
        if not 0 <= self.seed <= LARGEST_SEED:
            raise UserError(f"{self.name}: expected a seed from 0 to {LARGEST_SEED:,}, got {self.seed}")
        if self.context is not None and self.context < 1:
            raise UserError(f"{self.name}: expected a context of at least 1 token, got {self.context}")

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

    # Ranking

    def model(self) -> LLM:
        """Make the language model; asks and loads nothing."""
        return llm(self.llm, **{name: getattr(self, name) for name in _MODEL_OPTIONS})

    def check(self) -> None:
        """Find out without asking whether model and prompt can be used; see `Ranker.check`."""
        self._template()
        model = self.model()
        model.check()
        self._require_schemas(model)

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        """Ask about the candidates; see `Ranker.rank`.

        The run holds the queries that have a judgment and a text, in the run's order; each with exactly its candidates.
        Its spec counts the answers by kind, and tokens.
        """
        return self._ranked(collection, run, journalled)

    def rehearse(self, collection: Collection, run: Run | None = None) -> tuple[Run, Rehearsal, int]:
        """Rank as if the model agreed with the first stage wherever the journal does not know better; asks nothing.

        Returns the run, what would be asked, and how many requests at most any answers could need.
        """
        rehearsal = Rehearsal(self.model())
        found = self._ranked(collection, run, rehearsal)
        most = sum(map(self.requests, Candidates.of(collection, run, self).lengths.tolist()))
        return found, rehearsal, most

    def pretended(self, shown: Shown) -> str:
        """Return the answer of a model that agrees with the first stage."""
        order = sorted(range(len(shown)), key=shown.__getitem__)
        return " > ".join(f"[{place + 1}]" for place in order[: 1 if self.chooses else None])

    def _ranked(self, collection: Collection, run: Run | None, asker: Asker) -> Run:
        found = Candidates.of(collection, run, self)
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
        over = np.array([short != text for short, text in zip(cut, whole.gather(found.rows), strict=True)], dtype=bool)
        truncated = found.truncated(over, self.passage_tokens, collection) if self.passage_tokens else {}
        spec = {**asked, **truncated, **({"order_only": True} if self.order_only else {})}
        return reranked_run(self, collection, found, np.concatenate([np.empty(0), *scores]), spec)

    def score(
        self, tasks: Sequence[Task], chances: Sequence[random.Random], *, asker: Asker = journalled
    ) -> tuple[list[Scores], dict[str, Any]]:
        """Return scores for the passages of each task, and what a spec says of how; `chances` settle what is open."""
        sortings = [self.sort(len(task.passages), chance) for task, chance in zip(tasks, chances, strict=True)]
        planned = sum(self.requests(len(task.passages)) for task in tasks)
        return self.ask(tasks, sortings, planned=planned, asker=asker)

    def shown(self, text: str) -> str:
        """Return a text as a prompt shows it: cut, on one line, and without what looks like another one's number."""
        return one_line(cut_tokens(text, self.passage_tokens))

    def ask(
        self,
        tasks: Sequence[Task],
        sortings: Sequence[Generator[list[Shown], list[Reading], Found]],
        *,
        planned: int = 0,
        asker: Asker = journalled,
    ) -> tuple[list[Found], dict[str, Any]]:
        """Ask round after round, in each what every task's sorting wants to know next, until all have ended.

        Returns what each sorting ends with, and what a spec says of the model, the prompt and the answers; `planned`
        prompts are announced.
        """
        slots, (name, digest) = self._template()
        model = self.model()
        rehearsed = isinstance(asker, Rehearsal)
        if not rehearsed:
            model.check()
        self._require_schemas(model)
        self._require_room(model, slots, tasks)
        most = self.answer_tokens(tasks)
        sampling = Sampling(temperature=self.temperature, max_tokens=most, seed=self.seed, logprobs=self.logprobs)
        found: dict[int, Found] = {}
        waiting: dict[int, list[Shown]] = {}
        for number, sorting in enumerate(sortings):
            _advance(sorting, None, number, waiting, found)
        dialogue, done = Dialogue(Counter(), 0, 0, 0, 0, ""), 0
        with journal_of(model) as journal:
            if waiting and self.structured != "none":
                number, wanted = next(iter(waiting.items()))
                json_slots, json_about = self._template(json=True)
                held = replace(sampling, schema=self._schema())
                trial = _request(fill(json_slots, self.values(tasks[number], wanted[0])))
                if self._takes_schema(model, trial, journal, held, asker):
                    slots, (name, digest), sampling = json_slots, json_about, held
            while waiting:
                asked = [(number, shown) for number, wanted in waiting.items() for shown in wanted]
                requests = [_request(fill(slots, self.values(tasks[number], shown))) for number, shown in asked]
                label, total = f"{self!r}: asking", max(planned, done + len(asked))
                replies: list[Reply | None] = [None] * len(asked)
                readings = [Reading(UNANSWERED, ())] * len(asked)
                if isinstance(asker, Rehearsal):
                    asker.answers = [self.pretended(shown) for _, shown in asked]
                with closing(
                    asker(model, requests, journal, sampling=sampling, label=label, total=total, before=done)
                ) as arriving:
                    for reply in arriving:
                        replies[reply.number] = reply
                        readings[reply.number] = self._read(reply, len(asked[reply.number][1]))
                dialogue, done = _together(dialogue, replies, readings), done + len(asked)
                answered: dict[int, list[Reading]] = {}
                for (number, _), reading in zip(asked, readings, strict=True):
                    answered.setdefault(number, []).append(reading)
                waiting = {}
                for number, read in answered.items():
                    _advance(sortings[number], read, number, waiting, found)
        counts = self._said(dialogue)
        most_failed = 1.0 if rehearsed else self.max_failed
        require_answers(repr(self), counts["llm_answers"], most_failed, f"max_failed={self.max_failed:g}")
        form = {} if self.structured == "none" else {"structured": "json" if sampling.schema else "none"}
        said = {"llm": {**model.spec, "prompt": name, "prompt_sha256": digest, **form}, **counts}
        return [found[number] for number in range(len(tasks))], said

    def _require_schemas(self, model: LLM) -> None:
        if self.structured == "json" and not model.takes_schemas:
            raise UserError(f"{self!r}: a model in a folder cannot be held to a JSON schema; leave structured=json out")

    def _schema(self) -> str:
        """The JSON schema of an answer: an object with one value, which `read` takes as it takes words."""
        kind: dict[str, Any] = {"type": "integer"}
        name, value = ("choice", kind) if self.chooses else ("ranking", {"type": "array", "items": kind})
        shape = {"type": "object", "properties": {name: value}, "required": [name], "additionalProperties": False}
        return orjson.dumps(shape).decode()

    def _takes_schema(self, model: LLM, trial: Request, journal: Journal, sampling: Sampling, asker: Asker) -> bool:
        """Whether answers can be held to a schema; for ``auto`` one prompt is asked, whose answer counts like any."""
        if self.structured == "json" or not model.takes_schemas:
            return model.takes_schemas
        if isinstance(asker, Rehearsal):
            return request_key(model, trial.prompt, sampling) in journal
        try:
            with closing(journalled(model, [trial], journal, sampling=sampling)) as arriving:
                failures = [reply.failure for reply in arriving]
        except UnsupportedParameter as error:
            if error.parameter != "response_format":
                raise
            return False
        return not any(failure is not None and failure.kind == "refused" for failure in failures)

    def _read(self, reply: Reply, count: int) -> Reading:
        if reply.answer is None:
            return Reading(UNANSWERED, ())
        return Reading(REFUSED, ()) if reply.answer.finish == "content_filter" else self.read(reply.answer, count)

    def read(self, answer: Answer, count: int) -> Reading:
        """Read an answer about `count` passages."""
        return (read_choice if self.chooses else read_ranking)(answer.text, count)

    def completed(self, shown: Shown, reading: Reading, chance: random.Random) -> list[int]:
        """Put what was shown in the order of an answer; what it does not name follows shuffled, or as it stood."""
        rest = [place for place in range(len(shown)) if place not in reading.order]
        if self.unreadable == "shuffle":
            chance.shuffle(rest)
        return [shown[place] for place in (*reading.order, *rest)]

    # Prompts

    def _template(self, *, json: bool = False) -> tuple[Slots, tuple[str, str]]:
        """The prompt's slots; its name and hash."""
        name = self.prompt or self.default_prompt
        found = find_prompt(name, self.prompts, "ranktilt.rankers.llm", slot=self.needed[-1])
        slots = parse_slots(found.text, found.place, _SLOTS if "items" in self.needed else (*self.needed, "attribute"))
        used = {slot for _, slot in slots}
        for needed in self.needed:
            if needed not in used:
                raise UserError(f"{found.place}: expected {{{needed}}}, and found none")
        if "attribute" in used and self.attribute is None:
            raise UserError(f"{found.place}: {{attribute}} needs one: {self.name}:{self.llm}(attribute=…)")
        if self.attribute is not None and "attribute" not in used:
            raise UserError(f"{found.place}: attribute={self.attribute}, and the prompt has no {{attribute}}")
        form = JSON_FORMATS["choice" if self.chooses else "ranking"] if json else self.answer_format
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

    def values(self, task: Task, shown: Shown) -> dict[str, str]:
        """Return what fills the slots of a prompt."""
        items = "\n".join(f"[{number}] {task.passages[place]}" for number, place in enumerate(shown, 1))
        return {
            "query": one_line(task.query),
            "items": items,
            "count": str(len(shown)),
            "attribute": self.attribute or "",
        }

    def answer_tokens(self, tasks: Sequence[Task]) -> int:
        """Tokens that an answer may have."""
        most = max((self.at_once(len(task.passages)) for task in tasks), default=1)
        return 64 + _IDENTIFIER_TOKENS * (1 if self.chooses else most)

    def _require_room(self, model: LLM, slots: Slots, tasks: Sequence[Task]) -> None:
        """Refuse, before the first request, prompts that cannot fit; says how many passages would."""
        context = self.context or model.context
        if context is None:
            return
        answer = self.answer_tokens(tasks)
        frame = sum(len(literal) for literal, _ in slots) / BYTES_A_TOKEN + _TEMPLATE_TOKENS + answer
        for task in tasks:
            sizes = sorted((len(text.encode()) / BYTES_A_TOKEN + 3 for text in task.passages), reverse=True)
            sums = np.cumsum([0.0, *sizes]) + frame + len(task.query.encode()) / BYTES_A_TOKEN
            shown = self.at_once(len(sizes))
            if sums[shown] > context:
                fit = int((sums <= context).sum()) - 1
                hint = f"{counted(fit, 'passage fits', 'passages fit')}" if fit > 1 else "not even two fit"
                fewer = "" if shown == 1 else f"{hint}: show fewer at once, or "
                raise UserError(
                    f"{self!r}: {counted(shown, 'passage', 'passages')} and the answer may take "
                    f"{math.ceil(sums[shown]):,} tokens, more than the context of {context:,}; "
                    f"{fewer}cut {'it' if shown == 1 else 'them'} (passage_tokens)"
                )

    # What is said of it

    def _said(self, dialogue: Dialogue) -> dict[str, Any]:
        counts = {kind: dialogue.kinds[kind] for kind in KINDS if dialogue.kinds[kind]}
        example = {"unreadable": dialogue.example} if dialogue.example else {}
        asked = {"requests": dialogue.requests, "fresh": dialogue.fresh, "tokens_read": dialogue.read}
        return {"llm_answers": {"kinds": counts, **asked, "tokens_written": dialogue.written, **example}}


@dataclass(frozen=True, eq=False)
class Task:
    """A query, and its candidates' texts as a prompt shows them."""

    query: str
    passages: list[str]


def _request(text: str) -> Request:
    prompt = Prompt(text)
    return Request(prompt, prompt.digest[:32])


def _advance(
    sorting: Generator[list[Shown], list[Reading], Found],
    readings: list[Reading] | None,
    number: int,
    waiting: dict[int, list[Shown]],
    found: dict[int, Found],
) -> None:
    """Tell one task's sorting what was answered, and note what it asks next, or what it ends with."""
    try:
        while not (wanted := next(sorting) if readings is None else sorting.send(readings)):
            readings = []
        waiting[number] = wanted
    except StopIteration as end:
        found[number] = end.value


def _together(dialogue: Dialogue, replies: Iterable[Reply | None], readings: Sequence[Reading]) -> Dialogue:
    kinds, example = dialogue.kinds + Counter(reading.kind for reading in readings), dialogue.example
    asked = fresh = read = written = 0
    for reply, reading in zip(replies, readings, strict=True):
        if reply is None:
            continue
        asked, fresh = asked + 1, fresh + reply.fresh
        if reply.answer is not None:
            read, written = read + (reply.answer.prompt_tokens or 0), written + (reply.answer.completion_tokens or 0)
        if not example and reading.kind not in READABLE:
            example = reply.answer.text if reply.answer is not None else reply.failure.message if reply.failure else ""
    return Dialogue(
        kinds, dialogue.requests + asked, dialogue.fresh + fresh, dialogue.read + read, dialogue.written + written,
        example[:2_000],
    )  # fmt: skip


def in_order(order: Sequence[int]) -> Scores:
    """Return a score for each candidate, falling by one along an order."""
    scores = np.empty(len(order))
    scores[list(order)] = np.arange(len(order), 0, -1)
    return scores
