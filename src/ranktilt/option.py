"""How an option of the command line is declared beside the field or parameter that it fills."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

from ranktilt.errors import UserError, unknown


@dataclass(frozen=True)
class Option:
    """What ``--help`` says of a field, in its ``Annotated`` type; the option is called as the field."""

    help: str
    metavar: str | None = None
    short: str | None = None
    """A second name of one letter, such as ``-r``."""
    flag: str | None = None
    """Its name, where it is not the field's."""
    min: float | None = None
    max: float | None = None
    panel: str | None = None
    """The heading of ``--help`` under which it stands, where it is not its group's."""
    complete: Callable[[str], list[str]] | None = None
    """The values that a shell offers for what is typed so far."""

    def names(self, field: str) -> list[str]:
        """List what is typed for it."""
        return [self.flag or f"--{field.replace('_', '-')}", *([self.short] if self.short else [])]


def check_fields(options: Any, subject: str) -> None:
    """Refuse what is none of a field's `Literal` choices, or below the least value of its option; None is neither."""
    for name, (choices, least) in _limits(type(options)).items():  # type: ignore[arg-type]  # a class can be hashed
        value = getattr(options, name)
        if value is None:
            continue
        if choices and value not in choices:
            raise unknown(f"{name} of {subject}", value, choices)
        if least is not None and not least <= value < math.inf:
            raise UserError(f"{subject}: expected {name} of at least {least:g}, got {value}")


@cache
def _limits(kind: type) -> dict[str, tuple[tuple[str, ...], float | None]]:
    """Choices and least value of each field of a dataclass."""
    limits = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        options = [data for data in getattr(hint, "__metadata__", ()) if isinstance(data, Option)]
        bare: Any = get_args(hint)[0] if options else hint
        literals = [part for part in (bare, *get_args(bare)) if get_origin(part) is Literal]
        choices = tuple(str(choice) for literal in literals for choice in get_args(literal))
        limits[name] = choices, options[0].min if options else None
    return limits
