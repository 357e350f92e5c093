"""Log perplexities of texts under a language model in a folder, cached by content.

The log perplexity of a text is the mean of −ln P(token | the rest) over its tokens: how surprising
a model finds it. A *causal* model reads from left to right and predicts each token from those
before it; a *masked* model sees the whole text, and predicts tokens that are hidden from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktilt.data.cache import Keys, VectorCache, cache_folder, content_keys
from ranktilt.errors import UserError, first_line, unknown_name
from ranktilt.models import checkpoint
from ranktilt.models.batching import TOKENS, BatchJob, Ints, batch_tokens, compute_missing
from ranktilt.models.device import PRECISIONS, inference, torch_device
from ranktilt.models.token_counts import NO_LIMIT
from ranktilt.optional import need
from ranktilt.parallel.executor import Portable

Floats = npt.NDArray[np.float64]
"""Losses −ln P of tokens, or values of texts."""

CLASSES = {"causal": "AutoModelForCausalLM", "masked": "AutoModelForMaskedLM"}
"""transformers' class of each kind of model."""
EVERY = 8
"""Default distance between two tokens that a masked model masks in the same pass."""
LONGEST = 2_048
"""Most tokens of a window, even if the model has positions for more, which would take more memory.
"""
_TOKENS_A_BATCH = 2_048
"""Most tokens of a batch on a processor.

With more, a layer's output would not fit into the processor's cache. A batch on a GPU is larger, by
the factor `Likelihood._device_factor`.
"""
_LOGITS_A_BATCH = 1 << 24
"""Most logits that a processor computes together; a single text may exceed it.

A logit is the model's number for one token of the vocabulary at one position. The memory of a
larger array would be allocated anew each time, and new memory is slow at its first use.
"""
_LOGITS_AT_ONCE = 1 << 22
"""Most logits that are turned into losses together, for the same reason."""
_RESULTS_VERSION = 2
"""Part of every cache key; it is raised if values are computed in another way."""
_CHARACTERS_A_TOKEN = 4
"""Number of characters that count as a token when batches are planned; counting takes longer."""


@dataclass(frozen=True, kw_only=True)
class Likelihoods:
    """Log perplexities of some texts, in their order."""

    perplexity: Floats
    """Mean of −ln P(token | the rest), in nats per token; NaN for a text without a scored token."""
    tokens: Ints
    """Number of tokens that were scored."""


@dataclass(frozen=True, kw_only=True)
class PrefixedText:
    """A text to score, and another one that the model reads first."""

    text: str
    """Text to score."""
    prefix: str = ""
    """Text that is read before it; empty for none."""


@dataclass(frozen=True, kw_only=True)
class TokenRow:
    """One sequence that a model reads, and the tokens that it should predict."""

    text_index: int
    """Index of the text that the sequence belongs to."""
    ids: Ints
    """Tokens that the model reads."""
    positions: Ints
    """Positions of the model's output that predict the targets."""
    targets: Ints
    """Tokens that are scored."""


@dataclass(frozen=True, kw_only=True)
class Likelihood(Portable):
    """A language model in a local folder, as transformers saves it.

    A text that is too long for the model is divided into windows. For a causal model, the second
    half of each window is the first half of the next, so that every token has at least half a
    window before it; for a masked model, windows have equal lengths and do not overlap. A causal
    model reads its start token first; if it has none, the first token of a text is not scored.
    Special tokens are never scored.
    """

    folder: Path
    """Folder of the model."""
    kind: str = "auto"
    """``causal``, ``masked``, or ``auto``: by the class that the model's configuration names."""
    every: int = EVERY
    """Distance of tokens that are masked in the same pass; with 0, each token has its own pass."""
    precision: str = "float32"
    """Precision of the forward pass; log-probabilities are always computed in float32."""
    device: str | None = None
    """Device that the model runs on; None takes a GPU if there is one."""
    model_name: str = ""
    """Name of the model as the user typed it."""

    # Options

    def check(self) -> None:
        """Refuse a folder or options that cannot give likelihoods, without loading weights."""
        need("torch", extra="neural", for_="perplexity")
        config = checkpoint.require(self.folder)
        if self.kind not in ("auto", *CLASSES):
            raise unknown_name("kind of language model", self.kind, ("auto", *CLASSES))
        if self.precision not in PRECISIONS:
            raise unknown_name("precision of perplexity", self.precision, PRECISIONS)
        if not isinstance(self.every, int) or self.every < 0 or self.every == 1:
            raise UserError(
                f"perplexity: every must be 0 (one token at a time) or 2 or more, got {self.every}"
            )
        saved_kind = _kind_of(config)
        if saved_kind is None and self.kind == "auto":
            raise UserError(
                f"{self.folder}: no language model: expected one with a head that predicts tokens"
            )
        if self.kind not in ("auto", saved_kind) and saved_kind is not None:
            raise UserError(
                f"{self.folder}: a {saved_kind} language model cannot be used as a {self.kind} one"
            )
        if self.resolved_kind == "masked" and self._tokenizer.mask_token_id is None:
            raise UserError(
                f"{self.folder}: its tokenizer has no mask token, so it is not a masked language "
                "model"
            )

    @cached_property
    def resolved_kind(self) -> str:
        """``causal`` or ``masked``."""
        if self.kind != "auto":
            return self.kind
        return _kind_of(checkpoint.require(self.folder)) or "causal"

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the model's files, and of the options that decide its values."""
        every = self.every if self.resolved_kind == "masked" else 0
        options = _RESULTS_VERSION, self.resolved_kind, every, self.precision
        return checkpoint.fingerprint(self.folder, *options)

    # Values

    def score(
        self, texts: Sequence[str], prefixes: Sequence[str] | None = None, *, label: str
    ) -> Likelihoods:
        """Return the log perplexity of each text; each distinct text is computed once, then cached.

        With `prefixes`, a causal model reads a text's prefix first, which is not scored, then the
        text d with its S tokens: PPL(d | prefix) = −(1/S) Σ ln P(d_s | d_<s, prefix). The prefix
        may take the tokens of the window that the text leaves free, and at least half of the
        window; the end of a longer prefix is left out (`reads_whole`). `label` names the work in
        the progress.
        """
        if prefixes is not None and self.resolved_kind != "causal":
            raise UserError(
                f"{self.folder}: only a causal model can read another text first (context=)"
            )
        if prefixes is None:
            prefixes = [""] * len(texts)
        prefixed_texts = [
            PrefixedText(text=text, prefix=prefix)
            for text, prefix in zip(texts, prefixes, strict=True)
        ]
        distinct = list(dict.fromkeys(prefixed_texts))
        keys = content_keys(map(_cache_text, distinct))
        cache = VectorCache(cache_folder() / "likelihoods" / self.fingerprint, about=self._about)
        is_cached, stored = cache.get(keys)
        if not is_cached.all():
            stored = compute_missing(self._job(keys, distinct), cache, label)
        row_of = {text: row for row, text in enumerate(distinct)}
        rows = [row_of[text] for text in prefixed_texts]
        values = stored.read(0, len(distinct)).astype(np.float64)[rows].reshape(-1, 2)
        values[values[:, 1] == 0, 0] = np.nan
        return Likelihoods(perplexity=values[:, 0], tokens=values[:, 1].astype(np.int64))

    def distributions(self, text: str, prefix: str = "") -> npt.NDArray[np.float32]:
        """Return ln P over the vocabulary at each scored token, shape (n_tokens, n_vocabulary)."""
        with inference(self._model.device, self.precision):
            parts = [
                self._logits([row]).float().log_softmax(-1).cpu().numpy()
                for row in self._rows([PrefixedText(text=text, prefix=prefix)])[0]
            ]
        return np.concatenate(parts) if parts else np.empty((0, 0), dtype=np.float32)

    def scored_tokens(self, text: str) -> Ints:
        """Return the numbers of a text's tokens that are scored."""
        rows = self._rows([PrefixedText(text=text)])[0]
        if not rows:
            return np.empty(0, dtype=np.int64)
        return np.concatenate([row.targets for row in rows])

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return how many tokens each text has, without special ones."""
        return [len(self._tokenize(text)) for text in texts]

    @property
    def longest_prefix(self) -> int:
        """Most tokens of a prefix that are read before a text, however long the text is."""
        return self._limit // 2 - 1

    def reads_whole(self, prefix: str, text: str) -> bool:
        """Tell whether a prefix is read to its end before a text."""
        prefix_ids, text_ids = self._tokenize([prefix, text])
        return len(prefix_ids) <= self._prefix_room(len(text_ids))

    def _prefix_room(self, text_tokens: int) -> int:
        """Return how many tokens of a prefix are read before a text of `text_tokens` tokens.

        They are the tokens of the window that the text leaves free, and at least half of the
        window.
        """
        return max(self._limit // 2, self._limit - text_tokens) - len(self._start)

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

    def _rows(self, texts: Sequence[PrefixedText]) -> list[list[TokenRow]]:
        """Return the sequences that the model reads to score each text after its prefix."""
        texts_ids = self._tokenize([text.text for text in texts])
        prefixes_ids = self._tokenize([text.prefix for text in texts])
        is_causal = self.resolved_kind == "causal"
        rows_of_texts = list[list[TokenRow]]()
        for text_index, (token_ids, prefix_ids) in enumerate(
            zip(texts_ids, prefixes_ids, strict=True)
        ):
            ids = np.array(token_ids, dtype=np.int64)
            if not token_ids:
                rows_of_texts.append([])
            elif is_causal:
                rows_of_texts.append(list(self._causal_rows(text_index, ids, prefix_ids)))
            else:
                rows_of_texts.append(list(self._masked_rows(text_index, ids)))
        return rows_of_texts

    def _tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of each text, without special ones."""
        backend = self._tokenizer.backend_tokenizer
        encodings = backend.encode_batch_fast(list(texts), add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def _causal_rows(self, text_index: int, ids: Ints, prefix_ids: list[int]) -> Iterator[TokenRow]:
        """Yield the windows of a text for a causal model, which overlap by half."""
        prefix = [*self._start, *prefix_ids[: self._prefix_room(len(ids))]]
        span = self._limit - len(prefix)
        begin = 0
        scored_count = 0 if prefix else 1  # nothing predicts a first token
        while scored_count < len(ids):
            stop = min(begin + span, len(ids))
            scored = np.arange(scored_count, stop)
            yield TokenRow(
                text_index=text_index,
                ids=np.concatenate([prefix, ids[begin:stop]]).astype(np.int64),
                positions=len(prefix) + scored - begin - 1,
                targets=ids[scored],
            )
            # The next window reads the second half of this one again.
            begin = stop - span // 2
            scored_count = stop

    def _masked_rows(self, text_index: int, ids: Ints) -> Iterator[TokenRow]:
        """Yield the windows of a text for a masked model, once for each set of masked tokens."""
        before, after = self._special_tokens
        room = self._limit - len(before) - len(after)
        window_count = -(-len(ids) // room)  # rounded up
        edges = np.linspace(0, len(ids), window_count + 1).astype(np.int64)
        for begin, stop in pairwise(edges.tolist()):
            window = ids[begin:stop]
            step = self.every or len(window)
            for first in range(min(step, len(window))):
                masked = np.arange(first, len(window), step)
                visible = window.copy()
                visible[masked] = self._tokenizer.mask_token_id
                yield TokenRow(
                    text_index=text_index,
                    ids=np.concatenate([before, visible, after]).astype(np.int64),
                    positions=masked + len(before),
                    targets=window[masked],
                )

    @cached_property
    def _special_tokens(self) -> tuple[list[int], list[int]]:
        """Special tokens that the tokenizer puts before and after a text."""
        encoding = self._tokenizer.backend_tokenizer.encode("a")
        letters = [
            position
            for position, is_special in enumerate(encoding.special_tokens_mask)
            if not is_special
        ]
        if not letters:
            raise UserError(f"{self.folder}: its tokenizer makes no token of the letter a")
        return encoding.ids[: letters[0]], encoding.ids[letters[-1] + 1 :]

    @cached_property
    def _limit(self) -> int:
        """Tokens of a window."""
        positions = getattr(self._model.config, "max_position_embeddings", None) or NO_LIMIT
        tokenizer_limit = int(min(self._tokenizer.model_max_length, NO_LIMIT))
        limit = min(int(positions), tokenizer_limit, LONGEST)
        if limit < 8:
            raise UserError(
                f"{self.folder}: the model reads {limit} tokens at once, too few to score texts"
            )
        return limit

    # Computing

    def _job(self, keys: Keys, texts: Sequence[PrefixedText]) -> BatchJob:
        """Return the work of scoring some texts, with an estimate of their lengths."""
        characters = [len(text.text) + len(text.prefix) for text in texts]
        lengths = np.array(characters, dtype=np.int64) // _CHARACTERS_A_TOKEN + 1
        passes = self.every if self.resolved_kind == "masked" else 1

        def take(positions: Ints) -> list[PrefixedText]:
            return [texts[position] for position in positions.tolist()]

        return BatchJob(
            keys=keys,
            # A masked model reads a text once in each pass. There are `every` passes; if it is 0,
            # there are as many as the text has tokens.
            lengths=lengths * (np.minimum(passes, lengths) if passes else lengths),
            compute=self._summaries,
            take=take,
            context=self._inference,
            tokens=_TOKENS_A_BATCH * self._device_factor,
        )

    @contextmanager
    def _inference(self) -> Iterator[None]:
        """Compute without gradients, in the chosen precision."""
        with inference(self._model.device, self.precision):
            yield

    def _summaries(self, texts: Sequence[PrefixedText]) -> npt.NDArray[np.float32]:
        """Return mean and number of the tokens' −ln P of some texts, shape (n_texts, 2)."""
        parts: list[list[Floats]] = [[] for _ in texts]
        rows = sorted(chain.from_iterable(self._rows(texts)), key=lambda row: -len(row.ids))
        for batch in self._batches(rows):
            for row, row_losses in zip(batch, self._losses(batch), strict=True):
                parts[row.text_index].append(row_losses)
        summaries = np.zeros((len(texts), 2), dtype=np.float32)
        for index, text_parts in enumerate(parts):
            losses = np.concatenate(text_parts) if text_parts else np.empty(0)
            summaries[index] = np.nan_to_num(mean_loss(losses)), len(losses)
        return summaries

    def _batches(self, rows: list[TokenRow]) -> Iterator[list[TokenRow]]:
        """Divide rows, which are sorted by length, into batches; padding counts as tokens."""
        most_tokens = _TOKENS_A_BATCH * self._device_factor
        most_scored = _LOGITS_A_BATCH * self._device_factor // self._vocabulary_size
        start = 0
        while start < len(rows):
            # All rows of a batch are padded to the length of the first, which is the longest.
            size = most_tokens // len(rows[start].ids)
            scored = np.cumsum([len(row.targets) for row in rows[start : start + size]])
            fitting = int(np.searchsorted(scored, most_scored, side="right"))
            size = max(min(size, fitting), 1)
            yield rows[start : start + size]
            start += size

    @property
    def _device_factor(self) -> int:
        """Factor by which a batch is larger than on a processor."""
        return batch_tokens(self.device) // TOKENS

    @cached_property
    def _vocabulary_size(self) -> int:
        """Most logits of a position."""
        # Either number may be larger: models pad their vocabulary, tokenizers have added tokens.
        return max(
            int(getattr(self._model.config.get_text_config(), "vocab_size", 0)),
            len(self._tokenizer),
        )

    def _losses(self, rows: list[TokenRow]) -> list[Floats]:
        """Return −ln P of each scored token of each row."""
        torch = need("torch", extra="neural", for_="perplexity")
        logits = self._logits(rows)
        targets = torch.from_numpy(np.concatenate([row.targets for row in rows]))
        targets = targets.to(logits.device)
        step = max(_LOGITS_AT_ONCE * self._device_factor // logits.shape[-1], 1)
        parts = [
            torch.nn.functional.cross_entropy(part.float(), part_targets, reduction="none")
            for part, part_targets in zip(logits.split(step), targets.split(step), strict=True)
        ]
        losses = torch.cat(parts).double().cpu().numpy()
        if not np.isfinite(losses).all():
            raise UserError(f"{self.folder}: the model gives NaN or infinite log-probabilities")
        return np.split(losses, np.cumsum([len(row.targets) for row in rows])[:-1])

    def _logits(self, rows: list[TokenRow]) -> Any:
        """Return the logits at the rows' positions, shape (n_scored, n_vocabulary)."""
        torch = need("torch", extra="neural", for_="perplexity")
        device = self._model.device
        width = max(len(row.ids) for row in rows)
        padding = self._tokenizer.pad_token_id
        ids = np.full((len(rows), width), 0 if padding is None else padding, dtype=np.int64)
        mask = np.zeros_like(ids)
        positions = []
        for index, row in enumerate(rows):
            ids[index, : len(row.ids)] = row.ids
            mask[index, : len(row.ids)] = 1
            positions.append(index * width + row.positions)
        features = {"input_ids": torch.from_numpy(ids).to(device)}
        # In a causal model, no token of a text reads the padding behind it, and attention is faster
        # without a mask.
        if self.resolved_kind != "causal":
            features["attention_mask"] = torch.from_numpy(mask).to(device)
        try:
            return self._logits_at(torch.from_numpy(np.concatenate(positions)).to(device), features)
        except (RuntimeError, IndexError) as error:
            reason = first_line(error)
            raise UserError(
                f"{self.folder}: cannot read texts of {width} tokens: {reason}"
            ) from error

    def _logits_at(self, positions: Any, features: dict[str, Any]) -> Any:
        """Return the logits at some positions of the batch, counted through all its rows.

        The last layer, which is mostly the largest, is run at these positions only. What a model
        does with its logits afterwards, such as capping them, works on any number of rows.
        """
        last_layer = self._model.get_output_embeddings()
        if last_layer is None:
            logits = self._model(**features).logits
            return logits.reshape(-1, logits.shape[-1])[positions]
        forward = last_layer.forward
        last_layer.forward = lambda hidden: forward(hidden.reshape(-1, hidden.shape[-1])[positions])
        try:
            return self._model(**features).logits
        finally:
            last_layer.forward = forward

    @cached_property
    def _model(self) -> Any:
        """The model on its device, which is loaded on first use."""
        failure = f"{self.folder}: cannot be loaded as a language model"
        with checkpoint.loading(failure, for_="perplexity"):
            model = checkpoint.load(self.folder, CLASSES[self.resolved_kind], for_="perplexity")
            model = model.to(torch_device(self.device))
        model.config.get_text_config().use_cache = False  # only generation reads keys and values
        return model

    @cached_property
    def _tokenizer(self) -> Any:
        """The tokenizer, which is loaded on first use."""
        with checkpoint.loading(f"{self.folder}: its tokenizer cannot be read", for_="perplexity"):
            tokenizer = checkpoint.load_tokenizer(self.folder, for_="perplexity")
        if not getattr(tokenizer, "is_fast", False):
            raise UserError(f"{self.folder}: its tokenizer cannot be run by the tokenizers library")
        tokenizer.backend_tokenizer.no_truncation()
        tokenizer.backend_tokenizer.no_padding()
        return tokenizer

    @property
    def _about(self) -> dict[str, Any]:
        """Description of the values for the cache."""
        options = {"kind": self.resolved_kind, "every": self.every, "precision": self.precision}
        return {
            "model": self.model_name or str(self.folder),
            "folder": str(self.folder.absolute()),
            "options": options,
        }


def mean_loss(losses: Floats) -> float:
    """Return the log perplexity of a text: the mean of its tokens' −ln P; NaN without a token."""
    return float(losses.mean()) if len(losses) else np.nan


def _cache_text(text: PrefixedText) -> str:
    """Return the text by which a value is cached; the prefix comes first, after its length."""
    # "all" distinguishes values from those of earlier versions, which read less of a prefix.
    mark = "all " if text.prefix else ""
    return f"{mark}{len(text.prefix)} {text.prefix}{text.text}"


def _kind_of(config: dict[str, Any]) -> str | None:
    """Return the kind of a model by the class that its configuration names; None for others."""
    names = [str(name) for name in config.get("architectures") or ()]
    if any(name.endswith("ForMaskedLM") or name == "BertForPreTraining" for name in names):
        return "masked"
    if any(name.endswith(("ForCausalLM", "LMHeadModel")) for name in names):
        return "causal"
    return None
