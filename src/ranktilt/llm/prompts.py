"""Prompts in files, with slots such as ``{query}`` that are filled in."""

from __future__ import annotations

import os
import re
import string
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from ranktilt.data.files import read_bytes
from ranktilt.errors import DataError, UserError, join_words, unknown_name

BYTES_A_TOKEN = 4
"""Bytes of UTF-8 that count as a token, which is about right for English."""
_MOST_BYTES_A_CHARACTER = 4
"""Most bytes of a character in UTF-8."""

Slots = tuple[tuple[str, str | None], ...]
"""Parts of a prompt: a literal text, and the name of the slot after it; None if no slot follows."""


@dataclass(frozen=True, kw_only=True)
class PromptFile:
    """A prompt that was read from a file."""

    name: str
    """Name for output files."""
    text: str
    """The prompt, with its slots."""
    location: str
    """Path of the file, or name of the prompt, for messages."""


def find_prompt(name: str | Path, names: Sequence[str], package: str, *, slot: str) -> PromptFile:
    """Return one of a package's prompts by its name, or read a prompt from a UTF-8 file.

    `names` are the prompts of the package. A user writes ``./paper`` for a file that is called like
    one of them. `slot` is a slot that every prompt of this kind has, for the error.
    """
    if name in names:
        file = resources.files(package).joinpath("prompts", f"{name}.txt")
        return PromptFile(
            name=str(name),
            text=file.read_text(encoding="utf-8").strip(),
            location=f"prompt {str(name)!r}",
        )
    path = Path(name)
    if not os.path.exists(path) and path.suffix != ".txt" and path.name == str(name):
        raise UserError(
            f"{unknown_name('prompt', str(name), names)}; or name a file that holds {{{slot}}}"
        )
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            path, f"expected a prompt as UTF-8 text: invalid at byte {error.start}"
        ) from error
    stem = re.sub(r"[^\w.=+-]+", "_", path.stem).strip("_.") or "prompt"
    return PromptFile(
        name=stem,
        text=text.replace("\r\n", "\n").removesuffix("\n"),
        location=str(path),
    )


def parse_slots(text: str, location: str, slots: Collection[str]) -> Slots:
    """Split a prompt at its slots; refuse unknown slots and single braces.

    `slots` are the names of valid slots, and `location` names the prompt in errors.
    """
    try:
        fields = list(string.Formatter().parse(text))
    except ValueError as error:
        raise UserError(
            f"{location}: unmatched brace ({error}); write {{{{ and }}}} for braces"
        ) from error
    for _, name, spec, conversion in fields:
        if name is not None and (name not in slots or spec or conversion):
            slot = name + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")
            known = join_words([f"{{{known_slot}}}" for known_slot in slots])
            raise UserError(
                f"{location}: {{{slot}}} cannot be filled in, only {known} can; "
                "write {{ and }} for braces"
            )
    return tuple((literal, name) for literal, name, _, _ in fields)


def fill(slots: Slots, values: Mapping[str, str]) -> str:
    """Fill in the slots of a prompt; braces in the values are left as they are."""
    return "".join(literal + (values[name] if name is not None else "") for literal, name in slots)


def cut_tokens(text: str, tokens: int | None) -> str:
    """Cut a text after some tokens, of four bytes each; None or 0 cuts nothing.

    The cut is between two words, if there is a blank in the last tenth of what is kept.
    """
    most = (tokens or 0) * BYTES_A_TOKEN
    # Most texts are short enough by their length alone, and need not be encoded.
    if not most or len(text) * _MOST_BYTES_A_CHARACTER <= most:
        return text
    encoded = text.encode()
    if len(encoded) <= most:
        return text
    head = encoded[:most].decode(errors="ignore")
    end = max(head.rfind(blank) for blank in " \n\t")
    return head[:end] if end > len(head) * 9 // 10 else head
