"""``ranktilt --help-spec NAME``: options of a ranker, a model, a measure or a probe.

A *spec* is the text that names any of these with its options, such as ``bm25(k1=0.9)``. A *probe*
is a method by which ``ranktilt explain`` looks for the reason of a tilt. The description is
the docstring of the class, and the defaults are those of its fields or parameters.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields, replace
from typing import Annotated, Any

from cyclopts import Parameter

from ranktilt import config
from ranktilt.cli.app import OTHER, app
from ranktilt.cli.output import print_result
from ranktilt.errors import unknown_name


@dataclass(frozen=True, kw_only=True)
class SpecHelp:
    """The spec of a ranker, a language model, a measure or a probe, and its options."""

    kind: str
    """``ranker``, ``language model``, ``measure`` or ``probe``."""
    form: str
    """How it is typed, such as ``bm25(option=value,…)@k``."""
    about: str
    """Its documentation."""
    options: tuple[tuple[str, str], ...]
    """Each option with its default, as texts."""

    @classmethod
    def from_class(
        cls, kind: str, name: str, source: type[Any], options: dict[str, str], *, cutoff: str = ""
    ) -> SpecHelp:
        """Describe a class by its docstring.

        Parameters
        ----------
        kind : str
            What it is, such as ``ranker``.
        name : str
            Beginning of its spec.
        source : type
            The class.
        options : dict of str to str
            Its options with their defaults.
        cutoff : str
            End of its spec, behind the options, such as ``@k``.
        """
        parentheses = "(option=value,…)" if options else ""
        return cls(
            kind=kind,
            form=f"{name}{parentheses}{cutoff}",
            about=(inspect.getdoc(source) or "").replace("``", ""),
            options=tuple(options.items()),
        )

    def __str__(self) -> str:
        lines = [f"{self.form}: a {self.kind}", "", self.about, ""]
        width = max((len(name) for name, _ in self.options), default=0)
        if self.options:
            lines += ["Options and defaults:"]
            lines += [f"  {name:<{width}}  {default}" for name, default in self.options]
        else:
            lines += ["It has no options."]
        return "\n".join(lines) + "\n"


@app.command(name="--help-spec", group=OTHER)
def help_spec(name: Annotated[str, Parameter(name="NAME")], /) -> None:
    """With a NAME: show options of a ranker, model, measure or probe, or keys of ranktilt.toml."""
    if name == config.FILE:
        print_result(configuration_help())
        return
    entries = list(spec_help(name))
    if not entries:
        raise unknown_name("ranker, language model, measure or probe", name, spec_names())
    print_result("\n".join(map(str, entries)))


# `main.run` replaces --help-all by --help and notes that it was typed; this only lists it in help.
@app.command(name="--help-all", group=OTHER)
def help_all() -> None:
    """After a command: show all its options, including rarely used ones."""


def configuration_help() -> str:
    """Show a configuration file, and the keys of each section."""
    from ranktilt.data.faults.check_limits import CheckLimits

    sections = {
        "[labels.NAME]": config.LabelSettings,
        "[machine]": config.MachineSettings,
        "[statistics]": config.StatisticsSettings,
        "[check]": CheckLimits,
    }
    lines = [
        f"{config.FILE}, in the working folder or above it:",
        "",
        config.EXAMPLE,
        "Keys of each section (for one command: --set SECTION.KEY=VALUE):",
        "  [llm.NAME]     model, and every option of its text (--help-spec openai)",
    ]
    for section, kind in sections.items():
        names = ", ".join(field.name for field in fields(kind))
        # The command line adds this key to the limits of `CheckLimits`.
        more = ", equivalence" if section == "[check]" else ""
        lines += textwrap.wrap(
            f"{section:<14} {names}{more}",
            width=79,
            initial_indent="  ",
            subsequent_indent=" " * 17,
        )
    return "\n".join([*lines, ""])


def spec_names() -> list[str]:
    """Return every name that `spec_help` knows."""
    from ranktilt.explaining.probe_table import probe_classes
    from ranktilt.llm.base import KINDS
    from ranktilt.measures.base import estimands
    from ranktilt.registry import ranker_names

    return sorted({*ranker_names(), *KINDS, *estimands(), *probe_classes()})


def spec_help(name: str) -> Iterator[SpecHelp]:
    """Yield the help of everything with a name; a ranker and a probe may share a name."""
    from ranktilt.explaining.probe_table import probe_classes
    from ranktilt.llm.base import KINDS
    from ranktilt.measures.base import estimands
    from ranktilt.registry import ranker_class, ranker_names

    if name in ranker_names():
        yield _ranker_help(name, ranker_class(name))
    if name in KINDS:
        yield _model_help(name)
    if name in estimands():
        yield _measure_help(name)
    if name in probe_classes():
        yield _probe_help(name)


def _ranker_help(name: str, kind: type[Any]) -> SpecHelp:
    """Describe a ranker; its fields are its options."""
    options = {field.name: _default(field.default) for field in fields(kind)}
    # The depth and the argument are typed outside the parentheses: ``dense:minilm(…)@100``.
    depth = "@k" if options.pop("k", None) is not None else ""
    argument = f":{kind.argument.upper()}" if kind.argument else ""
    options.pop(str(kind.argument), None)
    return SpecHelp.from_class("ranker", f"{name}{argument}", kind, options, cutoff=depth)


def _model_help(name: str) -> SpecHelp:
    """Describe a kind of language model."""
    import pkgutil

    from ranktilt.llm.base import KINDS
    from ranktilt.llm.spec import batch_options, model_options, sampling_options

    options = {option: _default(field.default) for option, field in model_options(name).items()}
    options |= {
        option: f"{_default(value)}, unless a command sets its own"
        for option, value in sampling_options().items()
    }
    options |= dict.fromkeys(batch_options(name), "only with --batch")
    kind = pkgutil.resolve_name(KINDS[name])
    return SpecHelp.from_class("language model", f"{name}:MODEL", kind, options)


def _measure_help(name: str) -> SpecHelp:
    """Describe a measure."""
    from ranktilt.measures.base import every_estimand

    measure = next(estimand for estimand in every_estimand() if estimand.name == name)
    hidden = {"cutoff"}
    if not getattr(measure, "binary", True):
        # A measure of grades needs no grade from which a document is relevant.
        hidden.add("rel")
    options = {
        field.name: _default(getattr(measure, field.name))
        for field in fields(measure)
        if field.init and field.name not in hidden and field.default is not MISSING
    }
    help_page = SpecHelp.from_class("measure", name, type(measure), options, cutoff="[@cutoff]")
    question = type(measure).question
    return replace(help_page, about=f"{question}\n\n{help_page.about}".strip())


def _probe_help(name: str) -> SpecHelp:
    """Describe a probe; its argument is its first parameter by position."""
    from ranktilt.explaining.probe_table import probe_table

    kind = probe_table().load(name)
    parameters = list(inspect.signature(kind).parameters.values())
    argument, options = "", {}
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY:
            options[parameter.name] = _default(parameter.default)
        elif not argument:
            argument = parameter.name
    form = f"{name}[:{argument.upper()}]" if argument else name
    return SpecHelp.from_class("probe", form, kind, options)


def _default(value: Any) -> str:
    """Return a default value as text."""
    if value is MISSING or value is inspect.Parameter.empty:
        return "required"
    if value is None:
        return "(chosen for you)"
    return str(value).lower() if isinstance(value, bool) else str(value)
