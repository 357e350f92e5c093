"""What a model is told: instructions that lie in files, with a place for the text."""

from __future__ import annotations

import os
import re
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

from ranktilt.errors import DataError, UserError, unknown
from ranktilt.io.files import read_bytes

PROMPTS = ("paper", "paraphrase", "summarise", "polish")
"""Names of the prompts that come with RankTilt; ``paper`` is the instruction of Dai et al. (KDD 2024, sec. 2)."""

TITLE = "title"
"""The prompt for a title that is to be rewritten."""

_FIELDS = ("text", "title")
_LARGEST = 100_000
_LIMITS: Mapping[str, Mapping[str, float]] = {
    "summarise": {"shortest": 0.1, "longest": 1.0},
    "polish": {"copied": 1.0},
}


@dataclass(frozen=True)
class PromptTemplate:
    """An instruction with ``{text}`` at least once, ``{title}`` where it is wanted; ``{{`` and ``}}`` are braces.

    Nothing else can be filled in: a rewrite that knew a query would be tuned to it. `place` is where it was read,
    `limits` are those of the checks that suit its answers better than the usual ones.
    """

    name: str
    text: str
    place: str = ""
    limits: Mapping[str, float] = field(default_factory=dict)
    _parts: tuple[tuple[str, str | None], ...] = field(default=(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_parts", _parts(self.text, self.place or f"prompt {self.name!r}"))

    @property
    def fields(self) -> tuple[str, ...]:
        """What is filled in: ``text``, and ``title`` where it is used."""
        return tuple(name for name in _FIELDS if any(name == part for _, part in self._parts))

    def render(self, text: str, title: str = "") -> str:
        """Return what the model is told of a document; braces in it are left as they are."""
        given = {"text": text, "title": title, None: ""}
        return "".join(literal + given[name] for literal, name in self._parts)


def template(name: str | Path) -> PromptTemplate:
    """Find a prompt by its name, or read it from a UTF-8 file; one with the name of a prompt is written ``./paper``."""
    if name in (*PROMPTS, TITLE):
        file = resources.files("ranktilt.generation").joinpath("prompts", f"{name}.txt")
        return PromptTemplate(str(name), file.read_text(encoding="utf-8").strip(), limits=_LIMITS.get(str(name), {}))
    path = Path(name)
    if not os.path.exists(path) and path.suffix != ".txt" and path.name == str(name):
        raise UserError(f"{unknown('prompt', str(name), PROMPTS)}; or name a file that holds {{text}}")
    data = read_bytes(path, _LARGEST + 1)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(path, f"expected a prompt as UTF-8 text: invalid at byte {error.start}") from error
    if len(data) > _LARGEST:
        raise DataError(path, f"expected a prompt of at most {_LARGEST:,} bytes, got more")
    stem = re.sub(r"[^\w.=+-]+", "_", path.stem).strip("_.") or "prompt"
    return PromptTemplate(stem, text.replace("\r\n", "\n").removesuffix("\n"), str(path))


def _parts(text: str, place: str) -> tuple[tuple[str, str | None], ...]:
    """Literal text and the field after it, in turn."""
    try:
        parsed = list(string.Formatter().parse(text))
    except ValueError as error:
        raise UserError(f"{place}: a brace stands alone ({error}); write {{{{ and }}}} for braces") from error
    for _, name, spec, conversion in parsed:
        if name is not None and (name not in _FIELDS or spec or conversion):
            raise _refused(place, name + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else ""))
    if not any(name == "text" for _, name, _, _ in parsed):
        raise UserError(f"{place}: expected {{text}}, the place of the document's text, and found none")
    return tuple((literal, name) for literal, name, _, _ in parsed)


def _refused(place: str, name: str) -> UserError:
    if re.match(r"quer|question|judg|qrel|relevan|grade", name, re.IGNORECASE):
        why = "a rewrite that knew a query or a judgment would be tuned to it, and the audit would measure that"
    else:
        why = "write {{ and }} for braces"
    return UserError(f"{place}: {{{name}}} cannot be filled in, only {{text}} and {{title}} can; {why}")
