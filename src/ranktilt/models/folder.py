"""A model's folder: what it must hold, how it is known again by its content, and how it is loaded."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from ranktilt.errors import UserError, shorten
from ranktilt.io.files import sha256
from ranktilt.optional import need

_IGNORED = (".md", ".onnx")
_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
_SIZES = {
    *("hidden_size", "embedding_size", "intermediate_size", "vocab_size", "max_position_embeddings", "head_dim"),
    *("num_hidden_layers", "num_attention_heads", "num_key_value_heads", "num_layers", "num_heads", "num_labels"),
    *("d_model", "d_ff", "d_kv", "dim", "hidden_dim", "n_layers", "n_heads", "n_embd", "n_layer", "n_head"),
    *("n_positions", "word_embedding_dimension", "embedding_dimension", "in_features", "out_features"),
    *("max_seq_length", "model_max_length"),
}
"""Settings that say how large a model is, or how much it reads, by the names that architectures give them."""
_KINDS: dict[str, tuple[type, str]] = {
    "architectures": (list, "a list"),
    "default_prompt_name": (str, "text"),
    "id2label": (dict, "a dict from numbers to names"),
    "model_type": (str, "text"),
    "pad_token_id": (int, "a whole number"),
    "processor_kwargs": (dict, "a dict"),
    "prompts": (dict, "a dict"),
    "tokenizer_args": (dict, "a dict"),
}
"""Settings that are read here, and what they are."""
_FILES = (
    "config.json",
    "config_sentence_transformers.json",
    "sentence_bert_config.json",
    "tokenizer_config.json",
)
_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def transformers(*, for_: str) -> Any:
    """Import transformers, or say how to install it; its progress bars are off."""
    library = need("transformers", extra="neural", for_=for_)
    library.utils.logging.disable_progress_bar()
    return library


def require_folder(folder: Path, *, for_: str) -> None:
    """Find out without loading it whether a folder holds a model of transformers that brings no code of its own.

    Parameters
    ----------
    folder : Path
        The model.
    for_ : str
        Who asks, for the message.

    Raises
    ------
    UserError
        If there is no such folder, or configuration or weights are missing, or it would run code.
    """
    if not folder.is_dir():
        raise UserError(f"{for_}: {folder} is no folder; expected one with a model as transformers saves it")
    if not (folder / "config.json").is_file():
        raise UserError(f"{folder}: no model: expected a config.json as transformers saves it")
    config = _settings(folder / "config.json")
    if config.get("auto_map") and config.get("model_type") not in transformers(for_=for_).CONFIG_MAPPING:
        kind = config.get("model_type")
        raise UserError(f"{folder}: its architecture {kind!r} is code of the model's own, which is never run")
    if not any(any(folder.glob(pattern)) for pattern in _WEIGHTS):
        raise UserError(f"{folder}: no weights: expected a model.safetensors or pytorch_model.bin")
    require_settings(folder)
    require_rows(folder)


def fingerprint(folder: Path, *what: object) -> str:
    """Hash a model's files, and what else its results depend on.

    Parameters
    ----------
    folder : Path
        The model; what people read (``.md``) and exports for other libraries (``.onnx``) do not count.
    *what : object
        Options that change results, told apart by their ``repr``.

    Returns
    -------
    str
        32 hexadecimal digits, the same wherever the folder lies.
    """
    whole = hashlib.blake2b(repr(what).encode(), digest_size=16)
    for file in sorted(p for p in folder.rglob("*") if p.is_file() and p.suffix not in _IGNORED):
        state = file.stat()
        whole.update(
            f"{file.relative_to(folder).as_posix()} {_hash(file, state.st_size, state.st_mtime_ns)}\n".encode()
        )
    return whole.hexdigest()


@cache
def _hash(file: Path, size: int, changed: int) -> str:
    """A file's hash, computed again only when its size or time of change is another."""
    return sha256(file)


def load_tokenizer(folder: Path, *, for_: str) -> Any:
    """Load the tokenizer of a model that chats.

    Parameters
    ----------
    folder : Path
        The model.
    for_ : str
        Who asks, for the message.

    Returns
    -------
    transformers.PreTrainedTokenizerBase
        The tokenizer, with a chat template.

    Raises
    ------
    UserError
        If it cannot be read, or has no chat template.
    """
    library = transformers(for_=for_)
    try:
        with quiet(library):
            found = library.AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False, local_files_only=True)
    except Exception as error:  # each kind of tokenizer has its own ways to fail at a broken folder
        raise UserError(f"{folder}: its tokenizer cannot be read: {first_line(error)}") from error
    if not found.chat_template:
        raise UserError(
            f"{folder}: its tokenizer has no chat template, so it is no model that follows instructions; "
            "choose the one made for chat (often named …-instruct or …-chat)"
        )
    found.model_max_length = int(1e30)  # whoever asks counts the tokens; a warning on the terminal helps nobody
    return found


def load_model(folder: Path, *, for_: str, device: str, precision: str) -> Any:
    """Load a model that writes text, all of its weights from the folder, ready to be used.

    Parameters
    ----------
    folder : Path
        The model.
    for_ : str
        Who asks, for the message.
    device : str
        Torch's name of where it computes.
    precision : {"auto", "float32", "bfloat16"}
        Of the weights; ``auto`` takes that of the folder.

    Returns
    -------
    transformers.PreTrainedModel
        The model.

    Raises
    ------
    UserError
        If it cannot be loaded, or the folder lacks weights, which would be made up at random.
    """
    library = transformers(for_=for_)
    set_threads()
    try:
        with quiet(library):
            model, told = library.AutoModelForCausalLM.from_pretrained(
                str(folder),
                trust_remote_code=False,
                local_files_only=True,
                output_loading_info=True,
                torch_dtype="auto" if precision == "auto" else precision,
            )
        require_weights(folder, model, told)
        return model.eval().to(device)
    except UserError:
        raise
    except Exception as error:  # as above, and an absent device
        raise UserError(f"{folder}: cannot be loaded on device {device!r}: {first_line(error)}") from error


def require_weights(folder: Path, model: Any, told: Mapping[str, Any], *, pooler: bool = True) -> None:
    """Refuse a model that is not the one whose weights the folder holds.

    Parameters
    ----------
    folder : Path
        The model.
    model : transformers.PreTrainedModel
        As it was loaded.
    told : mapping
        What ``from_pretrained`` says of that with ``output_loading_info``.
    pooler : bool, optional
        Whether the pooler is used; one that is not may be missing.

    Raises
    ------
    UserError
        If the folder lacks weights, which were made up at random, has them in another shape, or has more of the body
        than the model, such as further layers. A head that the model does not have, or a pooler, may be left over.
    """
    kind = type(model).__name__
    odd = sorted(key if isinstance(key, str) else str(key[0]) for key in told.get("mismatched_keys", ()))
    if odd:
        raise UserError(f"{folder}: its weights of {odd[0]} have another shape than its config.json says")
    absent = sorted(key for key in map(str, told.get("missing_keys", ())) if pooler or "pooler." not in key)
    if absent:
        raise UserError(
            f"{folder}: its weights lack {_first(absent)} of a {kind}; at random in their place, what it gives would "
            "mean nothing"
        )
    body = getattr(model, model.base_model_prefix, model)
    parts, buffers = dict(body.named_children()), dict(body.named_buffers())
    names = {str(key): str(key).removeprefix(f"{model.base_model_prefix}.") for key in told.get("unexpected_keys", ())}
    unused = sorted(
        key
        for key, name in names.items()
        if name.partition(".")[0] in parts and name not in buffers and "pooler." not in name
    )
    if unused:
        raise UserError(
            f"{folder}: its weights hold {_first(unused)}, which a {kind} as its config.json says has no place for; "
            "without them, what it gives would mean nothing"
        )


def _first(names: Sequence[str]) -> str:
    return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]


@contextmanager
def weights_required(folder: Path, *, pooler: bool, for_: str) -> Iterator[None]:
    """Refuse weights as `require_weights` does inside the ``with`` block, also where another library loads them.

    Parameters
    ----------
    folder : Path
        The model.
    pooler : bool
        Whether the pooler is used.
    for_ : str
        Who asks, for the message.
    """
    library = transformers(for_=for_)
    base = library.PreTrainedModel
    plain = base.__dict__["from_pretrained"]

    def loading(cls: Any, /, *what: Any, output_loading_info: bool = False, **options: Any) -> Any:
        model, told = plain.__func__(cls, *what, output_loading_info=True, **options)
        require_weights(folder, model, told, pooler=pooler)
        return (model, told) if output_loading_info else model

    base.from_pretrained = classmethod(loading)
    try:
        with quiet(library):
            yield
    finally:
        base.from_pretrained = plain


def require_settings(folder: Path) -> None:
    """Refuse settings that no model has: sizes and lengths that are text or below 1, and others of another kind.

    Parameters
    ----------
    folder : Path
        The model.

    Raises
    ------
    UserError
        Names the file, the setting and its value.
    """
    for name in _FILES:
        for file in sorted(folder.rglob(name)):
            settings = _settings(file)
            for key in sorted((_SIZES | _KINDS.keys()) & settings.keys()):
                expected = _expected(key, settings[key])
                if expected:
                    raise UserError(f"{file}: expected {expected} as {key}, got {shorten(settings[key])}")


def _expected(key: str, value: Any) -> str:
    """What a setting should be; empty where it is that. A size that is none or a list is the library's matter."""
    if key in _KINDS:
        kind, name = _KINDS[key]
        sound = value is None or type(value) is kind
        if key == "id2label":
            sound = sound and all(str(number).isdecimal() for number in value or ())
        return "" if sound else name
    number = isinstance(value, int | float) and not isinstance(value, bool)
    wrong = isinstance(value, str | bool) or (number and not (value >= 1 and value == value // 1))
    return "a whole number of at least 1" if wrong else ""


def require_rows(folder: Path) -> None:
    """Refuse a tokenizer with numbers beyond the model's table of embeddings, found without loading the model.

    Parameters
    ----------
    folder : Path
        The model.

    Raises
    ------
    UserError
        Says how many there are of both.
    """
    for file in sorted(folder.rglob("tokenizer.json")):
        rows = _settings(file.with_name("config.json")).get("vocab_size")
        if not isinstance(rows, int):
            continue
        library = need("tokenizers", extra="neural", for_="a local model")
        try:
            last = max(library.Tokenizer.from_file(str(file)).get_vocab().values(), default=-1)
        except Exception as error:  # the library raises bare Exception
            raise UserError(f"{file}: cannot be read as a tokenizer: {error}") from error
        if last >= rows:
            raise UserError(
                f"{file}: its tokens have numbers up to {last:,}, and the model has embeddings for {rows:,} tokens "
                "(vocab_size in config.json); they are not of one model"
            )


def _settings(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    except (OSError, ValueError) as error:
        raise UserError(f"{file}: expected the model's configuration as JSON: {first_line(error)}") from error
    if not isinstance(content, dict):
        raise UserError(f"{file}: expected a JSON dict, got {type(content).__name__}")
    return content


@contextmanager
def quiet(library: Any) -> Iterator[None]:
    """Keep what transformers logs off the terminal: what matters comes as an error of ours.

    Parameters
    ----------
    library : module
        transformers.
    """
    logging = library.utils.logging
    level = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)


def first_line(error: Exception) -> str:
    """Return the first line of an error's message, or the error's name where it has none."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__).strip()


@cache
def set_threads() -> None:
    """Keep torch from starting more threads than this process may use at once, as it does in a container."""
    torch = need("torch", extra="neural", for_="a local model")
    if not os.environ.get("OMP_NUM_THREADS"):
        torch.set_num_threads(max(min(torch.get_num_threads(), processors()), 1))


def processors() -> int:
    """Count the processors that this process may use: its affinity and its container's quota."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota, _, period = (_QUOTA.read_text(encoding="ascii") if _QUOTA.is_file() else "max").partition(" ")
    return count if quota.strip() == "max" else min(count, -(-int(quota) // int(period)))
