"""What a shell completes: the names that an option takes, and options inside parentheses.

Each function that takes a `CompletionContext` gives the words that may replace the word which is
being typed, `CompletionContext.incomplete`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import fields
from importlib.resources import files
from inspect import signature
from typing import TYPE_CHECKING, Literal

from ranktilt.cli.notes import note
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from cyclopts import App
    from cyclopts.completion import CompletionContext


BASH_WORDS = "ranktilt-words.bash"
"""A file of this package: bash code that treats a text with quotes and colons as one word."""


def install_completion(
    app: App, shell: Literal["bash", "zsh", "fish", "powershell"] | None
) -> None:
    """Install completion for a shell, the one that is running by default, and say where."""
    from cyclopts.completion.detect import ShellDetectionError, detect_shell

    try:
        shell = shell or detect_shell()
    except ShellDetectionError as error:
        raise UserError("which shell is this? Name it, such as --shell bash") from error
    path = app.install_completion(shell=shell)
    if shell == "bash":
        words = files("ranktilt.cli").joinpath(BASH_WORDS).read_text(encoding="utf-8")
        path.write_text(path.read_text(encoding="utf-8") + words, encoding="utf-8")
    note(f"completion is in {path}; open a new shell")


def rankers(context: CompletionContext) -> list[str]:
    """Offer rankers and models that are known by a short name, for the last stage that is typed."""
    from ranktilt.models.catalogue import MODELS
    from ranktilt.registry import ranker_names

    earlier_stages, arrow, stage = context.incomplete.rpartition(">>")
    names = within_parentheses(stage, (*ranker_names(), *MODELS), ranker_options)
    return [f"{earlier_stages}{arrow}{name}" for name in names]


def ranker_options(name: str) -> list[str]:
    """Return the options of a ranker by its name, such as ``bm25`` or ``dense:minilm``."""
    from ranktilt.registry import ranker_class, ranker_names

    kind = ranker_class(name if name in ranker_names() else name.partition(":")[0])
    # These two are not written inside the parentheses: k follows an @, the argument a colon.
    hidden = ("k", kind.argument)
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    return [name for name in names if name not in hidden]


def language_models(context: CompletionContext) -> list[str]:
    """Offer kinds of models, models of ranktilt.toml, and options inside the parentheses."""
    from pathlib import Path

    from ranktilt.config import find_configuration, read_configuration
    from ranktilt.llm.base import KINDS
    from ranktilt.llm.spec import option_names

    configured: Mapping[str, object] = {}
    with suppress(UserError, OSError):  # without the file, kinds of models are still offered
        configured = read_configuration(find_configuration(Path.cwd())).llm
    names = (*configured, *(f"{kind}:" for kind in KINDS))
    return within_parentheses(
        context.incomplete, names, lambda name: option_names(name.partition(":")[0])
    )


def measures(context: CompletionContext) -> list[str]:
    """Offer measures and other estimands, without their cutoffs."""
    from ranktilt.measures.base import estimands

    return _with_prefix(context.incomplete, estimands())


def layout_names(context: CompletionContext) -> list[str]:
    """Offer tables and figures of the papers."""
    from ranktilt.reporting.layouts.layout import PAPER, layouts

    return _with_prefix(context.incomplete, (PAPER, *layouts()))


def presets(context: CompletionContext) -> list[str]:
    """Offer presets of the papers, and those of other packages."""
    from ranktilt.presets import presets as table

    return _with_prefix(context.incomplete, table().names())


def probes(context: CompletionContext) -> list[str]:
    """Offer probes, those of other packages too, and options inside the parentheses."""
    from ranktilt.explaining.probe_table import probe_classes, probe_table

    def options(name: str) -> list[str]:
        parameters = signature(probe_table().load(name.partition(":")[0])).parameters.values()
        return [
            parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY
        ]

    return within_parentheses(context.incomplete, probe_classes(), options)


def methods(context: CompletionContext) -> list[str]:
    """Offer methods of correction."""
    from ranktilt.mitigation.fair_rerank import METHODS as FAIR_METHODS
    from ranktilt.mitigation.methods import METHODS

    names = (*METHODS, *(f"fair-rerank:{name}" for name in FAIR_METHODS))
    return within_parentheses(context.incomplete, names, method_options)


def method_options(name: str) -> list[str]:
    """Return the options of a method of correction by its name."""
    from ranktilt.mitigation import methods as known

    kind = name.partition(":")[0]
    return known.method_options(kind) if kind in known.METHODS else []


def within_parentheses(
    typed: str, names: Iterable[str], options_of: Callable[[str], Iterable[str]]
) -> list[str]:
    """Return the words that complete ``name(option=value,…)``.

    Parameters
    ----------
    typed : str
        The beginning of the text. An option without its value is completed; nothing is offered
        behind an equals sign or the closing parenthesis.
    names : iterable of str
        Names that may stand before the parenthesis.
    options_of : callable
        Gives the options of a name.
    """
    name, parenthesis, inside = typed.partition("(")
    if not parenthesis:
        return _with_prefix(typed, names)
    earlier_options, comma, option = inside.rpartition(",")
    if ")" in inside or "=" in option:
        return []
    start = f"{name}({earlier_options}{comma}"
    return [f"{start}{candidate}=" for candidate in _with_prefix(option, options_of(name))]


def _with_prefix(typed: str, names: Iterable[str]) -> list[str]:
    """Return the names that begin with what was typed, sorted."""
    return sorted(name for name in names if name.startswith(typed))
