"""Parse the text of a ranker: ``name[:argument][(option=value,…)][@k]``, stages joined by ``>>``.

Each *stage* of a pipeline ranks again what the stage before it returned. Its *depth* k is the
number of documents that it returns.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from ranktilt.errors import UserError, shorten
from ranktilt.sizes import read_whole_number

_QUOTED = r'"(?:[^"\\]|\\.)*"'
"""A text in double quotes."""
_HUB_NAME = r"[A-Za-z0-9][\w.-]*/[\w.-]+"
"""A model's name on the hub, such as ``intfloat/e5-base``, or the path of a folder in a folder."""
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
_SEPARATOR_OR_QUOTED = re.compile(rf"{_QUOTED}|>>|,")
"""A separator, or a quoted text, which may contain separators and is skipped."""
_CREDENTIALS = re.compile(r"://[^/\s\"]*@(?!\s*\d+\s*(?:>>|$))")
"""User and password of an address, which no message may show.

An `@` with a number at the end of a stage is a depth.
"""
_GRAMMAR = "name[:argument][(option=value,…)][@k], stages joined by >>"
"""The grammar, for messages."""

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
"""Rankers of objects, by the names under which they print; nobody can type them."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """The parts of a stage's text, which may name a ranker that does not exist."""

    name: str
    """Name of the ranker."""
    argument: str | None = None
    """Text after the colon; None if there is no colon."""
    options: dict[str, str] = field(default_factory=dict)
    """Values of the options by name, as texts."""
    k: int | None = None
    """Depth: number of documents that the stage returns; None if the text does not say it."""

    def __str__(self) -> str:
        argument = "" if self.argument is None else f":{_quote(self.argument)}"
        options = ",".join(f"{name}={_quote(value)}" for name, value in self.options.items())
        parentheses = f"({options})" if options else ""
        depth = "" if self.k is None else f"@{self.k}"
        return f"{self.name}{argument}{parentheses}{depth}"


def read_value(text: str, hint: Any, label: str) -> Any:
    """Read the text of an option as the type of its field.

    Parameters
    ----------
    text : str
        The text.
    hint : type
        Type of the field; of a union with None, the other type counts.
    label : str
        Name of the option, for errors.

    Raises
    ------
    UserError
        If the text cannot be read as this type.
    """
    members = getattr(hint, "__args__", (hint,))
    kind = next(member for member in members if member is not type(None))
    whole_number = "a whole number of at most 18 digits" if text.isdecimal() else "a whole number"
    nouns = {bool: "true or false", int: whole_number, float: "a number"}
    try:
        if kind is bool:
            return {"true": True, "false": False}[text.lower()]
        if kind is int:
            return _required(read_whole_number(text))
        return kind(text)
    except (KeyError, ValueError) as error:
        raise UserError(
            f"{label}: expected {nouns.get(kind, kind.__name__)}, got {shorten(text)}"
        ) from error


def _required(number: int | None) -> int:
    """Return a number that could be read; a `ValueError` where it could not."""
    if number is None:
        raise ValueError
    return number


def parse_stages(text: str) -> list[Stage]:
    """Split a ranker's text into its stages, at least one.

    Such as ``"bm25(k1=0.9,b=0.4)@100>>cross-encoder:FOLDER"``. Arguments and values that contain
    ``(``, ``)``, ``@``, ``,`` or ``>>`` must be in double quotes.

    Raises
    ------
    UserError
        If a stage does not follow the grammar.
    """
    shown_text = _without_credentials(text)
    return [_parse_stage(stage_text, shown_text) for stage_text in _split(text, ">>")]


def _without_credentials(text: str) -> str:
    """Return a text without the users and passwords of addresses, for messages."""
    return _CREDENTIALS.sub("://…@", text)


def _parse_stage(text: str, pipeline: str) -> Stage:
    """Read the text of one stage; `pipeline` is that of all stages, for errors."""
    match = _STAGE.fullmatch(text)
    if match is None:
        shown_text = _without_credentials(text.strip())
        hint = "; @k comes last" if re.search(r"@\d+\s*\(", text) else ""
        raise UserError(
            f"cannot read ranker {pipeline!r} at {shown_text!r}: expected {_GRAMMAR}{hint}"
        )
    return Stage(
        name=match["name"],
        argument=None if match["argument"] is None else _unquote(match["argument"].strip()),
        options=_parse_options(match["options"] or "", pipeline),
        k=None if match["k"] is None else _depth(match["k"], pipeline),
    )


def _depth(digits: str, pipeline: str) -> int:
    """Read the depth of a stage; `pipeline` is the text of all stages, for errors."""
    depth = read_whole_number(digits)
    if depth is None:
        raise UserError(
            f"cannot read ranker {shorten(pipeline)}: the depth @{digits[:10]}… has "
            f"{len(digits):,} digits"
        )
    return depth


def _parse_options(text: str, pipeline: str) -> dict[str, str]:
    """Read the options in the parentheses of a stage, as texts by name."""
    options: dict[str, str] = {}
    if not text.strip():
        return options
    for option_text in _split(text, ","):
        option = _OPTION.fullmatch(option_text)
        if option is None:
            raise UserError(
                f"cannot read option {option_text.strip()!r} of ranker {pipeline!r}: "
                "expected option=value"
            )
        if option["name"] in options:
            raise UserError(f"option {option['name']!r} of ranker {pipeline!r} is given twice")
        options[option["name"]] = _unquote(option["value"])
    return options


def _split(text: str, separator: str) -> list[str]:
    """Split a text at a separator, except within quotes."""
    parts, start = [], 0
    for match in _SEPARATOR_OR_QUOTED.finditer(text):
        if match.group() == separator:
            parts.append(text[start : match.start()])
            start = match.end()
    return [*parts, text[start:]]


def _quote(text: str) -> str:
    """Return a text in quotes if it would otherwise be read as something else."""
    is_trimmed = text != "" and text == text.strip()
    has_grammar_characters = re.search(r'[()@,"=\\>]', text) is not None
    is_plain = is_trimmed and text.isprintable() and not has_grammar_characters
    return text if is_plain else json.dumps(text, ensure_ascii=False)


def _unquote(text: str) -> str:
    """Return the text within quotes; a text without quotes as it is."""
    if not text.startswith('"'):
        return text
    try:
        return str(json.loads(text))
    except ValueError as error:
        raise UserError(f"cannot read the quoted text {text}: {error}") from error
