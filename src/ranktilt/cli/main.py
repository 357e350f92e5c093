"""``ranktilt``: the entry point, and what happens to errors."""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated, Any

import typer

from ranktilt._version import __version__
from ranktilt.cli import audit, calibrate, check, compare, demo, gate, mix
from ranktilt.errors import UserError

app = typer.Typer(
    name="ranktilt",
    help="What your ranker favours, how sure that is, why, and how to level it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("audit")(audit.command)
app.command("calibrate")(calibrate.command)
app.command("check")(check.command)
app.command("compare")(compare.command)
app.command("demo")(demo.command)
app.command("gate")(gate.command)
app.command("mix")(mix.command)

_USAGE: Any = typer.BadParameter.__base__  # click's UsageError, wherever this typer keeps it
_INTERRUPTED = 130


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ranktilt {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and stop.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; mistakes of the user end in one line on stderr and exit code 2."""
    _set_threads(sys.argv[1:])
    _speak_utf8()
    try:
        code = app(prog_name=app.info.name, standalone_mode=False)
    except (UserError, _USAGE) as error:
        if "--debug" in sys.argv:
            raise
        _refuse(error)
        code = 2
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    if code == _INTERRUPTED:
        sys.stderr.write("ranktilt: interrupted; what was cached is kept\n")
    sys.exit(code or 0)


def _refuse(error: Any) -> None:
    if len(sys.argv) < 2:
        error.show()  # no arguments at all: the help page
        return
    where = getattr(getattr(error, "ctx", None), "command_path", app.info.name)
    message = str(error) if isinstance(error, UserError) else error.format_message()
    sys.stderr.write(f"{where}: {' '.join(message.splitlines())}\n")


def _speak_utf8() -> None:
    """A Δ or a minus sign that an old encoding lacks must not end a long audit, and a lost sign would lie."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower().replace("-", "") != "utf8":
            stream.reconfigure(encoding="utf-8")


def _set_threads(arguments: list[str]) -> None:
    """Libraries read their thread counts when they are imported, so this comes before any of them."""
    for position, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name == "--threads":
            count = value if equals else "".join(arguments[position + 1 : position + 2])
            if count.isdecimal() and int(count):
                for variable in (
                    "OMP_NUM_THREADS",
                    "OPENBLAS_NUM_THREADS",
                    "MKL_NUM_THREADS",
                    "POLARS_MAX_THREADS",
                ):
                    os.environ[variable] = count


if __name__ == "__main__":
    main()
