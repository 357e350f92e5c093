"""``ranktilt``: the entry point, and what happens to errors."""

from __future__ import annotations

import io
import sys
import traceback
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ranktilt._version import __version__
from ranktilt.cli import train
from ranktilt.cli.audit import audit, demo
from ranktilt.cli.build import build
from ranktilt.cli.check import check
from ranktilt.cli.compare import compare, gate
from ranktilt.cli.data import load, mix
from ranktilt.cli.explain import explain
from ranktilt.cli.generate import answer, rewrite
from ranktilt.cli.generate_versions import versions
from ranktilt.cli.judge import judge
from ranktilt.cli.level import level
from ranktilt.cli.notes import say
from ranktilt.cli.options import Verb
from ranktilt.cli.pairwise import pairwise
from ranktilt.cli.rank import rank
from ranktilt.cli.replay_log import replay_log
from ranktilt.cli.report import report
from ranktilt.cli.tools import doctor
from ranktilt.cli.train_study import train_study
from ranktilt.errors import UserError

_VERBS: dict[str, Any] = {
    "demo": demo,
    "audit": audit,
    "rank": rank,
    "compare": compare,
    "gate": gate,
    "explain": explain,
    "level": level,
    "train": train.train,
    "pairwise": pairwise,
    "judge": judge,
    "report": report,
    "check": check,
}
_GROUPS: dict[str, tuple[str, dict[str, Any]]] = {
    "data": (
        "Load, mix and build collections.",
        {"load": load, "mix": mix, "build": build},
    ),
    "generate": (
        "Let a language model rewrite documents or answer queries, or write versions by design.",
        {"rewrite": rewrite, "answer": answer, "versions": versions},
    ),
    "tools": (
        "Read stored answers, and look after the installation and the cache.",
        {
            "replay-log": replay_log,
            "doctor": doctor,
        },
    ),
}


class _FirstScreen(TyperGroup):
    """Lists the verbs, then the groups of the others."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for heading, names in {
            "Commands": list(_VERBS),
            "Groups of commands": list(_GROUPS),
        }.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [(name, self.commands[name].get_short_help_str(96)) for name in names]
                )

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Say in which group a verb is that is typed without it."""
        for group, (_, verbs) in _GROUPS.items():
            if args[0] in verbs:
                ctx.fail(
                    f"No such command {args[0]!r}. It is in a group: ranktilt {group} {args[0]}"
                )
        return super().resolve_command(ctx, args)


def _add(group: typer.Typer, verbs: dict[str, Any]) -> typer.Typer:
    """Give a group its verbs; one with kinds of its own is a group too."""
    for name, verb in verbs.items():
        if isinstance(verb, typer.Typer):
            group.add_typer(verb, name=name)
        else:
            group.command(name, cls=Verb)(verb)
    return group


app = typer.Typer(
    cls=_FirstScreen,
    name="ranktilt",
    help="What your ranker favours, how sure that is, why, and how to level it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
_add(app, _VERBS)
_add(train.train, {"study": train_study})
for _name, (_help, _verbs) in _GROUPS.items():
    app.add_typer(
        _add(typer.Typer(help=_help, no_args_is_help=True, rich_markup_mode=None), _verbs),
        name=_name,
    )

_USAGE: Any = typer.BadParameter.__base__  # click's UsageError, wherever this typer keeps it
# How every command ends. 0: done, and what it asks holds. 1: done, and it does not hold, as each
# verb's help says (tilted, unfair, failed, incomplete). 3: gate cannot tell. Nothing else may ever
# end in one of these:
_REFUSED = 2  # a mistake, or a place that cannot be written: one line says what to do
_CRASHED = 70  # a fault of our own, with its traceback
_NO_MEMORY = 71
_INTERRUPTED = (
    130  # Ctrl-C; a signal that ends the process gives 128 and its number, as shells count
)
_READER_GONE = (
    141  # whoever read the output went away, as `| head` does; there is nobody left to tell
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ranktilt {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Show the version and stop."
        ),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; mistakes of the user end in one line on stderr and exit code 2."""
    _speak_utf8()
    sys.exit(_run())


def _run() -> int:
    """Run the command; returns its exit code, whatever happens."""
    try:
        code = app(prog_name=app.info.name, standalone_mode=False) or 0
    except BrokenPipeError:
        code = _READER_GONE
    except (UserError, OSError, _USAGE) as error:
        if "--debug" in sys.argv:
            say(traceback.format_exc().rstrip())
        else:
            _refuse(error)
        code = _REFUSED
    except SystemExit as end:
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        code = _READER_GONE  # typer ends with 1 where a pipe closes
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    except MemoryError:
        say(f"{app.info.name}: out of memory: lower --memory or close other programs")
        code = _NO_MEMORY
    except BaseException:  # a library's panic is no Exception
        say(traceback.format_exc().rstrip())
        code = _CRASHED
    if code == _INTERRUPTED:
        say("ranktilt: interrupted; what was cached is kept")
    return code


def _refuse(error: Any) -> None:
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()  # nothing after a verb that has verbs of its own: the help page
        return
    where = getattr(getattr(error, "ctx", None), "command_path", app.info.name)
    message = (
        error.format_message().replace("Value error, ", "")
        if isinstance(error, _USAGE)
        else str(error)
    )
    say(f"{where}: {' '.join(message.splitlines())}")


def _speak_utf8() -> None:
    """A Δ or a minus sign that an old encoding lacks must not end a long audit, and a lost sign would lie."""
    for stream in (sys.stdout, sys.stderr):
        if (
            isinstance(stream, io.TextIOWrapper)
            and stream.encoding.lower().replace("-", "") != "utf8"
        ):
            stream.reconfigure(encoding="utf-8")


if __name__ == "__main__":
    main()
