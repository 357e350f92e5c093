"""The text of ranking stages: ``name[:argument][(option=value,…)][@k]``, joined by ``>>``."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from ranktilt.errors import UserError

_QUOTED = r'"(?:[^"\\]|\\.)*"'
"""A text in double quotes."""
_HUB_NAME = r"[A-Za-z0-9][\w.-]*/[\w.-]+"
"""A model's name on the hub, such as ``intfloat/e5-base``, or a folder inside another one."""
_STAGE = re.compile(
    rf"""\s*(?P<name>[A-Za-z_][\w.+-]*|{_HUB_NAME})
    (?::(?P<argument>{_QUOTED}|[^()@"]+?))?\s*
    (?:\((?P<options>(?:[^()"]|{_QUOTED})*)\))?\s*
    (?:@\s*(?P<k>\d+))?\s*""",
    re.VERBOSE,
)
"""A stage: name, argument, options and depth."""
_OPTION = re.compile(rf'\s*(?P<name>[A-Za-z_]\w*)\s*=\s*(?P<value>{_QUOTED}|[^,"]*?)\s*')
"""An option with its value."""
_PIECES = re.compile(rf"{_QUOTED}|>>|,")
"""What may separate parts, or must be skipped because it is quoted."""
_SECRET = re.compile(r"://[^/\s\"]*@(?!\s*\d+\s*(?:>>|$))")
"""User and password of an address, which no message may show. An `@` with a number at the end is a
depth."""
_GRAMMAR = "name[:argument][(option=value,…)][@k], stages joined by >>"
"""The grammar, in a message."""

OBJECT_NAMES = {
    "function": "your function",
    "langchain": "your retriever",
    "llama-index": "your retriever",
    "mteb": "your model",
    "pyterrier": "your pipeline",
    "SentenceTransformer": "your model",
    "CrossEncoder": "your model",
    "SparseEncoder": "your model",
}
"""Names under which objects print, though nobody can type them."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A stage as text, without knowledge of which rankers there are."""

    name: str
    """Name of the ranker."""
    argument: str | None = None
    """Text after the colon; None without one."""
    options: dict[str, str] = field(default_factory=dict)
    """Values of the options, as text."""
    k: int | None = None
    """Depth; None where none is given."""

    def __str__(self) -> str:
        argument = "" if self.argument is None else f":{_quote(self.argument)}"
        options = ",".join(f"{name}={_quote(value)}" for name, value in self.options.items())
        parentheses = f"({options})" if options else ""
        depth = "" if self.k is None else f"@{self.k}"
        return f"{self.name}{argument}{parentheses}{depth}"


def read_value(text: str, hint: Any, label: str) -> Any:
    """Read the text of an option as the type of its field.

    `UserError` names it by its label, and says what was expected.
    """
    kind = next(kind for kind in getattr(hint, "__args__", (hint,)) if kind is not type(None))
    nouns = {bool: "true or false", int: "a whole number", float: "a number"}
    try:
        return {"true": True, "false": False}[text.lower()] if kind is bool else kind(text)
    except (KeyError, ValueError) as error:
        raise UserError(
            f"{label}: expected {nouns.get(kind, kind.__name__)}, got {text!r}"
        ) from error


def parse_stages(text: str) -> list[Stage]:
    """Split a pipeline's text into its stages, at least one.

    Such as ``"bm25(k1=0.9,b=0.4)@100>>cross-encoder:FOLDER"``. Arguments and values with ``(``,
    ``)``, ``@``, ``,`` or ``>>`` need double quotes.

    Raises
    ------
    UserError
        If a stage does not follow the grammar.
    """
    return [_parse(part, _SECRET.sub("://…@", text)) for part in _split(text, ">>")]


def _parse(part: str, pipeline: str) -> Stage:
    """Read one stage; `UserError` says what is wrong with it."""
    match = _STAGE.fullmatch(part)
    if match is None:
        stage_text = _SECRET.sub("://…@", part.strip())
        hint = "; @k comes last" if re.search(r"@\d+\s*\(", part) else ""
        raise UserError(
            f"cannot read ranker {pipeline!r} at {stage_text!r}: expected {_GRAMMAR}{hint}"
        )
    return Stage(
        name=match["name"],
        argument=None if match["argument"] is None else _unquote(match["argument"].strip()),
        options=_parse_options(match["options"] or "", pipeline),
        k=None if match["k"] is None else int(match["k"]),
    )


def _parse_options(text: str, pipeline: str) -> dict[str, str]:
    """Read the options of a stage."""
    options: dict[str, str] = {}
    if not text.strip():
        return options
    for piece in _split(text, ","):
        option = _OPTION.fullmatch(piece)
        if option is None:
            raise UserError(
                f"cannot read option {piece.strip()!r} of ranker {pipeline!r}: "
                "expected option=value"
            )
        if option["name"] in options:
            raise UserError(f"option {option['name']!r} of ranker {pipeline!r} is given twice")
        options[option["name"]] = _unquote(option["value"])
    return options


def _split(text: str, separator: str) -> list[str]:
    """Divide a text at a separator, except within quotes."""
    parts, start = [], 0
    for match in _PIECES.finditer(text):
        if match.group() == separator:
            parts.append(text[start : match.start()])
            start = match.end()
    return [*parts, text[start:]]


def _quote(text: str) -> str:
    """Quote a text where it would otherwise be read as something else."""
    is_trimmed = text != "" and text == text.strip()
    has_signs = re.search(r'[()@,"=\\>]', text) is not None
    is_plain = is_trimmed and text.isprintable() and not has_signs
    return text if is_plain else json.dumps(text, ensure_ascii=False)


def _unquote(text: str) -> str:
    """Return the text within quotes."""
    if not text.startswith('"'):
        return text
    try:
        return str(json.loads(text))
    except ValueError as error:
        raise UserError(f"cannot read the quoted text {text}: {error}") from error
