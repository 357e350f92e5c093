"""Refuse values that a setting does not allow: no number, out of bounds, or no choice."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from ranktilt.errors import UserError, unknown_name

_LARGEST_WHOLE_NUMBER = 2**63 - 1
"""Largest whole number of a setting; arrays count with 64 bits."""


def is_number(value: Any) -> bool:
    """Tell whether a value is a finite number; True and False are none, nor is NaN.

    A whole number that is too large for a float is none either.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def is_whole_number(value: Any) -> bool:
    """Tell whether a value is a whole number of at most 64 bits; True and False are none."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        return False
    return abs(int(value)) <= _LARGEST_WHOLE_NUMBER


def require_whole_number(value: Any, expected: str, *, least: int) -> None:
    """Refuse a value that is no whole number of at least `least`.

    `expected` says in the message what was expected, such as ``a depth of at least 1``.
    """
    if not is_whole_number(value) or value < least:
        raise UserError(f"expected {expected}, got {printed(value)}")


def require_seed(seed: int) -> None:
    """Refuse a random seed that is no whole number, or below 0."""
    require_whole_number(seed, "a seed of at least 0", least=0)


def printed(value: Any) -> str:
    """Print a value that is refused: a number as people write it, and a text in quotes."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return repr(value)
    try:
        return f"{float(value):g}"
    except OverflowError:
        return "a number that is too large"


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
    is_whole: bool
    """Whether the bounds are those of a whole number."""


def _check_value(value: Any, limits: _Limits, *, name: str, subject: str) -> None:
    """Refuse a value of the field `name` that is not among its choices, or out of bounds."""
    if limits.choices and value not in limits.choices:
        raise unknown_name(f"{name} of {subject}", value, limits.choices)
    if limits.bounds is None:
        return
    is_of_type = is_whole_number(value) if limits.is_whole else is_number(value)
    if not is_of_type or not _is_within(value, limits.bounds):
        got = value if is_number(value) else printed(value)
        raise UserError(f"{subject}: expected {name} of {_range(limits.bounds)}, got {got}")


def _is_within(value: float, bounds: msgspec.Meta) -> bool:
    """Tell whether a number is within bounds.

    No setting has an exclusive upper bound, so `bounds.lt` is not read.
    """
    at_least = -math.inf if bounds.ge is None else bounds.ge
    at_most = math.inf if bounds.le is None else bounds.le
    above = -math.inf if bounds.gt is None else bounds.gt
    return at_least <= value <= at_most and above < value


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
        is_whole = int in components and float not in components
        limits[name] = _Limits(choices=tuple(choices), bounds=bounds, is_whole=is_whole)
    return limits


def _components(hint: Any) -> list[Any]:
    """Return a type and all that it is made of: metadata, members of a union, types of a tuple."""
    components = [hint]
    if get_origin(hint) is not Literal:  # the arguments of `Literal` are values, not types
        for inner_hint in get_args(hint):
            components += _components(inner_hint)
    return components
