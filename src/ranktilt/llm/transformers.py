"""Language models in a local folder, run by transformers."""

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

from ranktilt.errors import UserError, first_line, unknown_name
from ranktilt.llm.base import LLM, Answer, Failure, Prompt, Reply, Sampling
from ranktilt.models import checkpoint
from ranktilt.models.device import PRECISIONS, set_threads, torch_device
from ranktilt.optional import need
from ranktilt.parallel.executor import Portable

BATCH = 8
"""Default number of prompts that the model reads together."""
WINDOW = 4
"""Number of batches whose prompts are sorted by length together, so that little padding is
needed."""
HELD_OUT = "held-out.txt"
"""Name of the file with the ids of queries that an adapter was not trained on, one on each line."""
TRAINING_QUERIES = "training-queries.txt"
"""Name of the file with the ids of queries that an adapter was trained on."""
MOST = 2_048
"""Most tokens of an answer, if the sampling sets no limit."""


@dataclass(frozen=True, kw_only=True)
class _TokenizedPrompt:
    """A prompt as tokens."""

    number: int
    """Position of the prompt."""
    prompt: Prompt
    """The prompt."""
    tokens: list[int]
    """Its tokens, up to the start of the answer."""
    limit: int
    """Most tokens of the answer."""


@dataclass(frozen=True, kw_only=True)
class _GeneratedTokens:
    """Tokens that the model wrote for some prompts."""

    tokens: list[list[int]]
    """Tokens of each answer, also those after its end."""
    logprobs: list[list[float]] | None
    """Log-probability of each token; None if they were not asked for."""


@dataclass(eq=False)
class Transformers(Portable, LLM):
    """A chat model in a local folder, as transformers saves it; the first prompt loads it.

    Answers are drawn from the model's distribution. Of the settings for generation in its folder,
    only the tokens that end an answer are used. With a seed, the same list of prompts with the same
    batch size gives the same answers on the same machine and versions. Log-probabilities are those
    before temperature and top_p are applied. Code that comes with a model is never run.
    """

    neural = True
    """It computes on this machine, and should have a GPU."""

    folder: Path
    """Folder of the model."""
    _: KW_ONLY
    device: str | None = None
    """Device that the model runs on; None takes a GPU if there is one."""
    batch: int = BATCH
    """Number of prompts that the model reads together."""
    precision: str = "float32"
    """Precision of the weights, of `PRECISIONS`."""
    adapter: Path | None = None
    """Folder of a low-rank adapter that is added to the weights; None for no adapter."""

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise UserError(f"transformers: batch must be 1 or more, got {self.batch!r}")
        if self.precision not in PRECISIONS:
            raise unknown_name("precision of transformers", self.precision, PRECISIONS)
        self.folder = Path(self.folder).expanduser()
        self.name = self.folder.resolve().name
        self.concurrency = self.batch * WINDOW
        self.adapter = None if self.adapter is None else Path(self.adapter).expanduser()

    @cached_property
    def identity(self) -> str:  # type: ignore[override]
        """``transformers:``, the hash of the folder's files, and any precision below float32."""
        identity = f"transformers:{self.revision}"
        return identity if self.precision == PRECISIONS[0] else f"{identity}:{self.precision}"

    @property
    def fingerprint(self) -> str:
        """Hash of the files of the folder and the adapter."""
        return self.revision

    @cached_property
    def revision(self) -> str:
        """Hash of the files of the folder and the adapter."""
        self._require_folder()
        if self.adapter is None:
            return checkpoint.fingerprint(self.folder)
        return checkpoint.fingerprint(self.folder, _adapter_hash(self.adapter))

    @property
    def spec(self) -> dict[str, Any]:
        adapter = {} if self.adapter is None else {"adapter": self.adapter.resolve().name}
        return {
            "llm": self.identity,
            "model": self.name,
            **adapter,
            "revision": self.revision,
            "precision": self.precision,
        }

    def check(self) -> None:
        """Check packages, folder and tokenizer, without loading weights."""
        need("torch", extra="neural", for_="transformers")
        self._require_folder()
        checkpoint.require(self.folder, tokenizer=False)
        if self.adapter is not None:
            need("peft", extra="train", for_="transformers(adapter=…)")
            _adapter_hash(self.adapter)
        _ = self._tokenizer

    def _require_folder(self) -> None:
        """Raise a `UserError` if there is no folder."""
        if not self.folder.is_dir():
            raise UserError(
                f"transformers: {self.folder} is not a folder; expected one with a model as "
                "transformers saves it"
            )

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of each text, without those that a chat template adds."""
        if not texts:
            return []
        encoding = self._tokenizer(list(texts), add_special_tokens=False)
        return [len(token_ids) for token_ids in encoding["input_ids"]]

    def arrivals(
        self, prompts: Iterable[Prompt], sampling: Sampling
    ) -> Generator[list[Reply], None, None]:
        """Answer prompts batch by batch, and yield the replies of each batch.

        Prompts are pulled some batches ahead, so that prompts of similar length share a batch. A
        prompt that leaves no room for an answer in the context fails as ``too long``. A prompt that
        the chat template does not accept fails as ``refused``.
        """
        self.check()
        source = enumerate(prompts)
        while window := list(itertools.islice(source, self.concurrency)):
            tokenized, failed = list[_TokenizedPrompt](), list[Reply]()
            for number, prompt in window:
                outcome = self._tokenized(number, prompt, sampling)
                if isinstance(outcome, Failure):
                    failed.append(Reply(number=number, failure=outcome))
                else:
                    tokenized.append(outcome)
            if failed:
                yield failed
            tokenized.sort(key=lambda prompt: -len(prompt.tokens))
            for start in range(0, len(tokenized), self.batch):
                yield self._answer(tokenized[start : start + self.batch], sampling)

    def tokens_of(self, prompt: Prompt) -> list[int]:
        """Return the tokens that the model reads of a prompt, up to the start of its answer."""
        messages = [
            {**message, "content": self._as_text(message["content"])}
            for message in prompt.messages()
        ]
        text = self._tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True
        )
        return self._encode(text)

    def tokens_of_answer(self, text: str) -> list[int]:
        """Return the tokens of an answer, without the one that ends it."""
        return self._encode(text)

    def _encode(self, text: str) -> list[int]:
        """Return the tokens of a text as it is, without any that a tokenizer adds."""
        token_ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return token_ids

    @property
    def end_token(self) -> int | None:
        """Number of the token that ends an answer; None if the tokenizer has none."""
        token = self._tokenizer.eos_token_id
        return None if token is None else int(token)

    def _tokenized(
        self, number: int, prompt: Prompt, sampling: Sampling
    ) -> _TokenizedPrompt | Failure:
        """Return a prompt as tokens; a failure if there are none, or no room for an answer."""
        # A chat template is a program of the model's author, and raises errors of any kind.
        try:
            tokens = self.tokens_of(prompt)
        except Exception as error:
            reason = first_line(error)
            return Failure(
                kind="refused", message=f"the model's chat template rejects it: {reason}"
            )
        left = MOST if self.context is None else self.context - len(tokens)
        if left < 1:
            return Failure(
                kind="too long",
                message=f"{len(tokens):,} tokens leave no room for an answer in the model's "
                f"context of {self.context:,}",
            )
        limit = min(left, sampling.max_tokens or MOST)
        return _TokenizedPrompt(number=number, prompt=prompt, tokens=tokens, limit=limit)

    def _as_text(self, content: str) -> str:
        """Break control tokens in a message, such as the end of a turn, by a blank.

        Otherwise a text could end its message, and begin one of another speaker.
        """
        return self._control_tokens.sub(lambda token: f"{token[0][:1]} {token[0][1:]}", content)

    @cached_property
    def _control_tokens(self) -> re.Pattern[str]:
        """Pattern of the tokens that steer the model; it never matches if there are none."""
        added_tokens = self._tokenizer.added_tokens_decoder.values()
        tokens = {str(token) for token in added_tokens if token.special}
        tokens.update(self._tokenizer.all_special_tokens)
        tokens.discard("")
        # The longest first: a shorter token may be the beginning of a longer one.
        longest_first = sorted(tokens, key=len, reverse=True)
        return re.compile("|".join(map(re.escape, longest_first)) or "(?!)")

    def _answer(self, prompts: list[_TokenizedPrompt], sampling: Sampling) -> list[Reply]:
        """Return the replies to a batch of prompts."""
        torch = need("torch", extra="neural", for_="transformers")
        device = self._model.device
        random_state = torch.random.fork_rng(devices=[device] if device.type == "cuda" else [])
        try:
            with random_state, torch.inference_mode(), checkpoint.quiet(for_="transformers"):
                torch.manual_seed(_seed([prompt.prompt for prompt in prompts], sampling))
                generated = self._generate(torch, prompts, sampling)
        except torch.OutOfMemoryError as error:
            raise UserError(
                f"{self.folder}: {device} has too little memory for {len(prompts)} prompts at "
                "once; choose a smaller batch"
            ) from error
        replies = []
        for row, prompt in enumerate(prompts):
            logprobs = None if generated.logprobs is None else generated.logprobs[row]
            replies.append(self._reply(prompt, generated.tokens[row], logprobs))
        return replies

    def _generate(
        self, torch: Any, prompts: list[_TokenizedPrompt], sampling: Sampling
    ) -> _GeneratedTokens:
        """Let the model write an answer to each prompt.

        Prompts are padded on the left, because the model writes on at the right end.
        """
        device = self._model.device
        width = max(len(prompt.tokens) for prompt in prompts)
        padding = self._model.generation_config.pad_token_id
        rows, mask = [], []
        for prompt in prompts:
            free = width - len(prompt.tokens)
            rows.append([padding] * free + prompt.tokens)
            mask.append([0] * free + [1] * len(prompt.tokens))
        limits = torch.tensor([width + prompt.limit for prompt in prompts], device=device)
        input_ids = torch.tensor(rows, device=device)
        attention_mask = torch.tensor(mask, device=device)
        most_new_tokens = max(prompt.limit for prompt in prompts)
        generation_options: dict[str, Any] = {"do_sample": False}
        if sampling.temperature:
            generation_options = {
                "do_sample": True,
                "temperature": sampling.temperature,
                "top_p": sampling.top_p,
                "top_k": 0,  # off; transformers may else draw from a few likely tokens only
            }

        def is_at_limit(ids: Any, _scores: Any) -> Any:
            return limits <= ids.shape[1]

        generated = self._model.generate(
            input_ids=input_ids,
            attention_mask=attention_mask,
            max_new_tokens=most_new_tokens,
            stopping_criteria=[is_at_limit],
            return_dict_in_generate=True,
            output_logits=sampling.logprobs,
            **generation_options,
        )
        tokens = generated.sequences[:, width:]
        steps = []
        for logits, step_tokens in zip(generated.logits or (), tokens.T, strict=False):
            logprobs = logits.float().log_softmax(dim=-1)
            steps.append(logprobs.gather(-1, step_tokens[:, None])[:, 0])
        return _GeneratedTokens(
            tokens=tokens.tolist(),
            logprobs=torch.stack(steps, dim=1).tolist() if steps else None,
        )

    def _reply(
        self, prompt: _TokenizedPrompt, tokens: list[int], logprobs: list[float] | None
    ) -> Reply:
        """Return the reply to a prompt, with the written tokens up to the one that ends it."""
        tokens = tokens[: prompt.limit]
        ends = (position for position, token in enumerate(tokens) if token in self._ends)
        end = next(ends, None)
        tokens = tokens[:end]
        text = self._tokenizer.decode(tokens, skip_special_tokens=True)
        token_logprobs = None if logprobs is None else tuple(logprobs[: len(tokens)])
        token_texts = None if logprobs is None else self._token_texts(tokens)
        answer = Answer(
            text=text,
            finish="length" if end is None else "stop",
            prompt_tokens=len(prompt.tokens),
            completion_tokens=len(tokens),
            model=self.name,
            revision=self.revision,
            logprobs=token_logprobs,
            tokens=token_texts,
        )
        return Reply(number=prompt.number, answer=answer)

    def _token_texts(self, tokens: list[int]) -> tuple[str, ...]:
        """Return the part of the text that each token adds.

        A token that is decoded alone may lose the blank before it, so each part is the difference
        of two decoded texts.
        """
        starts = [
            self._tokenizer.decode(tokens[:size], skip_special_tokens=True)
            for size in range(len(tokens) + 1)
        ]
        return tuple(text[len(before) :] for before, text in itertools.pairwise(starts))

    @cached_property
    def _tokenizer(self) -> Any:
        """The tokenizer, which is loaded on first use."""
        failure = f"{self.folder}: its tokenizer cannot be read"
        with checkpoint.loading(failure, for_="transformers"):
            tokenizer = checkpoint.load_tokenizer(self.folder, for_="transformers")
        if not tokenizer.chat_template:
            raise UserError(
                f"{self.folder}: its tokenizer has no chat template, so the model does not follow "
                "instructions; choose its chat version (often named …-instruct or "
                "…-chat)"
            )
        # Without a limit, the tokenizer does not warn of long texts: callers check their lengths.
        tokenizer.model_max_length = int(1e30)
        return tokenizer

    @cached_property
    def _model(self) -> Any:
        """The model on its device, which is loaded on first use."""
        set_threads()
        device = torch_device(self.device)
        failure = f"{self.folder}: cannot be loaded on device {device!r}"
        with checkpoint.loading(failure, for_="transformers"):
            kind = "AutoModelForCausalLM"
            model = checkpoint.load(self.folder, kind, for_="transformers", dtype=self.precision)
            model = model.to(device)
            if self.adapter is not None:
                model = with_adapter(model, self.adapter)
        ends = sorted(_end_tokens(model, self._tokenizer))
        padding = self._tokenizer.pad_token_id
        if padding is None:
            padding = ends[0] if ends else 0
        library = checkpoint.transformers(for_="transformers")
        model.generation_config = library.GenerationConfig(
            eos_token_id=ends or None, pad_token_id=padding
        )
        return model

    @cached_property
    def _ends(self) -> frozenset[int]:
        """Numbers of the tokens that end an answer."""
        return frozenset(self._model.generation_config.eos_token_id or ())

    @cached_property
    def context(self) -> int | None:  # type: ignore[override]
        """Most tokens of a prompt and its answer; None if the configuration does not say."""
        config = checkpoint.require(self.folder, tokenizer=False)
        # The configuration of a model for texts and images has a part for texts.
        for part in (config, config.get("text_config")):
            if not isinstance(part, dict):
                continue
            for name in ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length"):
                if part.get(name):
                    return int(part[name])
        return None

    @cached_property
    def training_queries(self) -> frozenset[str]:  # type: ignore[override]
        """Ids of queries that the adapter was trained on."""
        if self.adapter is None or not (self.adapter / TRAINING_QUERIES).is_file():
            return frozenset()
        return frozenset((self.adapter / TRAINING_QUERIES).read_text("utf-8").splitlines())


def with_adapter(model: Any, adapter: Path) -> Any:
    """Return a model with the weights of a low-rank adapter added to its weights."""
    peft = need("peft", extra="train", for_="transformers(adapter=…)")
    try:
        with warnings.catch_warnings():
            # peft calls a function of transformers that is deprecated.
            warnings.simplefilter("ignore", FutureWarning)
            adapted = peft.PeftModel.from_pretrained(model, str(adapter), local_files_only=True)
            return adapted.merge_and_unload().eval()
    except (ValueError, KeyError, RuntimeError, OSError, TypeError) as error:
        reason = first_line(error)
        raise UserError(f"{adapter}: not an adapter of this model: {reason}") from error


def _adapter_hash(folder: Path) -> str:
    """Hash the files of an adapter's folder."""
    if not (folder / "adapter_config.json").is_file():
        raise UserError(
            f"{folder}: no adapter: expected adapter_config.json and weights, as ranktilt train "
            "lora saves them"
        )
    return checkpoint.fingerprint(folder)


def _end_tokens(model: Any, tokenizer: Any) -> set[int]:
    """Return the tokens that end an answer, which a folder may name in three places."""
    tokens: set[int] = set()
    for setting in (
        model.generation_config.eos_token_id,
        model.config.eos_token_id,
        tokenizer.eos_token_id,
    ):
        if isinstance(setting, list):
            tokens.update(setting)
        elif setting is not None:
            tokens.add(setting)
    return tokens


def _seed(prompts: list[Prompt], sampling: Sampling) -> int:
    """Return the seed of a batch, a hash of its prompts and seeds; random if there are no seeds."""
    seeds = [sampling.seed if prompt.seed is None else prompt.seed for prompt in prompts]
    if all(seed is None for seed in seeds):
        return secrets.randbits(63)
    content = repr([(seed, prompt.digest) for seed, prompt in zip(seeds, prompts, strict=True)])
    digest = hashlib.blake2b(content.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1  # a seed of torch has 63 bits
