"""Arguments of a training: those of ``--set``, and the options that were typed.

An *argument* is a field of the dataclass of a training, such as `RetrieverTraining`. Some have an
option of their own, such as ``--negatives``; ``--set epochs=3`` sets any other.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from ranktilt.cli.settings import settings
from ranktilt.errors import UserError, shorten, unknown_name
from ranktilt.sizes import read_whole_number
from ranktilt.spec import read_value

if TYPE_CHECKING:
    from ranktilt.training.options import Schedule

OPTIONS = {
    "alpha": "--debias",
    "device": "--device",
    "limits": "--sources",
    "minutes": "--minutes",
    "negatives": "--negatives",
    "sources": "--sources",
    "text": "--text",
}
"""Options of the commands, by the argument that they set."""
_ALL = -1
"""Amount that stands for all documents of a source."""


def training_arguments(
    kind: type[Schedule], flags: Mapping[str, str], without: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the arguments that ``--set`` gives a training, as the types of its fields.

    Parameters
    ----------
    kind : type
        The dataclass of the training.
    flags : mapping of str to str
        Fields that options of the verb fill, with the option.
    without : iterable of str
        Fields that the verb fills by itself.

    Raises
    ------
    UserError
        For an unknown name, which comes with the nearest known one, for the name of an option, and
        for a value of a wrong type.
    """
    types = get_type_hints(kind)
    names = [name for name in types if name not in flags and name not in without]
    options_by_name = {flag.removeprefix("--"): flag for flag in flags.values()} | dict(flags)
    arguments = {}
    for name, text in settings().training.items():
        if name in options_by_name:
            flag = options_by_name[name]
            raise UserError(f"--set {name}: {flag} is an option; type {flag} {text}")
        if name not in names:
            raise unknown_name("argument of this training", name, names)
        arguments[name] = _read_argument(text, types[name], f"--set {name}")
    return arguments


def _read_argument(text: str, hint: Any, option: str) -> Any:
    """Read the text of an argument; choices and bounds are checked where the dataclass is made."""
    parts = (hint, *get_args(hint))
    if NoneType in parts and text.lower() == "none":
        return None
    if any(get_origin(part) is Literal for part in parts):
        return text
    return read_value(text, hint, option)


def _training_device() -> str | None:
    """Return the device to train on.

    Libraries that train take all GPUs that they see, so they are shown only the GPU that is named.
    """
    device = settings().machine.device
    if device is not None and device.startswith("cuda:"):
        os.environ["CUDA_VISIBLE_DEVICES"] = device.removeprefix("cuda:")
        return "cuda"
    return device


def typed_options(**values: Any) -> dict[str, Any]:
    """Return the arguments of a training that its options give, and the device.

    `values` are the options by field; None stands for an option that was not typed.
    """
    typed = {name: value for name, value in values.items() if value is not None}
    return {**typed, "device": _training_device()}


def source_amounts(sources: list[str] | None) -> dict[str, Any]:
    """Return the fields ``sources`` and ``limits`` of `Training`, from the texts of ``--sources``.

    The limit of a source is its largest number of documents. Without texts no field is returned.
    """
    amounts = read_amounts(sources or (), "--sources", allows_all=True)
    limits = tuple((name, limit) for name, limit in amounts.items() if limit != _ALL)
    return {"sources": tuple(amounts), "limits": limits} if amounts else {}


def read_amounts(texts: Sequence[str], option: str, *, allows_all: bool = False) -> dict[str, int]:
    """Read the number of documents to learn from of each source, ``SOURCE=N,…``.

    Parameters
    ----------
    texts : sequence of str
        The texts of the option.
    option : str
        The flag, for errors.
    allows_all : bool
        Whether a source may come without a number, which stands for all documents (-1).
    """
    amounts = dict[str, int]()
    for part in ",".join(texts).split(",") if texts else ():
        name, equals, number = part.strip().partition("=")
        amount: int | None = _ALL
        if equals:
            amount = read_whole_number(number)
        is_amount = amount is not None and amount >= 0
        if not equals:
            is_amount = allows_all
        if not name or name in amounts or amount is None or not is_amount:
            form = "SOURCE or SOURCE=N" if allows_all else "SOURCE=N"
            raise UserError(
                f"{option}: expected {form}, each source once, such as human=500,llm=500; "
                f"got {shorten(part.strip())}"
            )
        amounts[name] = amount
    return amounts
