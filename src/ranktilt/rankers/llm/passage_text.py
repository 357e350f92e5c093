# ruff: noqa: RUF001
"""Texts of passages as a prompt shows them.

A passage may hold text that looks like a part of the prompt: the number of another passage, or a
mark by which chat models know who speaks. Such text is changed a little, so that no model or server
is misled by it.
"""

from __future__ import annotations

import re
import unicodedata

_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\ufe00-\ufe0f\ufeff"
)
"""Ranges of invisible characters."""
_OPEN, _CLOSE = r"\[［【〔〖〘〚⟦⟬❲⁅﹇⦋⦍⦏", r"\]］】〕〗〙〛⟧⟭❳⁆﹈⦌⦎⦐"
"""Square brackets of any script."""
_BRACKETED = re.compile(f"[{_OPEN}]([\\w {_INVISIBLE}\u0300-\u036f\u20d0-\u20f0]+)[{_CLOSE}]")
"""A word or number in square brackets."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
"""A control character, which becomes a blank."""
_MARKER = re.compile(
    rf"([<＜])(?=[{_INVISIBLE}]*(?:[|｜]|[/／]?(?:s|bos|eos|pad|unk|mask|cls|sep)[>＞]"
    r"|[<＜]?[/／]?SYS[>＞]|(?:start|end|begin)_of|end▁of|begin▁of))"
    r"|(\[)(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS)\])",
    re.I,
)
"""A mark by which chat templates say who speaks: of any width, also with invisible characters."""


def one_line(text: str) -> str:
    """Return a text as a prompt shows it, on one line.

    A number in square brackets of any script gets round brackets, because ``[2]`` in a text would
    look like the second passage. Marks by which chat models know who speaks (``<|im_end|>``,
    ``[INST]``) are broken by a blank, because a server might obey them.
    """
    plain = _BRACKETED.sub(_in_round_brackets, " ".join(_CONTROL.sub(" ", text).split()))
    return _MARKER.sub(lambda mark: f"{mark[0]} ", plain)


def _in_round_brackets(bracketed: re.Match[str]) -> str:
    """Put a number into round brackets, in plain digits; leave other words as they are."""
    plain = unicodedata.normalize("NFKC", bracketed[1])
    digits = "".join(str(unicodedata.digit(sign)) for sign in plain if sign.isdigit())
    has_letters = any(sign.isalpha() for sign in plain)
    return f"({digits})" if digits and not has_letters else bracketed[0]
