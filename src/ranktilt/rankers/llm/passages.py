# ruff: noqa: RUF001, RUF002
"""How a passage stands in a prompt: on one line, and with nothing in it that could pass for a part of the prompt."""

from __future__ import annotations

import re
import unicodedata

_INVISIBLE = "\u00ad\u034f\u061c\u115f\u1160\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
_OPEN, _CLOSE = r"\[［【〔〖〘〚⟦⟬❲⁅﹇⦋⦍⦏", r"\]］】〕〗〙〛⟧⟭❳⁆﹈⦌⦎⦐"
_BRACKETED = re.compile(f"[{_OPEN}]([\\w {_INVISIBLE}\u0300-\u036f\u20d0-\u20f0]+)[{_CLOSE}]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_MARKER = re.compile(
    rf"([<＜])(?=[{_INVISIBLE}]*(?:[|｜]|[/／]?(?:s|bos|eos|pad|unk|mask|cls|sep)[>＞]|[<＜]?[/／]?SYS[>＞]"
    r"|(?:start|end|begin)_of|end▁of|begin▁of))|(\[)(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS)\])",
    re.I,
)


def one_line(text: str) -> str:
    """Return a text as a prompt shows it.

    Line breaks of every kind become blanks. A number in brackets, whatever script or signs write it, gets round ones:
    ``［２］`` becomes ``(2)``, so that no passage can pass for another. Marks by which chat models tell who speaks
    (``<|im_end|>``, ``</s>``, ``[INST]``) are broken by a blank, for a server may read them as such.
    """
    shown = _BRACKETED.sub(_round, " ".join(_CONTROL.sub(" ", text).split()))
    return _MARKER.sub(lambda found: f"{found[0]} ", shown)


def _round(found: re.Match[str]) -> str:
    """A bracketed number in round brackets, in plain digits; anything else as it stands."""
    plain = unicodedata.normalize("NFKC", found[1])
    digits = "".join(str(unicodedata.digit(sign)) for sign in plain if sign.isdigit())
    return f"({digits})" if digits and not any(sign.isalpha() for sign in plain) else found[0]
