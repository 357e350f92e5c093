"""What scores pairs of query and document: a model in a folder, its tokenizer, and its answers kept by content."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktilt.errors import UserError
from ranktilt.executing import memory_limits as chunks
from ranktilt.io.cache import VectorCache
from ranktilt.models import batching as inference
from ranktilt.models import checkpoint as hub
from ranktilt.models.folder import fingerprint, first_line, require_rows, require_settings, require_weights
from ranktilt.models.pairs import NO_LIMIT, Inputs, Ints, Limits, Pairs, Template
from ranktilt.models.token_counts import Tokens
from ranktilt.optional import need

Logits = npt.NDArray[np.float32]
Scores = npt.NDArray[np.float64]

_TOKENIZERS = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "spiece.model",
    "sentencepiece.bpe.model",
    "sentencepiece.model",
    "spm.model",
    "tokenizer.model",
)
_COUNTING = "counting tokens"
_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")


@dataclass(frozen=True)
class Scorer(ABC):
    """A model in a local folder that says of a query and a document how relevant the one is to the other.

    Parameters
    ----------
    folder : Path
        The model.
    ranker : str
        Name of the ranker that it serves.
    limits : Limits
        What stays of query and document.
    precision : {"float32", "bfloat16"}
        Of the forward pass; the last layer always computes in float32, for what bfloat16 rounds would be tied.
    device : str or None
        Torch's name of the device; the fastest there is where None.
    outputs : int, optional
        Numbers that the model gives a pair.
    prompt : str, optional
        What stands before each query.
    typed : str, optional
        The model as the user named it, by which the cache lists it.
    """

    folder: Path
    ranker: str
    limits: Limits
    precision: str
    device: str | None
    outputs: int = field(default=1, kw_only=True)
    prompt: str = field(default="", kw_only=True)
    typed: str = field(default="", kw_only=True)

    @property
    def what(self) -> tuple[object, ...]:
        """What else, beside the model's files and the texts, decides what the model gives."""
        limits = self.limits.query, self.limits.document, self.limits.pair
        return inference.VERSION, self.ranker, *limits, self.precision

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the model's files and of `what`."""
        return fingerprint(self.folder, *self.what)

    @abstractmethod
    def relevance(self, logits: Logits) -> Scores:
        """Turn what the model gives into scores.

        Parameters
        ----------
        logits : ndarray of float32, shape (n, outputs)
            One row a pair.

        Returns
        -------
        ndarray of float64, shape (n,)
            Higher is more relevant.
        """

    @abstractmethod
    def around(self) -> int:
        """Return how many tokens the model puts around a pair, read without the library that computes."""

    @abstractmethod
    def template(self, tokenizer: Any) -> Template:
        """Return what the model puts around a pair; `tokenizer` is transformers' own."""

    @abstractmethod
    def load(self) -> Any:
        """Return the model as transformers loads it, its last layer made to compute in float32."""

    @abstractmethod
    def call(self, model: Any, features: dict[str, Any]) -> Any:
        """Return the model's logits of a batch of tensors, shape (n, outputs)."""

    @cached_property
    def tokens(self) -> Tokens:
        """The tokenizer as one document meets it: no more tokens of it are read than its limit says."""
        single = int(Tokens(self.folder, None).counts([""], _COUNTING)[0]) if self.limits.document is not None else 0
        alone = NO_LIMIT if self.limits.document is None else self.limits.document + single
        limit = min(alone, self.limits.pair)
        return Tokens(self.folder, limit if limit < NO_LIMIT else None)

    def cut(self, pairs: Pairs, label: str) -> npt.NDArray[np.bool_]:
        """Say which pairs' documents are not read to their end.

        Parameters
        ----------
        pairs : Pairs
            The pairs.
        label : str
            Names the progress.

        Returns
        -------
        ndarray of bool, shape (n_pairs,)
            True where some of the document is cut off.
        """
        tokens = self.tokens
        texts = ["", *(self.prompt + text for text in pairs.queries), *pairs.documents]
        counts = tokens.counts(texts, label)
        counts = counts[1:] - counts[0]
        query, document = counts[: len(pairs.queries)][pairs.query], counts[len(pairs.queries) :][pairs.document]
        return np.asarray(self.limits.kept(query, document, self.around())[1] < document)

    def logits(self, pairs: Pairs, label: str) -> Logits:
        """Return what the model gives for each pair.

        Parameters
        ----------
        pairs : Pairs
            Each is computed once, here or in an earlier run.
        label : str
            Names the progress.

        Returns
        -------
        ndarray of float32, shape (n_pairs, outputs)
            Finite.

        Raises
        ------
        UserError
            If the model cannot be loaded, or gives something that is no number.
        """
        cache = VectorCache(chunks.vector_folder() / "pairs" / self.fingerprint, about=self._about)
        found, stored = cache.get(pairs.keys)
        if not found.all():
            require_rows(self.folder)
            stored = inference.fill(self._job(pairs), cache, label)
        return stored.read(0, len(pairs))

    @property
    def _about(self) -> dict[str, Any]:
        sizes = {"max_query_tokens": self.limits.query, "max_document_tokens": self.limits.document}
        options = {"precision": self.precision, "ranker": self.ranker, **sizes}
        return {"model": self.typed or str(self.folder), "folder": str(self.folder.absolute()), "options": options}

    def _job(self, pairs: Pairs) -> inference.Job:
        tokenizer = self._tokenizer
        if self.prompt:
            prompted = tuple(self.prompt + text for text in pairs.queries)
            pairs = Pairs(prompted, pairs.documents, pairs.query, pairs.document, pairs.keys, pairs.entry)
        inputs = Inputs.of(tokenizer.backend_tokenizer, pairs, self.template(tokenizer), self.limits)
        pad, left = int(tokenizer.pad_token_id), tokenizer.padding_side == "left"

        budget = inference.GPU_BUDGET if hub.on_gpu(self.device) else inference.BUDGET
        shapes = inference.Shapes(budget, self.limits.pair)
        padding = {"input_ids": pad, "token_type_ids": tokenizer.pad_token_type_id}

        def prepare(positions: Ints) -> list[inference.Part]:
            made = inputs.batch(positions, pad, pad_type=tokenizer.pad_token_type_id, left=left)
            return inference.fixed(made, shapes, padding, left=left)

        forward = partial(inference.assembled, self._forward)
        return inference.Job(pairs.keys, inputs.lengths, prepare, forward, self._computing, shapes)

    @contextmanager
    def _computing(self) -> Iterator[None]:
        device = self._model.device
        with inference.computing(device, self.precision):
            yield

    @cached_property
    def _device(self) -> str:
        if self.device is not None:
            return self.device
        torch = need("torch", extra="neural", for_=self.ranker)
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() else "cpu"

    def _forward(self, features: dict[str, Ints]) -> Logits:
        torch = need("torch", extra="neural", for_=self.ranker)
        model = self._model
        tensors = {name: torch.from_numpy(values).to(self._device) for name, values in features.items()}
        try:
            found = self.call(model, tensors).float().cpu().numpy()
        except (RuntimeError, IndexError) as error:
            size = features["input_ids"].shape[1]
            raise UserError(f"{self.folder}: cannot score pairs of {size} tokens: {first_line(error)}") from error
        if found.shape != (len(features["input_ids"]), self.outputs):
            expected = f"{self.outputs} a pair"
            raise UserError(f"{self.folder}: expected {expected}, got scores of the shape {found.shape}")
        if not np.isfinite(found).all():
            raise UserError(f"{self.folder}: the model gives NaN or infinite scores")
        return np.ascontiguousarray(found, dtype=np.float32)

    @cached_property
    def _model(self) -> Any:
        transformers = need("transformers", extra="neural", for_=self.ranker)
        transformers.utils.logging.disable_progress_bar()
        try:
            with _quiet(transformers):
                return self.load().float().eval().to(self._device)
        except UserError:
            raise
        except Exception as error:  # each library has its own ways to fail at a broken folder or an absent device
            where = f" on device {self.device!r}" if self.device else ""
            message = f"{self.folder}: cannot be loaded as a model for {self.ranker}{where}: {first_line(error)}"
            raise UserError(message) from error

    @cached_property
    def _tokenizer(self) -> Any:
        transformers = need("transformers", extra="neural", for_=self.ranker)
        try:
            with _quiet(transformers):
                found = transformers.AutoTokenizer.from_pretrained(
                    str(self.folder), trust_remote_code=False, local_files_only=True
                )
        except Exception as error:  # as above
            raise UserError(f"{self.folder}: its tokenizer cannot be read: {first_line(error)}") from error
        if not getattr(found, "is_fast", False):
            raise UserError(f"{self.folder}: its tokenizer is of a kind that the tokenizers library cannot run")
        if found.pad_token_id is None:
            raise UserError(f"{self.folder}: its tokenizer has no padding token, so pairs cannot share a batch")
        found.backend_tokenizer.no_truncation()
        found.backend_tokenizer.no_padding()
        return found


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Keep what transformers logs at loading off the terminal: what matters comes as an error of ours."""
    logging = transformers.utils.logging
    level = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)


def require_model(folder: Path, ranker: str) -> dict[str, Any]:
    """Find out without loading it whether a folder holds a model.

    Parameters
    ----------
    folder : Path
        The model.
    ranker : str
        Who asks, for the message.

    Returns
    -------
    dict
        The model's configuration.

    Raises
    ------
    UserError
        If configuration, tokenizer or weights are missing, or the model brings code of its own.
    """
    config = hub.read_json(folder / "config.json", dict)
    if not config:
        raise UserError(f"{folder}: no model for {ranker}: expected a config.json as transformers saves it")
    hub.refuse_code(folder)
    if not any((folder / name).is_file() for name in _TOKENIZERS):
        raise UserError(
            f"{folder}: no tokenizer: expected a tokenizer.json (or the vocabulary of one) beside the model"
        )
    if not any(any(folder.glob(pattern)) for pattern in _WEIGHTS):
        raise UserError(f"{folder}: no weights: expected a model.safetensors or pytorch_model.bin")
    require_settings(folder)
    return config


def loaded(folder: Path, library: Any) -> Any:
    """Load a model with one of transformers' classes, all of its weights from the folder.

    Parameters
    ----------
    folder : Path
        The model.
    library : type
        The class.

    Returns
    -------
    torch.nn.Module
        The model.

    Raises
    ------
    UserError
        If the folder lacks weights, which the class would make up at random, or has them in another shape.
    """
    model, told = library.from_pretrained(
        str(folder),
        trust_remote_code=False,
        local_files_only=True,
        output_loading_info=True,
        ignore_mismatched_sizes=True,
    )
    require_weights(folder, model, told)
    return model


def in_float32(layer: Any) -> Any:
    """Make a layer compute in float32 wherever it stands; returns the layer."""
    torch = need("torch", extra="neural", for_="a re-ranker")
    plain = layer.forward

    def forward(values: Any) -> Any:
        with torch.autocast(values.device.type, enabled=False):
            return plain(values.float())

    layer.forward = forward
    return layer


def sigmoid(values: npt.NDArray[np.floating[Any]]) -> Scores:
    """Logistic function in float64, of numbers of any size."""
    wide = np.asarray(values, dtype=np.float64)
    small = np.exp(-np.abs(wide))
    return np.asarray(np.where(wide >= 0, 1 / (1 + small), small / (1 + small)))
