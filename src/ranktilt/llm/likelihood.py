"""Log perplexities from a server that gives the log-probabilities of a prompt's own tokens, as vLLM does."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ranktilt.errors import UserError, counted
from ranktilt.executing.memory_limits import vector_folder
from ranktilt.io.cache import VectorCache, content_keys
from ranktilt.llm.client import ServerClient
from ranktilt.llm.openai import OpenAI
from ranktilt.llm.responses import FailedRequest
from ranktilt.models.likelihood import Likelihoods
from ranktilt.progress import report

SAMPLE = "The quick brown fox jumps over the lazy dog."
_WRITE_EVERY = 256


class PromptClient(ServerClient):
    """Texts in, each with what stands before it; −ln P of each text's tokens out, a prompt's first one left out."""

    path = "/completions"

    async def serve(self, number: int, item: tuple[str, str]) -> tuple[int, list[float]]:
        before, text = item
        model, prompt = self.server.model, before + text
        body = {"model": model, "prompt": prompt, "max_tokens": 1, "temperature": 0, "echo": True, "logprobs": 1}
        try:
            data, _ = await self.post(body, dict)
        except FailedRequest as error:
            words = counted(len(prompt.split()), "word", "words")
            where = self.server.where
            raise UserError(f"{where} does not score text {number} ({words}): {error.message}") from None
        return number, prompt_losses(data, prompt, tail=text if before else None)


def prompt_losses(data: Mapping[str, Any], text: str, *, tail: str | None = None) -> list[float]:
    """Read −ln P of a prompt's tokens but the first, and refuse what are not the prompt's own tokens.

    A server may ignore what was asked and answer as usual; its numbers would then be those of other tokens. With
    `tail`, the end of the prompt, only its tokens count.
    """
    try:
        choice, count = data["choices"][0], data["usage"]["prompt_tokens"]
        tokens, values = choice["logprobs"]["tokens"], choice["logprobs"]["token_logprobs"]
        own = choice["text"].startswith(text) and len(tokens) == len(values) >= count
        broken = any("\ufffd" in token or token.startswith("bytes:") for token in tokens[:count])
        own = own and (broken or "".join(tokens[:count]).endswith(text))
    except (KeyError, IndexError, TypeError, AttributeError):
        raise UserError(_refusal("they are missing")) from None
    if not own:
        raise UserError(_refusal("they do not match the prompt's tokens one by one"))
    found = values[1:count]
    if not all(isinstance(value, int | float) and math.isfinite(value) and value <= 0 for value in found):
        raise UserError(_refusal("some are missing or no log-probabilities"))
    losses = [-float(value) for value in found]
    return losses if tail is None else losses[len(losses) - tail_length(tokens[1:count], tail) :]


def tail_length(tokens: Sequence[str], tail: str) -> int:
    """Return how many of the last tokens make the end of a prompt, blanks aside; refuses tokens that do not."""
    wanted, found = "".join(tail.split()), ""
    for number, token in enumerate(reversed(tokens), 1):
        found = "".join(token.replace("\u2581", " ").split()) + found
        if len(found) >= len(wanted):
            if found == wanted:
                return number
            break
    raise UserError(_refusal("which ones are the query's cannot be told"))


def _refusal(reason: str) -> str:
    return f"the server gives no log-probabilities of a prompt's own tokens: {reason}"


class LikelihoodServer:
    """A language model behind a server, asked for the log-probabilities of each text's own tokens.

    The server is asked once before anything is scored, and refused unless what comes back matches the prompt's tokens
    one by one. The first token of a text is scored only where the server's tokenizer puts a start token before it.
    """

    def __init__(self, model: OpenAI) -> None:
        self.model = model

    def require_scores(self) -> None:
        """Find out whether the server gives them; `UserError` where it does not."""
        try:
            list(self.model.scored([("", SAMPLE)], PromptClient))
        except UserError as error:
            raise UserError(f"openai:{self.model.name} cannot score texts: {error}") from None

    def score(self, texts: Sequence[str], given: Sequence[str] | None = None, *, label: str) -> Likelihoods:
        """Return the log perplexity of each text; each distinct one is asked for once, then cached.

        With `given`, another text stands before each, which is read and not scored.
        """
        both = list(zip(given if given is not None else [""] * len(texts), texts, strict=True))
        distinct = list(dict.fromkeys(one for one in both if one[1].strip()))
        keys = content_keys([f"\0{len(before)} {before}{text}" if before else text for before, text in distinct])
        fingerprint = hashlib.sha256(f"perplexity\0{self.model.identity}".encode()).hexdigest()[:32]
        about = {"model": f"openai:{self.model.name}", "options": self.model.spec}
        cache = VectorCache(vector_folder() / "likelihoods" / fingerprint, about=about)
        found, stored = cache.get(keys)
        missing = np.flatnonzero(~found)
        if len(missing):
            cache.require_writable()
            self._compute([distinct[place] for place in missing.tolist()], keys[missing], cache, label)
            found, stored = cache.get(keys)
        table = np.vstack([stored.read(0, len(distinct)).astype(np.float64).reshape(-1, 2), [[np.nan, 0.0]]])
        place = {one: number for number, one in enumerate(distinct)}
        values = table[[place.get(one, -1) for one in both]].reshape(-1, 2)
        return Likelihoods(values[:, 0], values[:, 1].astype(np.int64))

    def _compute(self, texts: list[tuple[str, str]], keys: Any, cache: VectorCache, label: str) -> None:
        self.require_scores()
        rows, places = [], []
        report(label, 0, len(texts))
        try:
            for done, (place, losses) in enumerate(self.model.scored(texts, PromptClient), 1):
                rows.append([float(np.mean(losses)) if losses else np.nan, len(losses)])
                places.append(place)
                report(label, done, len(texts))
                if len(rows) == _WRITE_EVERY:
                    cache.put(keys[places], np.array(rows, dtype=np.float32))
                    rows, places = [], []
        finally:
            if rows:
                cache.put(keys[places], np.array(rows, dtype=np.float32))
