"""Refuse values that a dataclass of settings does not allow: beyond its bounds, or none of its choices."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from ranktilt.errors import UserError, unknown


def check_fields(settings: Any, subject: str) -> None:
    """Refuse what is none of a field's `Literal` choices, or beyond the bounds of its `msgspec.Meta`.

    None is neither. Of a tuple each value is checked.

    Parameters
    ----------
    settings : dataclass
        Fields are annotated as ``Annotated[int, msgspec.Meta(ge=1)]`` or ``Literal[...]``.
    subject : str
        What the settings are about, for the message, such as ``training``.
    """
    for name, (choices, bounds) in _limits(type(settings)).items():  # type: ignore[arg-type]  # a class can be hashed
        given = getattr(settings, name)
        values = given if isinstance(given, tuple) else (given,)
        for value in values:
            if value is None:
                continue
            if choices and value not in choices:
                raise unknown(f"{name} of {subject}", value, choices)
            if bounds is not None and not _is_within(value, bounds):
                raise UserError(f"{subject}: expected {name} of {_range(bounds)}, got {value}")


def _is_within(value: float, bounds: msgspec.Meta) -> bool:
    at_least = -math.inf if bounds.ge is None else bounds.ge
    at_most = math.inf if bounds.le is None else bounds.le
    above = -math.inf if bounds.gt is None else bounds.gt
    return at_least <= value <= at_most and above < value < math.inf


def _range(bounds: msgspec.Meta) -> str:
    least = f"more than {bounds.gt:g}" if bounds.gt is not None else ""
    if bounds.ge is not None:
        least = f"at least {bounds.ge:g}"
    most = "" if bounds.le is None else f"at most {bounds.le:,g}"
    return " and ".join(part for part in (least, most) if part)


@cache
def _limits(kind: type) -> dict[str, tuple[tuple[str, ...], msgspec.Meta | None]]:
    """Choices and bounds of each field of a dataclass."""
    limits = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        parts = _parts(hint)
        bounds = next((part for part in parts if isinstance(part, msgspec.Meta)), None)
        literals = [part for part in parts if get_origin(part) is Literal]
        choices = tuple(str(choice) for literal in literals for choice in get_args(literal))
        limits[name] = choices, bounds
    return limits


def _parts(hint: Any) -> list[Any]:
    """Return a type with everything it is made of: metadata, members of a union, elements of a tuple."""
    parts = [hint, *getattr(hint, "__metadata__", ())]
    if get_origin(hint) is not Literal:
        for inner in get_args(hint):
            parts += _parts(inner)
    return parts
