"""Refuse values that a dataclass of settings does not allow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from ranktilt.errors import UserError, unknown_name


def check_fields(settings: Any, subject: str) -> None:
    """Refuse a value that its field's annotation does not allow.

    The annotation may have choices (`Literal`) or bounds (`msgspec.Meta`). None is always allowed.
    Every value of a tuple is checked.

    Parameters
    ----------
    settings : dataclass
        Fields are annotated as ``Annotated[int, msgspec.Meta(ge=1)]`` or ``Literal[...]``.
    subject : str
        Subject of the settings, for the message, such as ``training``.
    """
    # `_limits` caches its result for each class; mypy does not see that a class can be hashed.
    for name, limits in _limits(type(settings)).items():  # type: ignore[arg-type]
        setting = getattr(settings, name)
        values = setting if isinstance(setting, tuple) else (setting,)
        for value in values:
            if value is not None:
                _check_value(value, limits, name=name, subject=subject)


@dataclass(frozen=True, kw_only=True)
class _Limits:
    """The values that a field allows."""

    choices: tuple[str, ...]
    """All values that are allowed; empty if the field has no choices."""
    bounds: msgspec.Meta | None
    """Smallest and largest value; None if the field has no bounds."""


def _check_value(value: Any, limits: _Limits, *, name: str, subject: str) -> None:
    """Refuse a value of the field `name` that is not among its choices, or out of bounds."""
    if limits.choices and value not in limits.choices:
        raise unknown_name(f"{name} of {subject}", value, limits.choices)
    if limits.bounds is not None and not _is_within(value, limits.bounds):
        raise UserError(f"{subject}: expected {name} of {_range(limits.bounds)}, got {value}")


def _is_within(value: float, bounds: msgspec.Meta) -> bool:
    """Tell whether a number is within bounds; infinity never is, even without an upper bound.

    No setting has an exclusive upper bound, so `bounds.lt` is not read.
    """
    at_least = -math.inf if bounds.ge is None else bounds.ge
    at_most = math.inf if bounds.le is None else bounds.le
    above = -math.inf if bounds.gt is None else bounds.gt
    return at_least <= value <= at_most and above < value < math.inf


def _range(bounds: msgspec.Meta) -> str:
    """Return bounds in words: ``at least 1 and at most 5``."""
    lower_bound = f"more than {bounds.gt:,g}" if bounds.gt is not None else ""
    if bounds.ge is not None:
        lower_bound = f"at least {bounds.ge:,g}"
    upper_bound = "" if bounds.le is None else f"at most {bounds.le:,g}"
    return " and ".join(filter(None, (lower_bound, upper_bound)))


@cache
def _limits(kind: type) -> dict[str, _Limits]:
    """Return the limits of each field of a dataclass."""
    limits = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        components = _components(hint)
        bounds = next((part for part in components if isinstance(part, msgspec.Meta)), None)
        choices: list[str] = []
        for component in components:
            if get_origin(component) is Literal:
                choices += get_args(component)  # strings in all settings
        limits[name] = _Limits(choices=tuple(choices), bounds=bounds)
    return limits


def _components(hint: Any) -> list[Any]:
    """Return a type and all that it is made of: metadata, members of a union, types of a tuple."""
    components = [hint]
    if get_origin(hint) is not Literal:  # the arguments of `Literal` are values, not types
        for inner_hint in get_args(hint):
            components += _components(inner_hint)
    return components
