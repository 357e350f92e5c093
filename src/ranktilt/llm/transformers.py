"""Language models in a local folder, run here by transformers."""

from __future__ import annotations

import hashlib
import itertools
import re
import secrets
import warnings
from collections.abc import Generator, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ranktilt.errors import UserError, first_line, unknown
from ranktilt.llm.base import LLM, Answer, Failure, Prompt, Reply, Sampling
from ranktilt.models import checkpoint
from ranktilt.models.device import PRECISIONS, set_threads, torch_device
from ranktilt.optional import need
from ranktilt.parallel.executor import Portable

BATCH, WINDOW = 8, 4
"""Prompts that are answered together; batches among whose prompts those of like length are put together."""
HELD_OUT, TRAINING_QUERIES = "held-out.txt", "training-queries.txt"
"""In an adapter's folder: ids of queries, one a line; those it was not trained on, and those it was."""
MOST = 2_048
"""Tokens of an answer at most where the sampling does not say."""


@dataclass(frozen=True)
class _Job:
    """A prompt as tokens, and how many its answer may have."""

    number: int
    prompt: Prompt
    tokens: list[int]
    limit: int


@dataclass(eq=False)
class Transformers(Portable, LLM):
    """A chat model in a local folder, as transformers saves it; it is loaded with the first prompt.

    Answers are drawn from the model's own distribution: of its generation settings only the tokens
    that end an answer count. With a seed, the same list of prompts with the same batch gives the
    same answers on the same machine and versions. Log-probabilities are those before temperature
    and top_p. No code of the model's own is run.
    """

    neural = True

    folder: Path
    _: KW_ONLY
    device: str | None = None
    batch: int = BATCH
    precision: str = "float32"
    adapter: Path | None = None

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise UserError(f"transformers: batch must be 1 or more, got {self.batch!r}")
        if self.precision not in PRECISIONS:
            raise unknown("precision of transformers", self.precision, PRECISIONS)
        self.folder = Path(self.folder).expanduser()
        self.name = self.folder.resolve().name
        self.concurrency = self.batch * WINDOW
        self.adapter = None if self.adapter is None else Path(self.adapter).expanduser()

    @cached_property
    def identity(self) -> str:  # type: ignore[override]
        """``transformers:`` and the hash of the folder's files, wherever it lies; with a precision below float32."""
        return ":".join(
            [
                "transformers",
                self.revision,
                *([] if self.precision == PRECISIONS[0] else [self.precision]),
            ]
        )

    @property
    def fingerprint(self) -> str:
        return self.revision

    @cached_property
    def revision(self) -> str:
        """Hash of the folder's files, and of the adapter's."""
        self._require_folder()
        return checkpoint.fingerprint(
            self.folder, *([] if self.adapter is None else [_adapter_hash(self.adapter)])
        )

    @property
    def spec(self) -> dict[str, Any]:
        adapted = {} if self.adapter is None else {"adapter": self.adapter.resolve().name}
        return {
            "llm": self.identity,
            "model": self.name,
            **adapted,
            "revision": self.revision,
            "precision": self.precision,
        }

    def check(self) -> None:
        """Check packages, folder and tokenizer; loads no weights."""
        need("torch", extra="neural", for_="transformers")
        self._require_folder()
        checkpoint.require(self.folder, tokenizer=False)
        if self.adapter is not None:
            need("peft", extra="train", for_="transformers(adapter=…)")
            _adapter_hash(self.adapter)
        _ = self._tokenizer

    def _require_folder(self) -> None:
        if not self.folder.is_dir():
            message = f"transformers: {self.folder} is no folder; expected one with a model as transformers saves it"
            raise UserError(message)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of each text with the model's own tokenizer, without what the chat template adds."""
        return (
            [
                len(ids)
                for ids in self._tokenizer(list(texts), add_special_tokens=False)["input_ids"]
            ]
            if texts
            else []
        )

    def arrivals(
        self, prompts: Iterable[Prompt], sampling: Sampling
    ) -> Generator[list[Reply], None, None]:
        """Answer prompts a batch at a time; see `LLM.arrivals`.

        They are pulled some batches ahead, so that prompts of like length share one. A prompt that
        leaves no room in the context has the failure ``too long``; one that the chat template does
        not take ``refused``.
        """
        self.check()
        source = enumerate(prompts)
        while window := list(itertools.islice(source, self.concurrency)):
            made = [self._job(number, prompt, sampling) for number, prompt in window]
            failed = [job for job in made if isinstance(job, Reply)]
            if failed:
                yield failed
            jobs = sorted(
                (job for job in made if isinstance(job, _Job)), key=lambda job: -len(job.tokens)
            )
            for start in range(0, len(jobs), self.batch):
                yield self._answer(jobs[start : start + self.batch], sampling)

    def tokens_of(self, prompt: Prompt) -> list[int]:
        """Return what the model reads of a prompt, up to where its answer begins."""
        messages = [
            {**message, "content": self._as_text(message["content"])}
            for message in prompt.messages()
        ]
        text = self._tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True
        )
        found: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return found

    def tokens_of_answer(self, text: str) -> list[int]:
        """Return the tokens of an answer, without what ends it."""
        found: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return found

    @property
    def end_token(self) -> int | None:
        """The token that ends an answer; None where the tokenizer has none."""
        found = self._tokenizer.eos_token_id
        return None if found is None else int(found)

    def _job(self, number: int, prompt: Prompt, sampling: Sampling) -> _Job | Reply:
        try:
            tokens = self.tokens_of(prompt)
        except (
            Exception
        ) as error:  # a template is a program of the model's author, with errors of its own
            said = first_line(error)
            return Reply(
                number,
                None,
                Failure("refused", f"the model's chat template does not take it: {said}"),
            )
        left = MOST if self.context is None else self.context - len(tokens)
        if left < 1:
            message = f"{len(tokens):,} tokens leave no room for an answer in the model's context of {self.context:,}"
            return Reply(number, None, Failure("too long", message))
        return _Job(number, prompt, tokens, min(left, sampling.max_tokens or MOST))

    def _as_text(self, content: str) -> str:
        """A message in which the tokenizer finds no control token, such as the end of a turn: a blank breaks each."""
        return self._control.sub(lambda found: f"{found[0][:1]} {found[0][1:]}", content)

    @cached_property
    def _control(self) -> re.Pattern[str]:
        added = [
            str(token) for token in self._tokenizer.added_tokens_decoder.values() if token.special
        ]
        tokens = sorted(
            {token for token in (*added, *self._tokenizer.all_special_tokens) if token}, key=len
        )
        return re.compile("|".join(map(re.escape, reversed(tokens))) or "(?!)")

    def _answer(self, jobs: list[_Job], sampling: Sampling) -> list[Reply]:
        torch = need("torch", extra="neural", for_="transformers")
        device = self._model.device
        chance = torch.random.fork_rng(devices=[device] if device.type == "cuda" else [])
        try:
            with chance, torch.inference_mode(), checkpoint.quiet(for_="transformers"):
                torch.manual_seed(_seed([job.prompt for job in jobs], sampling))
                written, logits = self._generate(torch, jobs, sampling)
                steps = [
                    step.float().log_softmax(dim=-1).gather(-1, drawn[:, None])[:, 0]
                    for step, drawn in zip(logits or (), written.T, strict=False)
                ]
        except torch.OutOfMemoryError as error:
            what = f"the memory of {device} is not enough for {len(jobs)} prompts at once"
            raise UserError(f"{self.folder}: {what}; choose a smaller batch") from error
        logprobs = torch.stack(steps, dim=1).tolist() if steps else [None] * len(jobs)
        return [self._reply(*row) for row in zip(jobs, written.tolist(), logprobs, strict=True)]

    def _generate(self, torch: Any, jobs: list[_Job], sampling: Sampling) -> tuple[Any, Any]:
        """Tokens of each answer, and the logits of each step where their probabilities are asked for."""
        width = max(len(job.tokens) for job in jobs)
        pad = self._model.generation_config.pad_token_id
        rows = [[pad] * (width - len(job.tokens)) + job.tokens for job in jobs]
        mask = [[0] * (width - len(job.tokens)) + [1] * len(job.tokens) for job in jobs]
        device = self._model.device
        limits = torch.tensor([width + job.limit for job in jobs], device=device)
        drawn = {
            "do_sample": True,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": 0,
        }
        found = self._model.generate(
            input_ids=torch.tensor(rows, device=device),
            attention_mask=torch.tensor(mask, device=device),
            max_new_tokens=max(job.limit for job in jobs),
            stopping_criteria=[lambda ids, _: limits <= ids.shape[1]],
            return_dict_in_generate=True,
            output_logits=sampling.logprobs,
            **(drawn if sampling.temperature else {"do_sample": False}),
        )
        return found.sequences[:, width:], found.logits

    def _reply(self, job: _Job, written: list[int], logprobs: list[float] | None) -> Reply:
        tokens = written[: job.limit]
        end = next((place for place, token in enumerate(tokens) if token in self._ends), None)
        tokens = tokens[:end]
        answer = Answer(
            text=self._tokenizer.decode(tokens, skip_special_tokens=True),
            finish="length" if end is None else "stop",
            prompt_tokens=len(job.tokens),
            completion_tokens=len(tokens),
            model=self.name,
            revision=self.revision,
            logprobs=None if logprobs is None else tuple(logprobs[: len(tokens)]),
            tokens=None if logprobs is None else self._token_texts(tokens),
        )
        return Reply(job.number, answer, None)

    def _token_texts(self, tokens: list[int]) -> tuple[str, ...]:
        """The part of the text that each token adds: by itself a token may lack the blank before it."""
        starts = [
            self._tokenizer.decode(tokens[:size], skip_special_tokens=True)
            for size in range(len(tokens) + 1)
        ]
        return tuple(text[len(before) :] for before, text in itertools.pairwise(starts))

    @cached_property
    def _tokenizer(self) -> Any:
        with checkpoint.loading(
            f"{self.folder}: its tokenizer cannot be read", for_="transformers"
        ):
            found = checkpoint.load_tokenizer(self.folder, for_="transformers")
        if not found.chat_template:
            raise UserError(
                f"{self.folder}: its tokenizer has no chat template, so it is no model that follows instructions; "
                "choose the one made for chat (often named …-instruct or …-chat)"
            )
        found.model_max_length = int(
            1e30
        )  # whoever asks counts the tokens; a warning on the terminal helps nobody
        return found

    @cached_property
    def _model(self) -> Any:
        set_threads()
        device = torch_device(self.device)
        with checkpoint.loading(
            f"{self.folder}: cannot be loaded on device {device!r}", for_="transformers"
        ):
            kind = "AutoModelForCausalLM"
            model = checkpoint.load(self.folder, kind, for_="transformers", dtype=self.precision)
            model = model.to(device)
            if self.adapter is not None:
                model = with_adapter(model, self.adapter)
        ends, pad = sorted(_ends(model, self._tokenizer)), self._tokenizer.pad_token_id
        library = checkpoint.transformers(for_="transformers")
        model.generation_config = library.GenerationConfig(
            eos_token_id=ends or None, pad_token_id=pad if pad is not None else (ends or [0])[0]
        )
        return model

    @cached_property
    def _ends(self) -> frozenset[int]:
        return frozenset(self._model.generation_config.eos_token_id or ())

    @cached_property
    def context(self) -> int | None:  # type: ignore[override]
        config = checkpoint.require(self.folder, tokenizer=False)
        parts = [config, *(part for part in (config.get("text_config"),) if isinstance(part, dict))]
        names = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
        return next((int(part[name]) for part in parts for name in names if part.get(name)), None)

    @cached_property
    def training_queries(self) -> frozenset[str]:  # type: ignore[override]
        file = None if self.adapter is None else self.adapter / TRAINING_QUERIES
        return (
            frozenset()
            if file is None or not file.is_file()
            else frozenset(file.read_text("utf-8").splitlines())
        )


def with_adapter(model: Any, adapter: Path) -> Any:
    """Add the weights of a low-rank adapter to a model's own."""
    peft = need("peft", extra="train", for_="transformers(adapter=…)")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", FutureWarning
            )  # what peft asks of transformers is to get another name
            return (
                peft.PeftModel.from_pretrained(model, str(adapter), local_files_only=True)
                .merge_and_unload()
                .eval()
            )
    except (ValueError, KeyError, RuntimeError, OSError, TypeError) as error:
        reason = first_line(error)
        raise UserError(f"{adapter}: not an adapter of this model: {reason}") from error


def _adapter_hash(folder: Path) -> str:
    if not (folder / "adapter_config.json").is_file():
        raise UserError(
            f"{folder}: no adapter: expected adapter_config.json and weights, as ranktilt train lora saves them"
        )
    return checkpoint.fingerprint(folder)


def _ends(model: Any, tokenizer: Any) -> set[int]:
    """Tokens that end an answer, as the folder says it in one place or another."""
    found: set[int] = set()
    for said in (
        model.generation_config.eos_token_id,
        model.config.eos_token_id,
        tokenizer.eos_token_id,
    ):
        found |= set(said) if isinstance(said, list) else set() if said is None else {said}
    return found


def _seed(prompts: list[Prompt], sampling: Sampling) -> int:
    """Make the seed of a batch, of its prompts and of their seeds or that of the sampling; at random where none is."""
    given = [
        (sampling.seed if prompt.seed is None else prompt.seed, prompt.digest) for prompt in prompts
    ]
    if all(seed is None for seed, _ in given):
        return secrets.randbits(63)
    return int.from_bytes(hashlib.blake2b(repr(given).encode(), digest_size=8).digest(), "big") >> 1
