"""``ranktilt``: the entry point, and what happens to errors.

`main` calls `run`, which turns every error into a line on stderr and an exit code. In between,
`_launch` reads the options of the machine (such as ``--device``), and the parser calls the verb.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from cyclopts import CycloptsError, Parameter
from cyclopts.exceptions import (
    CoercionError,
    MissingArgumentError,
    RepeatArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)

from ranktilt.cli import (  # noqa: F401 - each verb joins the root where it is imported
    build,
    check,
    compare,
    data,
    gate,
    help_spec,
)
from ranktilt.cli.app import HELP_ALL, HELP_PAGE, OTHER, app
from ranktilt.cli.audit import audit, demo  # noqa: F401
from ranktilt.cli.audit.from_audit import with_inputs_of_audit
from ranktilt.cli.cite import cite  # noqa: F401
from ranktilt.cli.explain import explain  # noqa: F401
from ranktilt.cli.generate import answer, rewrite, versions  # noqa: F401
from ranktilt.cli.judge import judge  # noqa: F401
from ranktilt.cli.mitigate import mitigate  # noqa: F401
from ranktilt.cli.notes import say
from ranktilt.cli.pairwise import pairwise  # noqa: F401
from ranktilt.cli.rank import rank  # noqa: F401
from ranktilt.cli.report import report  # noqa: F401
from ranktilt.cli.settings import MachineOptions, assignable_keys, in_force, model_keys
from ranktilt.cli.tools import doctor, replay_log  # noqa: F401
from ranktilt.cli.train import cross_encoder, lora, retriever, study  # noqa: F401
from ranktilt.errors import UserError, nearest, shorten

# Exit codes. A command returns 0 if it is done and the answer is good, 1 if it is done and the
# answer is bad (tilted, unfair, failed, incomplete: each verb's help says which), and 3 if gate is
# inconclusive or check has no two sides. Errors must never end in one of these, so they have codes
# of their own:
_REFUSED = 2
"""A mistake of the user, or a file that cannot be written: one line says what to do."""
_CRASHED = 70
"""A fault of ours, with its traceback."""
_NO_MEMORY = 71
"""The memory was not enough."""
_INTERRUPTED = 130
"""Ctrl-C: 128 and the number of the signal, as shells count."""
_READER_GONE = 141
"""Whatever read the output has ended, as ``| head`` does: 128 and the number of SIGPIPE."""
_LONGEST_PATH = 1_000
"""Characters of a path above which only its beginning is printed."""
_NOUNS: dict[object, str] = {int: "a whole number", float: "a number"}
"""Noun for a type of options, where the parser would name the type."""
_NARROWEST_TERMINAL = 20
"""Columns below which a terminal's width is not believed."""

EXIT_QUIETLY: dict[str, Any] = {"exit_on_error": False, "print_error": False}
"""Arguments that make the parser raise its errors, which become one line here."""


@app.command(name="--install-completion", group=OTHER)
def _install_completion(
    *, shell: Annotated[Literal["bash", "zsh", "fish", "powershell"] | None, Parameter()] = None
) -> None:
    """Let the shell complete commands, options and names."""
    from ranktilt.cli.completion import install_completion

    install_completion(app, shell)


@app.meta.default
def _launch(
    *words: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    machine: MachineOptions = MachineOptions(),
) -> Any:
    """Read the options of the machine, wherever they are typed, and run the command with the rest.

    A group of commands without a command, such as ``ranktilt data``, prints its help.
    """
    path, parsers, arguments = app.parse_commands(words)
    if parsers[-1].default_command is None and not arguments:
        from rich.console import Console

        app.help_print(words, console=Console(stderr=True))
        return _REFUSED
    with in_force(machine, path):
        return _call(app, words)


def _call(parser: Any, words: Any) -> Any:
    """Call the verb that the words name, and return what it returns."""
    return parser(words, **EXIT_QUIETLY, result_action="return_value")


def main() -> None:
    """Run the command line; mistakes of the user end in one line on stderr and exit code 2."""
    _open_closed_streams()
    _mend_width()
    _write_utf8()
    sys.exit(run(sys.argv[1:]))


def _open_closed_streams() -> None:
    """Open a stream that the shell closed (``2>&-``): a write to it would change the exit code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # It stays open until the process ends.
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def _mend_width() -> None:
    """Print for a terminal of 80 columns where the one here claims to have almost none."""
    columns = shutil.get_terminal_size().columns
    if columns < _NARROWEST_TERMINAL or os.environ.get("COLUMNS") == "0":
        os.environ["COLUMNS"] = "80"


def run(words: Sequence[str]) -> int:
    """Run the command and return its exit code, whatever happens."""
    HELP_PAGE.shows_all = HELP_ALL in words
    words = ["--help" if word == HELP_ALL else word for word in words]
    try:
        code = _run_command(words)
    except BrokenPipeError:
        code = _READER_GONE
    except (UserError, OSError, CycloptsError) as error:
        say(traceback.format_exc().rstrip() if "--debug" in words else _refusal(error))
        code = _REFUSED
    except SystemExit as end:
        # rich ends with 1 where a pipe closes.
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        code = _READER_GONE
    except KeyboardInterrupt:
        code = _INTERRUPTED
    except MemoryError:
        say("ranktilt: out of memory: lower --memory or close other programs")
        code = _NO_MEMORY
    except BaseException:
        # A panic in a compiled library is a BaseException, but no Exception.
        say(traceback.format_exc().rstrip())
        code = _CRASHED
    # A verb may return this code too, after it has saved its work so far.
    if code == _INTERRUPTED:
        say("ranktilt: interrupted; the cache keeps finished work")
    return code


def _run_command(words: Sequence[str]) -> int:
    """Run what was typed, and return the exit status."""
    words = with_inputs_of_audit(words)
    path, _, _ = app.parse_commands(words)
    HELP_PAGE.shows_machine = not path or path[0].startswith("-")
    return int(_call(app.meta, words) or 0)


def _refusal(error: Exception) -> str:
    """Return the line that says what is wrong: the command, and the message without line breaks."""
    chain = getattr(error, "command_chain", None) or ()
    message = _parser_message(error) if isinstance(error, CycloptsError) else str(error)
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        # Python's own message begins with the number of the error: "[Errno 36] File name too long".
        message = f"{_short_path(error.filename)}: {error.strerror}"
    return f"{' '.join(['ranktilt', *chain])}: {' '.join(message.splitlines())}"


def _short_path(path: object) -> str:
    """Print the path of a file; the beginning of one that no file system takes."""
    text = os.fsdecode(path) if isinstance(path, bytes) else str(path)
    return text if len(text) <= _LONGEST_PATH else shorten(text)


def _parser_message(error: CycloptsError) -> str:
    """Return the parser's message, in our words where its own would speak of its internals."""
    if isinstance(error, UnknownCommandError):
        return _unknown_command(error)
    if isinstance(error, UnusedCliTokensError):
        return f"got unexpected words: {' '.join(error.unused_tokens or ())}"
    if isinstance(error, RepeatArgumentError):
        return f"{error.token.keyword} is given twice, but takes one value: keep one of them"
    if isinstance(error, MissingArgumentError):
        return _missing(error)
    if isinstance(error, UnknownOptionError):
        return _unknown_option(error)
    if isinstance(error, CoercionError) and error.token and error.target_type in _NOUNS:
        option, value = error.token.keyword or "an argument", error.token.value
        noun = _NOUNS[error.target_type]
        return f"Invalid value for {option}: expected {noun}, got {value or 'nothing'}"
    return str(error)


def _unknown_option(error: UnknownOptionError) -> str:
    """Return a message that names the nearest option, or the key to set in its place."""
    word = (error.token.keyword or error.token.value).partition("=")[0]
    name = word.lstrip("-").replace("-", "_")
    names: list[str] = []
    for option in error.argument_collection:
        if option.parse:
            names += option.names
    remedies = [f"--set {key}=VALUE" for key in assignable_keys(name, error.command_chain or ())]
    if name in model_keys() and "--llm" in names:
        remedies += [f'an option in the text of a model: --llm "openai:MODEL({name}=VALUE)"']
    if remedies:
        return f"unknown option {word}; use {' or '.join(remedies)}"
    near = nearest(word, names)
    return f"unknown option {word}{f'; did you mean {near[0]}?' if near else ''}"


def _missing(error: MissingArgumentError) -> str:
    """Return a message that names the argument that is missing, or the option without a value.

    The parser does not read a lone hyphen as a value.
    """
    option, words = error.keyword, list(error.root_input_tokens or ())
    if option is None:
        return f"{error.argument.name if error.argument else 'an argument'} is missing"
    if option in words[:-1] and words[words.index(option) + 1] == "-":
        return f"{option} writes a file, not to standard output (-)"
    return f"{option} needs a value"


def _unknown_command(error: UnknownCommandError) -> str:
    """Return a message that names the nearest command, or the group that a command belongs to."""
    word = (error.unused_tokens or [""])[0]
    if word.startswith("-"):
        return f"unknown option {word}"
    parent = error.app if error.app is not None else app
    names = [name for name in parent if not name.startswith("-")]
    if not error.command_chain:
        for group in names:
            if word in app[group]:
                return f"no such command {word!r}; did you mean ranktilt {group} {word}?"
    near = nearest(word, names)
    hint = f"; did you mean {near[0]!r}?" if near else f" (commands: {', '.join(names)})"
    return f"no such command {word!r}{hint}"


def _write_utf8() -> None:
    """Write UTF-8 where an old encoding is set.

    An encoding without Δ would end a long audit with an error, and a minus sign that is left out
    would turn a result around.
    """
    for stream in (sys.stdout, sys.stderr):
        if not isinstance(stream, io.TextIOWrapper):
            continue
        if stream.encoding.lower().replace("-", "") != "utf8":
            stream.reconfigure(encoding="utf-8")


if __name__ == "__main__":
    main()
