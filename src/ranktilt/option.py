"""How an option of the command line is declared beside the field or parameter that it fills."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
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
    """Refuse what is none of a field's `Literal` choices, or beyond the bounds of its option; None is neither."""
    for name, (choices, option) in _limits(type(options)).items():  # type: ignore[arg-type]  # a class can be hashed
        given = getattr(options, name)
        for value in given if isinstance(given, tuple) else () if given is None else (given,):
            if choices and value not in choices:
                raise unknown(f"{name} of {subject}", value, choices)
            if option is None or (option.min, option.max) == (None, None):
                continue
            least, most = -math.inf if option.min is None else option.min, option.max
            if not least <= value < math.inf or (most is not None and value > most):
                end = "" if most is None else f" and at most {most:,g}"
                raise UserError(
                    f"{subject}: expected {name} of at least {least:g}{end}, got {value}"
                )


@cache
def _limits(kind: type) -> dict[str, tuple[tuple[str, ...], Option | None]]:
    """Choices and option of each field of a dataclass."""
    limits = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        options = [data for data in getattr(hint, "__metadata__", ()) if isinstance(data, Option)]
        bare: Any = get_args(hint)[0] if options else hint
        literals = [part for part in (bare, *get_args(bare)) if get_origin(part) is Literal]
        choices = tuple(str(choice) for literal in literals for choice in get_args(literal))
        limits[name] = choices, options[0] if options else None
    return limits


def refuse_repeated(ctx: Any, given: Sequence[Any]) -> None:
    """Refuse options of one value that were given several: the parser would keep the last alone.

    `given` lists the parameters in the order in which the parser met them. A flag without an
    opposite says the same however often it is given.
    """
    options = [parameter for parameter in given if parameter.param_type_name == "option"]
    if any(option.is_eager for option in options):  # --help
        return
    for option, count in Counter(options).items():
        single = not option.multiple and (not option.is_flag or option.secondary_opts)
        if single and count > 1:
            names = "/".join([*option.opts, *option.secondary_opts])
            times = "twice" if count == 2 else f"{count} times"
            ctx.fail(f"{names} is given {times}, but takes one value: keep one of them")
