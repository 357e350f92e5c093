"""The root of the command line: its panels, its help page, and how a verb joins it.

A *verb* is a command, such as ``ranktilt audit``. A *panel* is a part of a help page with a title:
a list of commands or of options. Each verb is a function in a file of its own; it calls `verb` from
here to become a command. cyclopts parses the command line and draws the help.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from cyclopts import App, ArgumentCollection, Group, Parameter, Token
from cyclopts.help import DefaultFormatter, PanelSpec
from rich.box import Box
from rich.text import Text

from ranktilt._version import __version__
from ranktilt.errors import UserError, shorten
from ranktilt.sizes import read_points, read_whole_number

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from rich.console import Console, ConsoleOptions

# Panels of the first screen, in order.
START = Group("Start", sort_key=1)
"""Panel of the first screen: verbs to begin with."""
DECIDE = Group("Decide", sort_key=2)
"""Panel of the first screen: verbs that end in a decision."""
UNDERSTAND = Group("Understand", sort_key=3)
"""Panel of the first screen: verbs that say why."""
CORRECT = Group("Correct", sort_key=4)
"""Panel of the first screen: verbs that change a ranker."""
MORE = Group("More", sort_key=5)
"""Panel of the first screen: groups of further verbs."""

# Panels of a verb's help, in order.
ARGUMENTS = Group("Arguments", sort_key=10)
"""Panel of a verb's help: what is typed without a name."""
INPUT = Group("Input", sort_key=11)
"""Panel of a verb's help: what is read."""
QUESTION = Group("Question", sort_key=12)
"""Panel of a verb's help: what is asked."""
MODEL = Group("Model", sort_key=13)
"""Panel of a verb's help: models."""
TRAINING = Group("Training", sort_key=14)
"""Panel of a verb's help: training."""
STATISTICS = Group("Statistics", sort_key=15)
"""Panel of a verb's help: intervals and tests."""
OUTPUT = Group("Output", sort_key=16)
"""Panel of a verb's help: what is written."""
SELDOM = Group("More options", sort_key=17)
"""Options that few need: ``--help`` leaves them out, ``--help-all`` shows them."""
MACHINE = Group("Machine options, before or after any command", sort_key=18)
"""Panel of a verb's help: the machine."""
OTHER = Group("Help", sort_key=19)
"""Panel of a verb's help: help itself."""

HELP_ALL = "--help-all"
"""Option that shows every option."""
_EVERYWHERE = "Every command also takes --set KEY=VALUE, --quiet, --device …; see ranktilt --help."
"""Last line of a verb's help."""
EXAMPLE = "  $ ranktilt "
"""Beginning of each line of a usage that shows a whole command."""
Verb = TypeVar("Verb", bound=Callable[..., Any])
"""A function that becomes a verb, which is a command such as ``audit``."""
Options = TypeVar("Options")
"""A class of options."""


class HelpPage(DefaultFormatter):
    """Draw a help page: its usage, its description, and its panels with a line above each.

    Seldom used options are shown only with ``--help-all``. The options of the machine, which every
    command takes, are shown only on the page of ``ranktilt`` itself.
    """

    shows_all = False
    """Whether seldom used options are shown: ``--help-all`` was typed."""
    shows_machine = False
    """Whether the machine's options are shown: this is the page of ``ranktilt`` itself."""

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        """Print a panel, unless this page leaves it out."""
        if panel.title == MACHINE.name and not self.shows_machine:
            return
        if panel.title == SELDOM.name and not self.shows_all:
            count = len(panel.entries)
            options_noun = "option" if count == 1 else "options"
            console.print(Text(f"{HELP_ALL} shows {count} more {options_noun}."))
            return
        super().__call__(console, options, panel)

    def render_usage(self, console: Console, options: ConsoleOptions, usage: Any) -> None:
        """Print the usage and its examples as they are typed."""
        console.print(Text(f"{str(usage).strip()}\n"))

    def render_description(
        self, console: Console, options: ConsoleOptions, description: Any
    ) -> None:
        """Print the paragraphs of a docstring, each filled to the width of the terminal.

        Line breaks inside a paragraph only keep the source file narrow, so they become blanks.
        """
        with console.capture() as capture:
            console.print(description, soft_wrap=True)
        for paragraph in capture.get().strip().split("\n\n"):
            console.print(Text(" ".join(paragraph.split()) + "\n"))


# rich reads a box as eight lines of four characters; the first line is the upper border.
_RULE_ABOVE = Box(" ── \n" + "    \n" * 7)
"""Border of a panel: a line above it, and blanks on its other sides."""
HELP_PAGE = HelpPage(panel_spec=PanelSpec(box=_RULE_ABOVE, padding=(0, 1)))
"""Layout of all help."""


class _Parser(App):
    """A parser that reads the signature of its verb once, whoever asks for its arguments.

    A command line is parsed in several passes, each of which asks for them; to read the signature
    of ``audit`` takes longer than all else in a pass.
    """

    @cached_property
    def _collected(self) -> dict[tuple[Parameter, bool], ArgumentCollection]:
        """Arguments without words, by the defaults of their settings and whether they have help."""
        return {}

    def assemble_argument_collection(
        self, *, default_parameter: Parameter | None = None, parse_docstring: bool = False
    ) -> ArgumentCollection:
        """Return the arguments and options; a pass may write the words that it reads into them."""
        defaults = Parameter.combine(self.app_stack.default_parameter, default_parameter)
        collected = self._collected.get((defaults, parse_docstring))
        if collected is None:
            collected = super().assemble_argument_collection(
                default_parameter=default_parameter, parse_docstring=parse_docstring
            )
            self._collected[defaults, parse_docstring] = collected
        fresh = collected.copy(reset_tokens=True)
        copies = {id(old): new for old, new in zip(collected, fresh, strict=True)}
        for argument in fresh:
            # The copy still has the children of the argument that is kept.
            argument.children = argument.children.copy()
            argument.children[:] = [copies[id(child)] for child in argument.children]
        return fresh


def _app(name: str, summary: str, **settings: Any) -> App:
    """Return a command that holds other commands, with the help page of RankTilt."""
    return _Parser(
        name=name,
        help=summary,
        help_flags=["--help", "-h"],
        help_format="plaintext",
        help_formatter=HELP_PAGE,
        group_arguments=ARGUMENTS,
        # Ctrl-C reaches `main`, which says that finished work is kept.
        suppress_keyboard_interrupt=False,
        group_parameters=OTHER,
        group_commands=Group("Commands", sort_key=9),
        # `negative=()`: the parser adds no option ``--no-card`` to each option such as ``--card``.
        default_parameter=Parameter(negative=(), show_default=False, show_choices=True),
        **settings,
    )


app = _app(
    "ranktilt",
    "What your ranker favours, how sure you can be, why, and how to correct it.",
    version=f"ranktilt {__version__}",
    usage="Usage: ranktilt COMMAND [OPTIONS]",
)
"""The root of all commands, to which verbs are added."""
# `app.meta` runs before every verb: `main._launch` reads the options of the machine there.
app.meta.suppress_keyboard_interrupt = False
app["--help"].group = OTHER
app["--version"].group = OTHER


def whole_number(_kind: object, tokens: Sequence[Token]) -> int:
    """Read a whole number, and refuse 1.5, which the parser alone would round."""
    text = tokens[0].value
    number = read_whole_number(text)
    if number is None:
        raise ValueError(f"expected a whole number, got {shorten(text)[1:-1]}")
    return number


def points(_kind: object, tokens: Sequence[Token]) -> float:
    """Read a size in points (hundredths of a whole): ``5``, ``5%`` or ``5 points``."""
    try:
        return read_points(tokens[0].value)
    except UserError as error:
        raise ValueError(str(error)) from None


def percentage(_kind: object, tokens: Sequence[Token]) -> float:
    """Read a share in percent: a size in points that may be at most 100."""
    try:
        return read_points(tokens[0].value, most=100)
    except UserError as error:
        raise ValueError(str(error)) from None


def resolve_types(kind: type[Options]) -> type[Options]:
    """Decorate a dataclass of options that inherits from one of another module.

    Under ``from __future__ import annotations``, types are texts. The parser evaluates the types of
    the parameters of ``__init__`` in the module of the subclass, where names that the other module
    imported are unknown. This decorator evaluates each type in the module that declares its field.
    """
    kind.__init__.__annotations__.update(get_type_hints(kind, include_extras=True))
    return kind


def command_group(name: str, summary: str, panel: Group) -> App:
    """Add a command that holds other commands, such as ``data``, and return it."""
    group = _app(name, summary, usage=f"Usage: ranktilt {name} COMMAND [OPTIONS]", group=panel)
    app.command(group)
    return group


def verb(
    name: str,
    *examples: str,
    arguments: str = "",
    panel: Group | None = None,
    order: int | None = None,
    parent: App = app,
) -> Callable[[Verb], Verb]:
    """Make a function a command.

    Its docstring is the description of the help page, and its parameters are the options. The
    process ends with the exit code that it returns.

    Parameters
    ----------
    name : str
        What is typed after the parent's name.
    *examples : str
        Whole commands without ``ranktilt``, shown under the usage.
    arguments : str
        The positional arguments as the usage shows them, such as ``NEW.json [OLD.json]``.
    panel : Group, optional
        The panel of the parent's help page that lists it.
    order : int, optional
        Its place among the commands of the panel; alphabetical by default.
    parent : App
        The root, or the group that the command belongs to.
    """
    words = [word for word in ("ranktilt", *_path(parent), name, arguments, "[OPTIONS]") if word]
    usage = "\n".join(["Usage: " + " ".join(words), "", *(EXAMPLE + line for line in examples)])
    settings: dict[str, Any] = {"help_epilogue": _EVERYWHERE}
    if panel is not None:
        settings["group"] = panel

    def register(function: Verb) -> Verb:
        parent.command(function, name=name, usage=usage, sort_key=order, **settings)
        return function

    return register


def _path(parent: App) -> tuple[str, ...]:
    """Return the words that lead to a group of verbs."""
    return () if parent is app else parent.name
