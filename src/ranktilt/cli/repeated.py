"""Options that are given more than once, and take one value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any


def refuse_repeated(ctx: Any, given: Sequence[Any]) -> None:
    """Refuse options of one value that were given several: the parser would keep the last alone.

    `given` lists the parameters in the order in which the parser met them. A flag without an opposite says the same
    however often it is given.
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
