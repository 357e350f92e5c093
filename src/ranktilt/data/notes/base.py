"""What a note is, and how a result repeats the notes of another.

A *note* is something that a reader of a result should know besides its numbers, such as how many
queries were left out. It is a record of numbers and names; `reporting` makes the sentence. Its
*kind* is the name of its class, which a saved file holds, so that reading the file finds the class
again. Its *scope* is the part of a result that it is about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Literal, Self

from ranktilt.data.artifact import fields_for_file, read_fields, register
from ranktilt.errors import unknown_name
from ranktilt.presenter import presenter

Severity = Literal["note", "warning"]
"""How much a note matters: a warning says that numbers may mean something else than they seem to.
"""
_KINDS: dict[str, type[Note]] = {}
"""Class of each kind of note that was imported so far."""


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The part of a result that a note is about, if the result is made of several parts."""

    kind: Literal["baseline", "side", "source", "collection", "documents", "judge"]
    """Kind of the part.

    ``side`` is one of two results that are compared, ``documents`` those of one source that were
    ranked without others, and ``collection`` one of several that were audited.
    """
    name: str
    """Name of the part, such as ``new``, or that of a source."""


@dataclass(frozen=True, kw_only=True)
class Count:
    """A number with the name of what it counts: a reason, a source, a kind of answer."""

    name: str
    """What is counted."""
    number: int
    """How many of it there are."""


@dataclass(frozen=True, kw_only=True)
class GroupPair:
    """Two groups of documents that are compared."""

    a: str
    """The first group."""
    b: str
    """The second group."""


@dataclass(frozen=True, kw_only=True)
class Note:
    """Something that a reader of a result should know: numbers and names, without a sentence.

    A file holds the fields of a note with its ``kind``, the name of its class, and its
    ``sentence``. The words are made in `ranktilt.reporting.sentences.notes`.
    """

    severity: Severity = "note"
    """``warning`` if numbers of the result may mean something else than they seem to."""
    scopes: tuple[Scope, ...] = ()
    """Parts of the result that it is about, the widest first; empty for the whole result."""

    def __init_subclass__(cls) -> None:
        """Register the kind, by whose name files are read; refuse a second kind of that name."""
        super().__init_subclass__()
        # A module that is reloaded may declare its classes again.
        known = _KINDS.setdefault(cls.__name__, cls)
        if known.__module__ != cls.__module__:
            raise TypeError(
                f"{cls.__module__}: notes of the kind {cls.__name__} are declared in "
                f"{known.__module__} already; give yours another name"
            )
        _KINDS[cls.__name__] = cls

    @property
    def kind(self) -> str:
        """Name of its class, such as ``QueriesMissing``."""
        return type(self).__name__

    @property
    def sentence(self) -> str:
        """The note in words, as reports have it."""
        return presenter().sentence(self)

    @property
    def warns(self) -> bool:
        """Whether it is a warning, which every result made of the same numbers repeats."""
        return self.severity == "warning"

    def within(self, kind: Any, name: str) -> Self:
        """Return the note as one about a part of a larger result; see `Scope`."""
        return replace(self, scopes=(Scope(kind=kind, name=name), *self.scopes))

    def derived(self) -> dict[str, Any]:
        """Return what a file has besides the fields."""
        return {"kind": self.kind}


@dataclass(frozen=True, kw_only=True)
class Remark(Note):
    """A note in words, for papers and packages whose notes no program needs to read."""

    text: str
    """A sentence, as it is printed."""


def counts_of(numbers: Mapping[Any, int]) -> tuple[Count, ...]:
    """Return numbers by name as counts, in their order."""
    return tuple(Count(name=name, number=number) for name, number in numbers.items())


def note_kinds() -> dict[str, type[Note]]:
    """Return every kind of note by its name: ours, and those of packages that were imported."""
    for file in iter_modules([str(Path(__file__).parent)]):
        import_module(f"{__package__}.{file.name}")
    return dict(_KINDS)


def warnings_of(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Return the warnings among notes, which a result made of these numbers has to repeat."""
    return tuple(note for note in notes if note.warns)


def notes_within(notes: Iterable[Note], kind: Any, name: str) -> tuple[Note, ...]:
    """Return notes as those about a part of a larger result; see `Scope`."""
    return tuple(note.within(kind, name) for note in notes)


def _read_note(content: dict[str, Any]) -> Note:
    """Make a note of what a file holds; `UserError` where its kind is not known."""
    kinds = _KINDS if content["kind"] in _KINDS else note_kinds()
    if content["kind"] not in kinds:
        raise unknown_name("kind of note", content["kind"], kinds)
    return read_fields(kinds[content["kind"]], content)


# Fields of results that hold a note are read by `_read_note`, which finds the class by the kind.
register(Note, fields_for_file, _read_note)
