"""How a result was made, as a section of a page: command, options, versions and notes.

Every result has a *spec*: the options, inputs and versions that it was made from, by name. A *note*
is something that a reader should know besides the numbers. The titles of pages are made here too,
because they name the folder or file of the spec.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from pathlib import PurePath
from typing import Any

from ranktilt.errors import join_words
from ranktilt.reporting.document import (
    Block,
    Code,
    Lines,
    NamedValues,
    Section,
    Sentence,
    make_table,
    name_column,
    text_column,
)

_MOST_LISTED = 20
"""Most elements of a list that are all shown."""
_FIRST_LISTED = 3
"""Elements that are shown of a longer list; the file of the result holds all of them."""
MOST_NAMED = 3
"""Most runs that a title names; of more it gives the number."""
_REPEATS = "the same inputs, options and versions give the same numbers"
"""What would happen if the result were made again, as part of a sentence."""
_FIELD_NAMES = {"ranktilt": "RankTilt", "path": "collection", "python": "Python"}
"""Names of fields of a spec, where a page has others."""


def folder(spec: Mapping[str, Any]) -> str:
    """Return the name of the folder or file that a result was made from; empty for none.

    It is the last part of the path alone.
    """
    collection = spec.get("collection")
    if not isinstance(collection, Mapping):
        collection = {}
    path = spec.get("path") or collection.get("path") or collection.get("labels")
    return PurePath(str(path)).name if path else ""


def titled(kind: str, spec: Mapping[str, Any]) -> str:
    """Return the title of a result with its folder: ``titled("Study of", spec)``.

    Without a folder the title ends before the preposition: ``Study``.
    """
    name = folder(spec)
    return f"{kind} {name}" if name else kind.rpartition(" ")[0]


def audited(runs: Sequence[str], spec: Mapping[str, Any]) -> str:
    """Return the title of an audit: its runs, and the folder of its collection if there is one."""
    names = join_words(list(runs)) if len(runs) <= MOST_NAMED else f"{len(runs)} rankers"
    collection = spec.get("collection")
    # A file of labels is no collection that a title could name.
    has_labels_alone = isinstance(collection, Mapping) and bool(
        collection.get("labels") and not collection.get("path")
    )
    collection_name = "" if has_labels_alone else folder(spec)
    return f"Audit of {names} on {collection_name}" if collection_name else f"Audit of {names}"


def provenance(
    spec: Mapping[str, Any], notes: Iterable[str] = (), *, repeats: str = _REPEATS
) -> Section:
    """Return the section on how a result was made.

    `notes` are sentences for its reader, and `repeats` says what would happen if the command were
    run again.
    """
    blocks: list[Block] = []
    sentences = tuple(map(Sentence, notes))
    if sentences:
        blocks.append(Lines(lines=sentences, audience="page"))
    lead: tuple[str, ...] = ()
    if spec.get("command"):
        lead = (f"Made by the command below; {repeats}.",)
        blocks.append(Code(label="The command that made it", text=str(spec["command"])))
    pairs = []
    for name, value in spec.items():
        text = _text(value)
        if text and name not in ("command", "inputs"):
            pairs.append((_FIELD_NAMES.get(name, name.replace("_", " ")), text))
    blocks.append(NamedValues(pairs=tuple(pairs)))
    if spec.get("inputs"):
        columns = (
            (name_column("file"), itemgetter("path")),
            (text_column("SHA-256"), itemgetter("sha256")),
        )
        blocks.append(make_table("Inputs", spec["inputs"], columns, audience="page"))
    return Section("made", "How it was made", lead=lead, blocks=tuple(blocks), collapsed=True)


def _text(value: Any) -> str:
    """Print a value of a spec in words; empty for None."""
    if isinstance(value, Mapping):
        fields = [(name, field) for name, field in value.items() if field is not None]
        return ", ".join(_field_text(name, field) for name, field in fields)
    if isinstance(value, list | tuple):
        return _list_text(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return "" if value is None else str(value)


def _list_text(values: Sequence[Any]) -> str:
    """Print a list: all values, or the first and how many follow."""
    if any(isinstance(value, Mapping) for value in values):
        return "\n".join(map(_text, values))
    if len(values) <= _MOST_LISTED:
        return ", ".join(map(_text, values))
    return (
        f"{', '.join(map(_text, values[:_FIRST_LISTED]))} and {len(values) - _FIRST_LISTED:,} more"
    )


def _field_text(name: str, value: Any) -> str:
    """Print a field with its name; the value is in parentheses if it has fields itself."""
    text = _text(value)
    return f"{name} ({text})" if isinstance(value, Mapping) else f"{name} {text}"
