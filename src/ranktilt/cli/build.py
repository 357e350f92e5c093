"""``ranktilt data build``: published collections from their files, a command for each builder.

A *builder* is a function that makes a collection from the files that a paper published; other
packages may have builders too. Its signature becomes a command: parameters before ``*`` are
arguments, the others options, and its docstring is the help. A builder is imported only when
its command is typed or listed, because importing all of them takes too long.
"""

from __future__ import annotations

import inspect
import shlex
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from cyclopts import App, Group, Parameter
from cyclopts.command_spec import CommandSpec

from ranktilt.cli import options
from ranktilt.cli.app import EXAMPLE
from ranktilt.cli.data import data
from ranktilt.cli.notes import note
from ranktilt.cli.output import check_paths, print_lines
from ranktilt.errors import UserError

Builder = Callable[..., Any]
"""A function that builds a collection."""
_USAGE = "Usage: ranktilt data build"
"""Beginning of the usage."""
_OPTIONS = Group("Options", sort_key=11)
"""Panel of a builder's options."""
_RESERVED = ("assignments", "debug", "device", "executor", "memory", "output", "quiet", "threads")
"""Names that no parameter of a builder may have: options of the machine, and ``-o``."""
_PLACEHOLDERS = {int: "N", float: "X", Path: "FILE"}
"""What stands for a value in help, by its type; TEXT for any other type."""


class _BuilderCommand(CommandSpec):
    """The command of a builder, which is imported when the command is typed, or listed."""

    # A list of commands shows the first line of each docstring. The parser would leave it empty
    # for a command that is not resolved.
    is_resolved = True

    def resolve(self, parent_app: App) -> App:
        """Make the command, or a command that says why the builder cannot be imported."""
        from ranktilt.data.builders import builders

        name = str(self.name)
        try:
            return _command(name, builders().load(name), parent_app)
        except UserError as error:
            return _refusing_command(name, error, parent_app)
        except Exception as error:  # the parser may fail in any way at a package's signature
            reason = UserError(
                f"builder {name!r} cannot be a command: {type(error).__name__}: {error}"
            )
            return _refusing_command(name, reason, parent_app)


class _BuilderCommands(Mapping[str, _BuilderCommand]):
    """A command for each builder, made when it is asked for: to import all takes too long."""

    def __getitem__(self, name: str) -> _BuilderCommand:
        if name not in iter(self):
            raise KeyError(name)
        return _BuilderCommand(import_path="", name=name)

    def __iter__(self) -> Iterator[str]:
        from ranktilt.data.builders import builders

        return iter(builders().names())

    def __len__(self) -> int:
        return len(list(iter(self)))


build = App(
    name="build",
    help="Make a published collection from its original files.",
    usage=f"{_USAGE} NAME FILE… -o DIR [OPTIONS]",
    group_commands=Group("Collections", sort_key=1),
)
"""The group of builders."""
data.command(build)
# The parser only reads the commands of an app, so a mapping may stand in for its dict.
build._commands = ChainMap(build._commands, _BuilderCommands())  # type: ignore[arg-type,assignment]


def _command(name: str, builder: Builder, parent: App) -> App:
    """Make the command of a builder: its parameters are arguments and options, besides ``-o``."""
    form = _BuilderForm.from_function(name, builder)

    def run(*arguments: Any, output: Path, **settings: Any) -> None:
        _require_new(output)
        built = builder(*arguments, **settings)
        built.save(output)
        if built.summary:
            print_lines(built.summary)
        note(f"{output}: {built.collection!r}")
        for remark in built.notes:
            note(remark.sentence)
        if built.next_command:
            words = [word.replace("{folder}", str(output)) for word in built.next_command]
            note(f"Next: {shlex.join(['ranktilt', *words])}")

    run.__doc__ = builder.__doc__
    run.__annotations__ = {}
    run.__signature__ = form.signature  # type: ignore[attr-defined]
    command = _app(name, parent, usage=form.usage)
    command.default(run)
    for argument in command.assemble_argument_collection(parse_docstring=True):
        if not argument.parameter.help:
            raise UserError(
                f"builder {name!r}: its docstring does not say what {argument.field_info.name} is; "
                "describe it under Parameters, as numpydoc does"
            )
    return command


def _refusing_command(name: str, error: UserError, parent: App) -> App:
    """Make a command that raises the error for which the builder has no command."""

    def refuse(*words: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)]) -> None:
        raise error

    command = _app(name, parent, usage=f"{_USAGE} {name}", help=str(error))
    command.default(refuse)
    return command


def _app(name: str, parent: App, **settings: Any) -> App:
    """Return a command of the group, with the panels of the others."""
    command = App(
        name=name,
        help_flags=parent.help_flags,
        version_flags=(),
        group_arguments=parent.group_arguments,
        group_parameters=_OPTIONS,
        default_parameter=Parameter(negative=(), show_default=_shown_default),
        **settings,
    )
    for flag in command.help_flags:
        command[flag].show = False
    return command


def _shown_default(value: object) -> str | None:
    """Return the text of a default in help; None for a default that says nothing."""
    return None if value is None or value is False else str(value)


@dataclass(frozen=True, kw_only=True)
class _BuilderForm:
    """Parameters and usage of a builder's command."""

    signature: inspect.Signature
    """Arguments and options, as the parser reads them."""
    usage: str
    """First lines of its help, with an example."""

    @classmethod
    def from_function(cls, name: str, builder: Builder) -> _BuilderForm:
        """Read a builder's parameters: those before ``*`` are arguments, the others options."""
        hints = get_type_hints(builder, include_extras=True)
        parameters = list[inspect.Parameter]()
        arguments, required = [name], list[str]()
        for parameter in inspect.signature(builder).parameters.values():
            hint = hints.get(parameter.name, str)
            is_option = parameter.kind is parameter.KEYWORD_ONLY
            if is_option and parameter.name in _RESERVED:
                raise UserError(
                    f"builder {name!r}: --{parameter.name} is an option of every command; call its "
                    f"parameter {parameter.name} otherwise"
                )
            placeholder = _PLACEHOLDERS.get(hint, "TEXT") if is_option else parameter.name.upper()
            name_in_help = (
                Parameter(metavar=placeholder) if is_option else Parameter(name=placeholder)
            )
            kind = parameter.KEYWORD_ONLY if is_option else parameter.POSITIONAL_ONLY
            parameters.append(
                parameter.replace(kind=kind, annotation=Annotated[hint, name_in_help])
            )
            if not is_option:
                arguments.append(placeholder)
            elif parameter.default is parameter.empty:
                required += [f"--{parameter.name.replace('_', '-')}", placeholder]
        output = inspect.Parameter(
            "output", inspect.Parameter.KEYWORD_ONLY, annotation=options.Destination
        )
        example = " ".join(["data build", *arguments, *required, "-o", "DIR"])
        return cls(
            signature=inspect.Signature([*parameters, output]),
            usage=f"{_USAGE} {' '.join(arguments)} [OPTIONS]\n\n{EXAMPLE}{example}",
        )


def _require_new(folder: Path) -> None:
    """Refuse a folder that holds something or cannot be written, before any work is done."""
    check_paths({"--output": folder / "corpus.jsonl"})
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder}: already holds files; name a new folder")
