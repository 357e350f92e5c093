"""How likely a language model in a folder finds texts: log perplexities, each computed once and kept by content."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ranktilt.data.cache import VectorCache, cache_folder, content_keys
from ranktilt.errors import UserError, first_line, unknown
from ranktilt.models import checkpoint
from ranktilt.models.batching import TOKENS, BatchJob, Ints, batch_tokens, compute_missing
from ranktilt.models.device import PRECISIONS, inference, torch_device
from ranktilt.models.token_counts import NO_LIMIT
from ranktilt.optional import need
from ranktilt.parallel.executor import Portable

Floats = npt.NDArray[np.float64]

CLASSES = {"causal": "AutoModelForCausalLM", "masked": "AutoModelForMaskedLM"}
"""Kinds of model: left to right, and with masks."""
EVERY = 8
"""Of the tokens of a masked model, one in so many is masked at once."""
LONGEST = 2_048
"""Tokens of a window at most, where the model has places for more."""
_TOKENS_A_BATCH = 2_048
"""On a processor, and as many times more on a GPU as it has elsewhere; what a layer makes of more leaves its cache."""
_LOGITS_A_BATCH, _LOGITS_AT_ONCE = 1 << 24, 1 << 22
"""On a processor: computed together, but for a longer text, and made losses together; pages of more are always new."""
_RESULTS_VERSION = 2
_CHARACTERS_A_TOKEN = 4


class Likelihoods(NamedTuple):
    """Of each text, in the order given."""

    perplexity: Floats
    """Mean of −ln P(token | the rest) over the tokens: nats a token, at least 0; NaN where no token can be scored."""
    tokens: Ints
    """Tokens that were scored."""


@dataclass(frozen=True)
class TokenRow:
    """One sequence that a model reads: where in its output predictions stand, and which tokens they should predict."""

    item: int
    ids: Ints
    at: Ints
    token: Ints


@dataclass(frozen=True, kw_only=True)
class Likelihood(Portable):
    """A language model in a local folder, as transformers saves it.

    Texts longer than the model reads are windowed: a causal model reads the second half of each
    window again as the first half of the next, so that every token has half a window before it; a
    masked one reads parts of equal length. A causal model reads its start token first, and where it
    has none, the first token of a text is not scored; special tokens are never scored.
    """

    folder: Path
    kind: str = "auto"
    """``causal``, ``masked``, or by the class that the model's configuration names."""
    every: int = EVERY
    """A masked model masks every so manieth token at once, in as many passes; 0 is exact, one token at a time."""
    precision: str = "float32"
    """Of the forward pass; log-probabilities are always computed in float32."""
    device: str | None = None
    model_name: str = ""
    """The model as the user named it."""

    # What it is

    def check(self) -> None:
        """Refuse, before anything is computed, a folder or options that cannot give likelihoods; loads no weights."""
        need("torch", extra="neural", for_="perplexity")
        config = checkpoint.require(self.folder)
        if self.kind not in ("auto", *CLASSES):
            raise unknown("kind of language model", self.kind, ("auto", *CLASSES))
        if self.precision not in PRECISIONS:
            raise unknown("precision of perplexity", self.precision, PRECISIONS)
        if not isinstance(self.every, int) or self.every < 0 or self.every == 1:
            raise UserError(
                f"perplexity: every must be 0 (one token at a time) or 2 or more, got {self.every}"
            )
        found = _kind_of(config)
        if found is None and self.kind == "auto":
            raise UserError(
                f"{self.folder}: no language model: expected one with a head that predicts tokens"
            )
        if self.kind not in ("auto", found) and found is not None:
            raise UserError(
                f"{self.folder}: a {found} language model cannot be used as a {self.kind} one"
            )
        if self.resolved_kind == "masked" and self._tokenizer.mask_token_id is None:
            raise UserError(
                f"{self.folder}: its tokenizer has no mask token, so it is no masked language model"
            )

    @cached_property
    def resolved_kind(self) -> str:
        """``causal`` or ``masked``."""
        return (
            self.kind
            if self.kind != "auto"
            else _kind_of(checkpoint.require(self.folder)) or "causal"
        )

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the model's files and of what else decides the values."""
        every = self.every if self.resolved_kind == "masked" else 0
        options = _RESULTS_VERSION, self.resolved_kind, every, self.precision
        return checkpoint.fingerprint(self.folder, *options)

    # Values

    def score(
        self, texts: Sequence[str], given: Sequence[str] | None = None, *, label: str
    ) -> Likelihoods:
        """Return the log perplexity of each text; each distinct one is computed once, then cached.

        With `given`, a causal model reads another text first, which is not scored, then the text:
        PPL(d | given) = −(1/S) Σ ln P(d_s | d_<s, given). `given` has what the text leaves of
        the window, or half of it where the text needs more; its end is left out (see `reads_whole`).
        """
        if given is not None and self.resolved_kind != "causal":
            raise UserError(
                f"{self.folder}: only a causal model can read another text first (given=)"
            )
        both = list(zip(texts, given if given is not None else [""] * len(texts), strict=True))
        distinct = list(dict.fromkeys(both))
        keys = content_keys(
            [f"{'all ' if before else ''}{len(before)} {before}{text}" for text, before in distinct]
        )
        cache = VectorCache(cache_folder() / "likelihoods" / self.fingerprint, about=self._about)
        found, stored = cache.get(keys)
        if not found.all():
            stored = compute_missing(self._job(keys, distinct), cache, label)
        place = {one: number for number, one in enumerate(distinct)}
        values = (
            stored.read(0, len(distinct))
            .astype(np.float64)[[place[one] for one in both]]
            .reshape(-1, 2)
        )
        values[values[:, 1] == 0, 0] = np.nan
        return Likelihoods(values[:, 0], values[:, 1].astype(np.int64))

    def distributions(self, text: str, given: str = "") -> npt.NDArray[np.float32]:
        """Return ln P over the whole vocabulary at each scored token of a text, shape (n_tokens, n_vocabulary)."""
        with inference(self._model.device, self.precision):
            parts = [
                self._logits([row]).float().log_softmax(-1).cpu().numpy()
                for row in self._rows([(text, given)])[0]
            ]
        return np.concatenate(parts) if parts else np.empty((0, 0), dtype=np.float32)

    def scored_tokens(self, text: str) -> Ints:
        """Return the numbers of a text's tokens that are scored."""
        rows = self._rows([(text, "")])[0]
        return np.concatenate([row.token for row in rows]) if rows else np.empty(0, dtype=np.int64)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return how many tokens each text has, special ones aside."""
        return [len(self._tokenize(text)) for text in texts]

    @property
    def longest_prefix(self) -> int:
        """Tokens of another text that are read first, at most; see `score`."""
        return self._limit // 2 - 1

    def reads_whole(self, given: str, text: str) -> bool:
        """Whether another text is read to its end before this one; see `score`."""
        both = [len(ids) for ids in self._tokenize([given, text])]
        return both[0] <= self._prefix_room(both[1])

    def _prefix_room(self, tokens: int) -> int:
        """Tokens of another text that are read before a text of so many."""
        return max(self._limit // 2, self._limit - tokens) - len(self._start)

    @cached_property
    def _start(self) -> list[int]:
        """The token that a causal model reads first, if it has one."""
        start = self._tokenizer.bos_token_id
        start = self._tokenizer.eos_token_id if start is None else start
        return [] if start is None else [int(start)]

    def vocabulary(self) -> dict[str, int]:
        """Return the tokenizer's tokens and their numbers."""
        return dict(self._tokenizer.get_vocab())

    # Sequences

    def _rows(self, texts: Sequence[tuple[str, str]]) -> list[list[TokenRow]]:
        """Return what the model reads to score each text after what is given."""
        found = list[list[TokenRow]]()
        for item, (tokens, given) in enumerate(
            zip(*map(self._tokenize, zip(*texts, strict=True)), strict=True)
        ):
            ids = np.array(tokens, dtype=np.int64)
            causal = self.resolved_kind == "causal"
            rows = self._causal_rows(item, ids, given) if causal else self._masked_rows(item, ids)
            found.append(list(rows) if tokens else [])
        return found

    def _tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        found = self._tokenizer.backend_tokenizer.encode_batch_fast(
            list(texts), add_special_tokens=False
        )
        return [one.ids for one in found]

    def _causal_rows(self, item: int, ids: Ints, given: list[int]) -> Iterator[TokenRow]:
        prefix = [*self._start, *given[: self._prefix_room(len(ids))]]
        span = self._limit - len(prefix)
        begin, done = 0, 0 if prefix else 1
        while done < len(ids):
            stop = min(begin + span, len(ids))
            scored = np.arange(done, stop)
            yield TokenRow(
                item,
                np.concatenate([prefix, ids[begin:stop]]).astype(np.int64),
                len(prefix) + scored - begin - 1,
                ids[scored],
            )
            begin, done = stop - span // 2, stop

    def _masked_rows(self, item: int, ids: Ints) -> Iterator[TokenRow]:
        before, after = self._special_tokens
        most = self._limit - len(before) - len(after)
        edges = np.linspace(0, len(ids), -(-len(ids) // most) + 1).astype(np.int64)
        for begin, stop in pairwise(edges.tolist()):
            part = ids[begin:stop]
            step = self.every or len(part)
            for first in range(min(step, len(part))):
                places = np.arange(first, len(part), step)
                hidden = part.copy()
                hidden[places] = self._tokenizer.mask_token_id
                read = np.concatenate([before, hidden, after]).astype(np.int64)
                yield TokenRow(item, read, places + len(before), part[places])

    @cached_property
    def _special_tokens(self) -> tuple[list[int], list[int]]:
        """Special tokens that the tokenizer puts before and after a text."""
        one = self._tokenizer.backend_tokenizer.encode("a")
        inner = [place for place, special in enumerate(one.special_tokens_mask) if not special]
        if not inner:
            raise UserError(f"{self.folder}: its tokenizer makes no token of the letter a")
        return one.ids[: inner[0]], one.ids[inner[-1] + 1 :]

    @cached_property
    def _limit(self) -> int:
        """Tokens of a window."""
        config, tokenizer = self._model.config, self._tokenizer.model_max_length
        places = getattr(config, "max_position_embeddings", None) or NO_LIMIT
        limit = min(int(places), int(min(tokenizer, NO_LIMIT)), LONGEST)
        if limit < 8:
            raise UserError(
                f"{self.folder}: the model reads {limit} tokens at once, too few to score texts"
            )
        return limit

    # Computing

    def _job(self, keys: Any, texts: Sequence[tuple[str, str]]) -> BatchJob:
        passes = self.every if self.resolved_kind == "masked" else 1
        lengths = (
            np.array([len(text) + len(given) for text, given in texts], dtype=np.int64)
            // _CHARACTERS_A_TOKEN
            + 1
        )
        cost = lengths * (np.minimum(passes, lengths) if passes else lengths)
        tokens = _TOKENS_A_BATCH * self._device_factor

        def take(positions: Ints) -> list[tuple[str, str]]:
            return [texts[place] for place in positions.tolist()]

        return BatchJob(keys, cost, self._summaries, take, self._inference, tokens)

    @contextmanager
    def _inference(self) -> Iterator[None]:
        with inference(self._model.device, self.precision):
            yield

    def _summaries(self, texts: Sequence[tuple[str, str]]) -> npt.NDArray[np.float32]:
        """Return mean and number of the negative log-likelihoods of some texts, shape (n_texts, 2)."""
        found: list[list[Floats]] = [[] for _ in texts]
        rows = sorted(
            (row for one in self._rows(texts) for row in one), key=lambda row: -len(row.ids)
        )
        for batch in self._batches(rows):
            for row, losses in zip(batch, self._losses(batch), strict=True):
                found[row.item].append(losses)
        together = [np.concatenate(losses) if losses else np.empty(0) for losses in found]
        return np.array(
            [[np.nan_to_num(mean_loss(one)), len(one)] for one in together], dtype=np.float32
        )

    def _batches(self, rows: list[TokenRow]) -> Iterator[list[TokenRow]]:
        """Cut rows, the longest first, into batches of so many tokens with their padding."""
        most, logits = _TOKENS_A_BATCH * self._device_factor, _LOGITS_A_BATCH * self._device_factor
        start = 0
        while start < len(rows):
            size = most // len(rows[start].ids)
            scored = np.cumsum([len(row.at) for row in rows[start : start + size]])
            size = max(
                min(size, int(np.searchsorted(scored, logits // self._outputs, side="right"))), 1
            )
            yield rows[start : start + size]
            start += size

    @property
    def _device_factor(self) -> int:
        """How many times more a batch has than on a processor."""
        return batch_tokens(self.device) // TOKENS

    @cached_property
    def _outputs(self) -> int:
        return max(
            int(getattr(self._model.config.get_text_config(), "vocab_size", 0)),
            len(self._tokenizer),
        )

    def _losses(self, rows: list[TokenRow]) -> list[Floats]:
        """Return −ln P of each scored token of each row."""
        torch = need("torch", extra="neural", for_="perplexity")
        logits = self._logits(rows)
        tokens = torch.from_numpy(np.concatenate([row.token for row in rows])).to(logits.device)
        step = max(_LOGITS_AT_ONCE * self._device_factor // logits.shape[-1], 1)
        parts = [
            torch.nn.functional.cross_entropy(some.float(), expected, reduction="none")
            for some, expected in zip(logits.split(step), tokens.split(step), strict=True)
        ]
        found = torch.cat(parts).double().cpu().numpy()
        if not np.isfinite(found).all():
            raise UserError(f"{self.folder}: the model gives NaN or infinite log-probabilities")
        return np.split(found, np.cumsum([len(row.at) for row in rows])[:-1])

    def _logits(self, rows: list[TokenRow]) -> Any:
        """Return the logits at the places where predictions stand, shape (n_scored, n_vocabulary)."""
        torch = need("torch", extra="neural", for_="perplexity")
        width = max(len(row.ids) for row in rows)
        pad = self._tokenizer.pad_token_id
        ids = np.full((len(rows), width), 0 if pad is None else pad, dtype=np.int64)
        mask = np.zeros_like(ids)
        for number, row in enumerate(rows):
            ids[number, : len(row.ids)], mask[number, : len(row.ids)] = row.ids, 1
        # Nothing reads the padding behind a text in a causal model, which without a mask takes a
        # quicker attention.
        features = (
            {"input_ids": ids}
            if self.resolved_kind == "causal"
            else {"input_ids": ids, "attention_mask": mask}
        )
        at = torch.from_numpy(
            np.concatenate([number * width + row.at for number, row in enumerate(rows)])
        )
        tensors = {
            name: torch.from_numpy(values).to(self._model.device)
            for name, values in features.items()
        }
        try:
            return self._head(tensors, at.to(self._model.device))
        except (RuntimeError, IndexError) as error:
            reason = first_line(error)
            raise UserError(
                f"{self.folder}: cannot read texts of {width} tokens: {reason}"
            ) from error

    def _head(self, features: dict[str, Any], at: Any) -> Any:
        """The model up to the logits at some places; its last layer, mostly the largest, computes no others.

        What a model does with the logits afterwards, such as capping them, works on any number of
        rows.
        """
        last = self._model.get_output_embeddings()
        if last is None:
            logits = self._model(**features).logits
            return logits.reshape(-1, logits.shape[-1])[at]
        plain = last.forward
        last.forward = lambda hidden: plain(hidden.reshape(-1, hidden.shape[-1])[at])
        try:
            return self._model(**features).logits
        finally:
            last.forward = plain

    @cached_property
    def _model(self) -> Any:
        with checkpoint.loading(
            f"{self.folder}: cannot be loaded as a language model", for_="perplexity"
        ):
            model = checkpoint.load(self.folder, CLASSES[self.resolved_kind], for_="perplexity")
            model = model.to(torch_device(self.device))
        model.config.get_text_config().use_cache = (
            False  # keys and values are of use to generation only
        )
        return model

    @cached_property
    def _tokenizer(self) -> Any:
        with checkpoint.loading(f"{self.folder}: its tokenizer cannot be read", for_="perplexity"):
            found = checkpoint.load_tokenizer(self.folder, for_="perplexity")
        if not getattr(found, "is_fast", False):
            raise UserError(f"{self.folder}: its tokenizer cannot be run by the tokenizers library")
        found.backend_tokenizer.no_truncation()
        found.backend_tokenizer.no_padding()
        return found

    @property
    def _about(self) -> dict[str, Any]:
        options = {"kind": self.resolved_kind, "every": self.every, "precision": self.precision}
        return {
            "model": self.model_name or str(self.folder),
            "folder": str(self.folder.absolute()),
            "options": options,
        }


def mean_loss(losses: Floats) -> float:
    """Return the log perplexity of a text: the mean of its tokens' −ln P; NaN without a token."""
    return float(losses.mean()) if len(losses) else np.nan


def _kind_of(config: dict[str, Any]) -> str | None:
    """Tell the kind of a model by the class that its configuration names."""
    names = [str(name) for name in config.get("architectures") or ()]
    if any(name.endswith("ForMaskedLM") or name == "BertForPreTraining" for name in names):
        return "masked"
    return (
        "causal" if any(name.endswith(("ForCausalLM", "LMHeadModel")) for name in names) else None
    )
