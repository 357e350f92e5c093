"""Arguments of a training: those of ``--set``, and the options that were typed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

from ranktilt.cli.settings import settings
from ranktilt.errors import UserError, unknown
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
"""Arguments of a training that are options, by field."""


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
            raise UserError(f"--set {name}: {flag} is an option, so type {flag} {text}")
        if name not in names:
            raise unknown("argument of this training", name, names)
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
    """Return where to train; of several GPUs the one that is named is made the only one to see."""
    device = settings().machine.device
    if device is not None and device.startswith("cuda:"):
        os.environ["CUDA_VISIBLE_DEVICES"] = device.removeprefix("cuda:")
        return "cuda"
    return device


def typed_options(**values: Any) -> dict[str, Any]:
    """Return the arguments of a training that its options give: those that were typed."""
    typed = {name: value for name, value in values.items() if value is not None}
    return {**typed, "device": _training_device()}


def source_amounts(sources: list[str] | None) -> dict[str, Any]:
    """Return the arguments of `Training` for the sources to learn from, and how much of each."""
    amounts = read_amounts(sources or (), "--sources", allows_all=True)
    limits = tuple((name, most) for name, most in amounts.items() if most >= 0)
    return {"sources": tuple(amounts), "limits": limits} if amounts else {}


def read_amounts(texts: Sequence[str], option: str, *, allows_all: bool = False) -> dict[str, int]:
    """Read the number of documents to learn from of each source, ``SOURCE=N,…``.

    -1 stands for all documents: a source without a number, if `allows_all`.
    """
    amounts = dict[str, int]()
    for part in ",".join(texts).split(",") if texts else ():
        name, equals, number = part.strip().partition("=")
        is_amount = number.isdecimal() or (allows_all and not equals)
        if not name or name in amounts or not is_amount:
            form = "SOURCE or SOURCE=N" if allows_all else "SOURCE=N"
            raise UserError(
                f"{option}: expected {form}, each source once, such as human=500,llm=500; "
                f"got {part.strip()!r}"
            )
        amounts[name] = int(number) if equals else -1
    return amounts
