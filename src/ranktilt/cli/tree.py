"""All commands as data, for the documentation, for counts, and for checks of command lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from inspect import BoundArguments
from typing import TYPE_CHECKING, Any

from cyclopts import App

from ranktilt.cli.app import EXAMPLE, app
from ranktilt.cli.main import EXIT_QUIETLY

if TYPE_CHECKING:
    from cyclopts import Argument


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command that runs something, and not a group of commands."""

    path: tuple[str, ...]
    """What is typed, such as ``("data", "load")``."""
    parser: App
    """The parser of the command."""

    @property
    def name(self) -> str:
        """The words that are typed, such as ``data load``."""
        return " ".join(self.path)

    @property
    def examples(self) -> list[str]:
        """Whole commands, as they are typed."""
        lines = (self.parser.usage or "").splitlines()
        # `EXAMPLE` is "  $ ranktilt ", and an example begins with ranktilt.
        return [line.removeprefix("  $ ") for line in lines if line.startswith(EXAMPLE)]

    @property
    def arguments(self) -> list[Argument]:
        """Its positional arguments."""
        return [argument for argument in self._collected if argument.index is not None]

    @property
    def options(self) -> list[Argument]:
        """Its options, without those of the machine and ``--help``."""
        return [argument for argument in self._collected if argument.index is None]

    @cached_property
    def _collected(self) -> tuple[Argument, ...]:
        """Arguments and options; a record of options is replaced by its fields.

        They are kept, as reading the docstrings of a verb takes a tenth of a second.
        """
        collection = self.parser.assemble_argument_collection(
            default_parameter=app.default_parameter, parse_docstring=True
        )
        return tuple(
            argument
            for argument in collection
            if argument.parse and argument.names and not argument.children
        )


def commands(parent: App = app, path: tuple[str, ...] = ()) -> Iterator[Command]:
    """Yield every command of `parent` and of its groups.

    `path` has the words that lead to the parent.
    """
    for name in parent:
        if name.startswith("-"):
            continue
        child = parent[name]
        if child.default_command is None:
            yield from commands(child, (*path, name))
        else:
            yield Command(path=(*path, name), parser=child)


def parse(words: Sequence[str]) -> tuple[Any, BoundArguments]:
    """Parse a command line without running it, and return its verb with the arguments.

    `CycloptsError` is raised where it does not parse.
    """
    # The first pass takes off the options of the machine.
    _, words_of_verb, _ = app.meta.parse_args(words, **EXIT_QUIETLY)
    command, bound_arguments, _ = app.parse_args(words_of_verb.args, **EXIT_QUIETLY)
    return command, bound_arguments
