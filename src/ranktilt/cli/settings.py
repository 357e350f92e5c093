"""Settings of a command: the configuration file, ``--set``, and the options of the machine.

The *configuration* is the file ranktilt.toml of the working folder or of one above it. A *section*
is a part of it, such as [statistics]; ``--set statistics.seed=1`` sets its *key* seed for one
command. Start in `in_force`, in which every command runs; a verb reads `settings`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from ranktilt.cli.app import MACHINE, whole_number
from ranktilt.cli.notes import reporting
from ranktilt.config import (
    Configuration,
    MachineSettings,
    MitigateSettings,
    StatisticsSettings,
    find_configuration,
    read_configuration,
)
from ranktilt.errors import UserError

_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "POLARS_MAX_THREADS",
)
"""Environment variables by which libraries read the number of threads."""


@Parameter(name="*", group=MACHINE)
@dataclass(frozen=True, kw_only=True)
class MachineOptions:
    """Where work runs, and what is printed about it; the same options for every command."""

    device: Annotated[
        str | None, Parameter(help="Device for models, such as cpu or cuda:0.", metavar="DEVICE")
    ] = None
    threads: Annotated[
        int | None,
        Parameter(
            help="Processor threads to use.",
            metavar="N",
            validator=Number(gte=1),
            converter=whole_number,
        ),
    ] = None
    memory: Annotated[
        str | None,
        Parameter(
            help="Memory limit for exact search and random labels, such as 1GB (default: a "
            "quarter of the memory).",
            metavar="SIZE",
        ),
    ] = None
    executor: Annotated[
        str | None,
        Parameter(
            help="Where to compute: local, ray (this machine), ray:ADDRESS (a cluster).",
            metavar="PLACE",
        ),
    ] = None
    assignments: Annotated[
        list[str] | None,
        Parameter(
            name="--set",
            help="Set a key of ranktilt.toml for this command, such as statistics.seed=1, or a "
            "training argument, such as epochs=3.",
            metavar="KEY=VALUE",
        ),
    ] = None
    quiet: Annotated[bool, Parameter(help="Print no progress and no notes.")] = False
    debug: Annotated[bool, Parameter(help="Show the traceback of errors.")] = False


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The configuration and the machine of the running command."""

    configuration: Configuration = field(default_factory=Configuration)
    """The configuration of the project."""
    machine: MachineSettings = field(default_factory=MachineSettings)
    """Device, threads, memory and cluster."""
    training: Mapping[str, str] = field(default_factory=dict)
    """Arguments of a training, by name, as they were typed: keys of ``--set`` without a section."""
    is_device_typed: bool = False
    """Whether the device comes from the command line, and so wins over that of [llm.NAME]."""
    assigned_statistics: frozenset[str] = frozenset()
    """Keys of [statistics] that ``--set`` gives, which win over a preset."""


COMPUTING = frozenset(
    [
        "audit",
        "check",
        "cite",
        "demo",
        "explain",
        "generate",
        "judge",
        "mitigate",
        "pairwise",
        "rank",
        "train",
    ]
)
"""Commands whose work may run on a cluster."""
READERS: Mapping[str, Sequence[str]] = {
    "statistics.correction": (
        "audit",
        "cite",
        "compare",
        "explain",
        "judge",
        "mitigate",
        "pairwise",
        "tools replay-log",
        "train retriever",
    ),
    "statistics.margin": ("audit", "mitigate", "pairwise", "train retriever"),
    "statistics.missing": ("audit",),
    "statistics.resamples": (
        "audit",
        "cite",
        "compare",
        "gate",
        "judge",
        "mitigate",
        "pairwise",
        "tools replay-log",
        "train retriever",
        "train study",
    ),
    "statistics.rounding": ("audit",),
    "statistics.seed": (
        "audit",
        "check",
        "cite",
        "compare",
        "explain",
        "gate",
        "judge",
        "mitigate",
        "pairwise",
        "tools replay-log",
        "train retriever",
        "train study",
    ),
    "statistics.test": ("audit", "mitigate", "train retriever"),
    "statistics.ties": ("audit", "mitigate", "train retriever", "train study"),
    "check": ("audit", "check"),
    "check.equivalence": ("check",),
    "mitigate": ("mitigate",),
}
"""Commands that read each key of the configuration, or each key of a section that is not named.

``tools doctor`` shows all of them, and every command may read [machine].
"""
_settings: ContextVar[Settings] = ContextVar("settings", default=Settings())  # noqa: B039 - frozen
"""Settings of the running command."""


def settings() -> Settings:
    """Return the settings of the running command."""
    return _settings.get()


@contextmanager
def in_force(options: MachineOptions, path: Sequence[str]) -> Iterator[None]:
    """Let a command run with its machine options and the working folder's configuration.

    Parameters
    ----------
    options : MachineOptions
        What was typed before or after the command.
    path : sequence of str
        The command, such as ``("data", "load")``.

    Raises
    ------
    UserError
        If the configuration cannot be read, unless the command is help or doctor; for a key of
        ``--set`` that the command does not read.
    """
    with reporting(quiet=options.quiet):
        verb = path[0] if path else ""
        try:
            current = _read(options)
        except UserError:
            # Help must work with a broken file, and doctor itself says what is wrong with it.
            runs_without_file = verb.startswith("--") or "doctor" in path
            if not runs_without_file or _is_file_readable():
                raise
            current = Settings()
        _require_read(options, path)
        token = _settings.set(current)
        try:
            machine = _machine_in_force(
                current, computes=verb in COMPUTING, typed_executor=options.executor
            )
            with machine:
                yield
        finally:
            _settings.reset(token)


def _require_read(options: MachineOptions, path: Sequence[str]) -> None:
    """Refuse keys of ``--set`` that the command does not read: they would change nothing.

    Keys with a dot belong to a section; those without are arguments of a training.
    """
    command = " ".join(path)
    for text in options.assignments or ():
        key = text.partition("=")[0].strip().replace("-", "_")
        if "." not in key:
            if path[:1] != ("train",):
                raise UserError(
                    f"--set {key}: expected a section too, such as statistics.seed; only training "
                    "arguments (ranktilt train) have no section"
                )
            continue
        readers = _readers(key)
        if readers is not None and command not in (*readers, "tools doctor"):
            do = "do" if len(readers) > 1 else "does"
            raise UserError(
                f"--set {key}: ranktilt {command} does not read it; {', '.join(readers)} {do}"
            )


def _readers(key: str) -> Sequence[str] | None:
    """Return the commands that read a key, such as ``statistics.seed``; None for all commands."""
    return READERS.get(key, READERS.get(key.partition(".")[0]))


def _is_file_readable() -> bool:
    """Tell whether the configuration file can be read, so that only ``--set`` can be at fault."""
    try:
        read_configuration(configuration_file())
    except UserError:
        return False
    return True


def configuration_file() -> Path | None:
    """Return the configuration file of the working folder; None where there is none.

    The working folder itself may have been deleted.
    """
    try:
        return find_configuration(Path.cwd())
    except FileNotFoundError:
        return None


def _read(options: MachineOptions) -> Settings:
    """Read the configuration, with the keys of ``--set`` and the typed options of the machine."""
    keys = _assignments(options.assignments or ())
    training = {name: text for name, text in keys.items() if "." not in name}
    keys_of_sections = {name: text for name, text in keys.items() if "." in name}
    configuration = read_configuration(configuration_file(), keys_of_sections)
    machine = configuration.machine
    for name in ("device", "threads", "memory", "executor"):
        value = getattr(options, name)
        if value is not None:
            machine = replace(machine, **{name: value})
    section = "statistics."
    assigned = {name.removeprefix(section) for name in keys_of_sections if name.startswith(section)}
    return Settings(
        configuration=configuration,
        machine=machine,
        training=training,
        is_device_typed=options.device is not None or "machine.device" in keys_of_sections,
        assigned_statistics=frozenset(assigned),
    )


def _assignments(texts: Sequence[str]) -> dict[str, str]:
    """Read ``KEY=VALUE`` texts; refuse a key that comes twice."""
    values: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        name = key.strip().replace("-", "_")
        if not name or not equals:
            raise UserError(f"--set expects KEY=VALUE, such as statistics.seed=1; got {text!r}")
        if value.strip().casefold() in ("", "null"):
            raise UserError(
                f"--set {name}: expected a value; omit it to leave the setting unchanged"
            )
        if name in values:
            raise UserError(f"--set {name} is given twice: keep one of them")
        values[name] = value.strip()
    return values


def assignable_keys(name: str, path: Sequence[str]) -> list[str]:
    """Return the keys of ``--set`` with a name that a command reads, such as ``statistics.seed``.

    `path` is the command, such as ``("data", "load")``.
    """
    from ranktilt.data.faults.check_limits import CheckLimits
    from ranktilt.training.options import LoraTraining, RerankerTraining, RetrieverTraining

    verb = path[0] if path else ""
    if verb == "train":
        kinds = (RerankerTraining, RetrieverTraining, LoraTraining)
        return [name] if any(name in _names(kind) for kind in kinds) else []
    sections = {
        "statistics": StatisticsSettings,
        "check": CheckLimits,
        "mitigate": MitigateSettings,
    }
    return [
        f"{section}.{name}"
        for section, kind in sections.items()
        if name in _names(kind) and " ".join(path) in (_readers(f"{section}.{name}") or ())
    ]


def model_keys() -> list[str]:
    """Return the options that the text of some language model takes."""
    from ranktilt.llm.base import KINDS
    from ranktilt.llm.spec import option_names

    names: list[str] = []
    for kind in KINDS:
        names += option_names(kind)
    return names


def _names(kind: type) -> list[str]:
    """Return the names of the fields of a class."""
    return [field.name for field in fields(kind)]


@contextmanager
def _machine_in_force(
    current: Settings, *, computes: bool, typed_executor: str | None
) -> Iterator[None]:
    """Compute with the threads, the memory and the cluster of the settings, while this is open.

    Parameters
    ----------
    current : Settings
        The settings.
    computes : bool
        Whether the command may run on a cluster (`COMPUTING`).
    typed_executor : str or None
        The value of ``--executor``, which commands that may not run there refuse.
    """
    from ranktilt.parallel.memory_limits import MemoryLimits, limit_memory, read_size

    machine = current.machine
    if typed_executor is not None and not computes:
        raise UserError(
            "--executor: this command computes nothing that could run elsewhere; omit it"
        )
    # Libraries read their thread counts from the environment when they are imported.
    if machine.threads is not None:
        os.environ.update(dict.fromkeys(_THREAD_VARIABLES, str(machine.threads)))
    memory = None if machine.memory is None else read_size(machine.memory)
    with limit_memory(MemoryLimits(memory=memory)):
        if machine.executor is None or not computes:
            yield
            return
        from ranktilt.parallel.run_on import run_on

        with run_on(machine.executor):
            yield
