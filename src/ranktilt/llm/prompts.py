"""Prompts that lie in files, with slots such as ``{query}`` that are filled in."""

from __future__ import annotations

import os
import re
import string
from collections.abc import Collection, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from ranktilt.data.files import read_bytes
from ranktilt.errors import DataError, UserError, join_words, unknown

BYTES_A_TOKEN = 4
"""Of English and most other text in UTF-8, for the tokenizers of today's models."""
_MOST_BYTES_A_CHARACTER = 4

Slots = tuple[tuple[str, str | None], ...]
"""Literal text and the slot after it, in turn."""


class PromptFile(NamedTuple):
    """A prompt as it was found: a name for file names, its text, and where it was read."""

    name: str
    text: str
    place: str


def find_prompt(name: str | Path, names: Sequence[str], package: str, *, slot: str) -> PromptFile:
    """Find one of a package's own prompts by its name, or read one from a UTF-8 file.

    A file with the name of a prompt is written ``./paper``; `slot` is what every prompt of this
    kind holds.
    """
    if name in names:
        file = resources.files(package).joinpath("prompts", f"{name}.txt")
        return PromptFile(
            str(name), file.read_text(encoding="utf-8").strip(), f"prompt {str(name)!r}"
        )
    path = Path(name)
    if not os.path.exists(path) and path.suffix != ".txt" and path.name == str(name):
        raise UserError(
            f"{unknown('prompt', str(name), names)}; or name a file that holds {{{slot}}}"
        )
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            path, f"expected a prompt as UTF-8 text: invalid at byte {error.start}"
        ) from error
    stem = re.sub(r"[^\w.=+-]+", "_", path.stem).strip("_.") or "prompt"
    return PromptFile(stem, text.replace("\r\n", "\n").removesuffix("\n"), str(path))


def parse_slots(text: str, place: str, slots: Collection[str]) -> Slots:
    """Take a prompt apart; refuses slots that cannot be filled in, and braces that stand alone."""
    try:
        parsed = list(string.Formatter().parse(text))
    except ValueError as error:
        raise UserError(
            f"{place}: unmatched brace ({error}); write {{{{ and }}}} for braces"
        ) from error
    for _, name, spec, conversion in parsed:
        if name is not None and (name not in slots or spec or conversion):
            written = name + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")
            known = join_words([f"{{{slot}}}" for slot in slots])
            raise UserError(
                f"{place}: {{{written}}} cannot be filled in, only {known} can; write {{{{ and }}}} for braces"
            )
    return tuple((literal, name) for literal, name, _, _ in parsed)


def fill(slots: Slots, values: Mapping[str, str]) -> str:
    """Fill in the slots of a prompt; braces in the values are left as they are."""
    return "".join(literal + (values[name] if name is not None else "") for literal, name in slots)


def cut_tokens(text: str, tokens: int | None) -> str:
    """Cut a text after some tokens, each taken for four bytes, behind a word where one ends in its last tenth."""
    most = (tokens or 0) * BYTES_A_TOKEN
    if (
        not most
        or len(text) * _MOST_BYTES_A_CHARACTER <= most
        or len(encoded := text.encode()) <= most
    ):
        return text
    head = encoded[:most].decode(errors="ignore")
    end = max(head.rfind(blank) for blank in " \n\t")
    return head[:end] if end > len(head) * 9 // 10 else head
