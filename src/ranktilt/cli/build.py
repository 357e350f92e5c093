"""``ranktilt data build``: published collections from their original files; each builder is a command."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_origin, get_type_hints

import typer
from typer.core import TyperGroup

from ranktilt.cli import options
from ranktilt.cli.notes import note
from ranktilt.cli.output import check_paths, print_lines
from ranktilt.errors import UserError
from ranktilt.option import Option

Builder = Callable[..., Any]


class _Builders(TyperGroup):
    """Has a command for each builder in the table, which is imported when it is asked for."""

    @property  # type: ignore[override]  # typer has an attribute
    def commands(self) -> dict[str, Any]:
        """The command of every builder by its name."""
        return {name: self.get_command(None, name) for name in self.list_commands(None)}

    @commands.setter
    def commands(self, declared: dict[str, Any]) -> None:
        """Take no others."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the builders."""
        from ranktilt.datasets.builders import builders

        return builders().names()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of a builder; `UserError` names those there are."""
        from ranktilt.datasets.builders import builders

        return _command(cmd_name, builders().load(cmd_name))


def _command(name: str, builder: Builder) -> Any:
    """Make a command of a builder: its parameters as arguments and options, and ``-o``."""
    hints = get_type_hints(builder, include_extras=True)
    hints.pop("return", None)
    parameters = list(inspect.signature(builder).parameters.values())
    positional = [
        parameter for parameter in parameters if parameter.kind is not parameter.KEYWORD_ONLY
    ]
    for parameter in parameters:
        _require_option(name, parameter.name, hints.get(parameter.name))
    for parameter in positional:
        hints[parameter.name] = _argument(hints[parameter.name])

    def build(*, output: Path, **given: Any) -> None:
        _require_new(output)
        arguments = [given.pop(parameter.name) for parameter in positional]
        built = builder(*arguments, **given)
        built.save(output)
        if built.summary:
            print_lines(built.summary)
        note(f"{output}: {built.collection!r}")
        for sentence in built.notes:
            note(sentence)
        if built.next_command:
            words = [word.replace("{folder}", str(output)) for word in built.next_command]
            note(f"Next: {shlex.join(['ranktilt', *words])}")

    folder = inspect.Parameter("output", inspect.Parameter.KEYWORD_ONLY)
    keyword_only = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters
    ]
    build.__signature__ = inspect.Signature([*keyword_only, folder])  # type: ignore[attr-defined]
    build.__annotations__ = {**hints, "output": options.Destination}
    build.__doc__ = builder.__doc__
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command(name, cls=options.Verb)(options.verb(*_examples(name, parameters, hints))(build))
    return typer.main.get_command(app)


def _require_option(builder: str, name: str, hint: Any) -> None:
    """Refuse a parameter that does not say what it is."""
    if get_origin(hint) is not Annotated or not isinstance(hint.__metadata__[0], Option):
        raise UserError(
            f'builder {builder!r}: expected {name}: Annotated[type, Option("What it is.", "FILE")]'
        )


def _argument(hint: Any) -> Any:
    """The type of a positional parameter, as typer declares an argument."""
    option = hint.__metadata__[0]
    return Annotated[hint.__origin__, typer.Argument(metavar=option.metavar, help=option.help)]


def _examples(
    name: str, parameters: list[inspect.Parameter], hints: dict[str, Any]
) -> tuple[str, str]:
    """The shortest command of a builder, and one with its first option as it is by default."""
    words, option = ["data", "build", name], list[str]()
    for parameter in parameters:
        declared = hints[parameter.name].__metadata__[0]
        if parameter.kind is not parameter.KEYWORD_ONLY:
            words.append(declared.metavar or parameter.name.upper())
            continue
        flag = declared.names(parameter.name)[0]
        if parameter.default is parameter.empty:
            words += [flag, declared.metavar or "X"]
        elif not option and parameter.default is not None and parameter.default is not False:
            option = [flag, str(parameter.default)]
    return " ".join([*words, "-o", "DIR"]), " ".join([*words, *option, "-o", "DIR"])


def _require_new(folder: Path) -> None:
    """Refuse a folder that holds something or cannot be written, before any work is done."""
    check_paths({"--output": folder / "corpus.jsonl"})
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder}: holds files already; name a new folder")


build = typer.Typer(
    cls=_Builders,
    help="Make a published collection from its original files.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@build.callback()
def _group() -> None:
    pass
