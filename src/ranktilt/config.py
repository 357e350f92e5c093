"""The configuration file, ``ranktilt.toml``: models, labels, machine and statistics by name.

Only the command line reads it: nobody expects a library to read files of the working folder.
A file may lie in a folder of somebody else. So it may neither name code nor hold a key, and it is
refused if another user owns it, or everybody may write it.
"""

from __future__ import annotations

import math
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_type_hints

import msgspec

from ranktilt.errors import UserError, unknown_name
from ranktilt.sizes import POINTS, read_points

EXAMPLE = """\
[llm.judge]                        # ranktilt judge DIR --llm judge
model = "openai:MODEL"
temperature = 0
base_url = "http://localhost:8000/v1"

[labels.team]                      # ranktilt audit --run run.trec --groups team
file = "labels.csv"                # from the file's own folder
columns = {id = "url", source = "is_ai"}
names = {1 = "ai", 0 = "human"}

[statistics]
resamples = 10000
margin = "5"
"""
"""A configuration file, as help shows it."""
FILE, PROJECT_FILE = "ranktilt.toml", "pyproject.toml"
"""Names of the files that hold a configuration."""
_PROJECT_SECTION = "tool.ranktilt"
"""Section of a project's file with the configuration."""
_SETTABLE_SECTIONS = ("machine", "statistics", "check", "mitigate")
"""Sections whose keys ``--set`` takes."""
_MOST_BYTES = 1_000_000
"""Largest size of a configuration file."""
_SECRET_NAME = re.compile(
    r"(api|access|secret|private)[_-]?key|passw|secret|bearer|authorization|credential"
    r"|(^|[_-])(key|token)$",
    re.I,
)
"""Names of options that hold a secret: a key or a password.

Secrets belong in the environment, because files are copied and committed.
"""
_SECRET_PREFIX = re.compile(
    r"(?<![A-Za-z0-9])((sk|pk)[-_]|(hf|ghp|gho)_|(xox[abp]|glpat)-|AKIA|AIza|Bearer\s)"
    r"[A-Za-z0-9_\-]{8,}"
)
"""Beginnings of the keys of services, such as ``sk-`` of OpenAI's and ``hf_`` of Hugging Face's."""
_NAME_BEFORE_EQUALS = re.compile(r"([\w-]+)\s*=")
"""Name before an equals sign."""
_CODE_NAME = re.compile(r"engine:.*|[A-Za-z_][\w.]*\.[\w.]*:[A-Za-z_]\w*")
"""Name of code: ``engine:MODULE:FUNCTION`` or ``package.module:function``."""
_TYPEABLE_NAME = re.compile(r"[A-Za-z_][\w.-]*")
"""Name that a user can type on a command line."""
_LONG_WORD = 24
"""Fewest characters of a word that may be a random key."""
_FEWEST_DIGIT_RUNS = 4
"""Fewest runs of digits between the letters of such a word."""
_NAME_SEPARATORS = re.compile(r"[-._]")
"""Characters between the parts of a model's name, such as ``Llama-3.3-70B-Instruct-Q4_K_M``."""
_TYPE_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "a section",
}
"""Words for msgspec's names of types."""
Section = TypeVar("Section")
"""Dataclass that a section is read into."""


@dataclass(frozen=True, kw_only=True)
class MachineSettings:
    """Device, threads, memory and executor."""

    device: str | None = None
    """Device of models, such as ``cpu`` or ``cuda:0``."""
    threads: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Processor threads."""
    memory: str | None = None
    """Memory limit of exact search and random labels, such as ``1GB``."""
    executor: str | None = None
    """Where to compute: ``local`` (in this process), ``ray`` or ``ray:ADDRESS`` (on a cluster)."""


@dataclass(frozen=True, kw_only=True)
class StatisticsSettings:
    """How tilts are measured and tested."""

    resamples: Annotated[int, msgspec.Meta(ge=100, le=10_000_000)] = 10_000
    """Bootstrap resamples."""
    seed: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] = 0
    """Random seed."""
    correction: Literal["holm", "bonferroni"] = "holm"
    """Correction of p values for multiple tests."""
    margin: str | float | None = None
    """Tilts within this margin count as level: points, or ``0.5 ranks``."""
    ties: Literal["expected", "trec_eval"] | None = None
    """Value of tied documents: its mean over all their orders, or in trec_eval's order by id."""
    rounding: Literal["none", "paper"] | None = None
    """Rounding of scores before ties are looked for: none, or that of the papers."""
    missing: Literal["zero", "exclude"] | None = None
    """How queries without results count: as 0, or not at all."""
    test: Literal["interval", "t"] | None = None
    """Test of a tilt: by its bootstrap interval, or a t test."""

    @property
    def audit_options(self) -> dict[str, Any]:
        """Options of `ranktilt.audit` that the file sets and no other command has, by name."""
        names = ("ties", "rounding", "missing", "test")
        values = {name: getattr(self, name) for name in names}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class MitigateSettings:
    """Settings of ``ranktilt mitigate`` that are no options of the command."""

    always: bool = False
    """Whether to try corrections of a ranker even if it is not shown to be tilted.

    A correction is then saved even if it is not shown to level the ranker.
    """


@dataclass(frozen=True, kw_only=True)
class LabelSettings:
    """A label file by name: ``--groups NAME``."""

    file: str
    """Path of the file, from the configuration's folder."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Names of its columns if they differ, such as ``id = "url"``."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Names of its values, such as ``1 = "ai"``."""
    rest: str | None = None
    """Label of every document that the file does not name."""


@dataclass(frozen=True, kw_only=True)
class Configuration:
    """The settings of a configuration file; without a file, the defaults."""

    path: Path | None = None
    """The file; None if there is none."""
    llm: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Language models by name: for each, ``model`` and its options."""
    labels: Mapping[str, LabelSettings] = field(default_factory=dict)
    """Label files by name."""
    machine: MachineSettings = field(default_factory=MachineSettings)
    """Device, threads, memory and executor."""
    statistics: StatisticsSettings = field(default_factory=StatisticsSettings)
    """How tilts are measured and tested."""
    check: Mapping[str, Any] = field(default_factory=dict)
    """Limits of ``ranktilt check``, by name."""
    mitigate: MitigateSettings = field(default_factory=MitigateSettings)
    """Settings of ``ranktilt mitigate`` that are no options of the command."""
    set_keys: tuple[str, ...] = ()
    """Keys that the file, or ``--set``, sets, such as ``statistics.seed``."""


def find_configuration(folder: Path) -> Path | None:
    """Return the configuration file of a folder or of the nearest folder above.

    None if there is none; `UserError` if a folder has two.
    """
    for parent in (folder, *folder.parents):
        file, project = parent / FILE, parent / PROJECT_FILE
        try:
            has_file, has_section = _is_there(file), _has_section(project)
        except PermissionError:  # a folder that the user may not look into has no configuration
            continue
        if has_file and has_section:
            raise UserError(
                f"{file} and [{_PROJECT_SECTION}] in {project} both set the configuration: "
                "keep one of them"
            )
        if has_file or has_section:
            return file if has_file else project
    return None


def _is_there(path: Path) -> bool:
    """Return whether a configuration file exists.

    A folder, a pipe or a broken link with its name is refused.
    """
    if not os.path.lexists(path):
        return False
    if not path.is_file():
        raise UserError(f"{path}: expected a configuration file, got something else")
    return True


def _has_section(path: Path) -> bool:
    """Return whether a pyproject.toml has a section of RankTilt; False for a very large file."""
    if not path.is_file() or path.stat().st_size > _MOST_BYTES:
        return False
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError):
        # A broken file with a section of RankTilt is read again later, with an error for its
        # author. Any other broken file is not RankTilt's business.
        section = re.escape(_PROJECT_SECTION)
        return re.search(rf"^\[{section}[.\]]", text, re.MULTILINE) is not None
    return isinstance(table.get("tool"), dict) and "ranktilt" in table["tool"]


def read_configuration(
    path: Path | None, assignments: Mapping[str, str] | None = None
) -> Configuration:
    """Read a configuration file, in which single keys may be replaced.

    Parameters
    ----------
    path : Path or None
        The file; None for the defaults.
    assignments : mapping of str to str, optional
        Values by key, such as ``{"statistics.seed": "1"}``, which win over the file.

    Raises
    ------
    UserError
        If the file cannot be read, belongs to another user, may be written by everybody, names
        code, has something that looks like a key, or has an unknown key or a value of a wrong type.
    """
    table: dict[str, Any] = {}
    if path is not None:
        _require_owner(path)
        table = _read_toml(path)
        _require_harmless(path, table)
    prefix = "" if path is None else f"{path}: "  # the beginning of each error
    _require_sections(table, path, prefix)
    _assign(table, assignments or {})
    llm, labels = table.get("llm", {}), table.get("labels", {})
    _require_typeable_names([*llm, *labels], prefix)
    _require_models(llm, prefix)

    def section(name: str, kind: type[Section]) -> Section:
        return read_section(f"{prefix}[{name}]", table.get(name, {}), kind)

    return Configuration(
        path=path,
        llm=llm,
        labels=_read_labels(labels, path, prefix),
        machine=section("machine", MachineSettings),
        statistics=section("statistics", StatisticsSettings),
        check=table.get("check", {}),
        mitigate=section("mitigate", MitigateSettings),
        set_keys=tuple(_full_keys(table)),
    )


def _require_sections(table: Mapping[str, Any], path: Path | None, prefix: str) -> None:
    """Refuse unknown sections, and keys outside of any section; `prefix` begins messages."""
    kind = f"section in {path}" if path else "section"
    _require_known(kind, table, ("llm", "labels", *_SETTABLE_SECTIONS))
    for name, section in table.items():
        if not isinstance(section, dict):
            raise UserError(f"{prefix}expected a section [{name}], got {name} = {section!r}")


def _assign(table: dict[str, Any], assignments: Mapping[str, str]) -> None:
    """Set single keys of a table, such as ``statistics.seed``."""
    for key, text in assignments.items():
        section, _, name = key.partition(".")
        if section not in _SETTABLE_SECTIONS or not name:
            raise UserError(
                f"--set {key}: expected a key of [machine], [statistics], [check] or [mitigate], "
                "such as statistics.seed=1"
            )
        table.setdefault(section, {})[name] = text


def _require_typeable_names(names: Sequence[str], prefix: str) -> None:
    """Refuse names that nobody can type on a command line; `prefix` begins messages."""
    for name in names:
        if not _TYPEABLE_NAME.fullmatch(name):
            raise UserError(
                f"{prefix}{name!r} cannot be typed as a name: use only letters, digits and _"
            )


def _require_models(llm: Mapping[str, Any], prefix: str) -> None:
    """Refuse a language model without a ``model``; `prefix` begins messages."""
    for name, options in llm.items():
        if not isinstance(options, dict) or not isinstance(options.get("model"), str):
            raise UserError(f'{prefix}[llm.{name}] needs a model, such as model = "openai:MODEL"')


def _read_labels(
    tables: Mapping[str, Any], path: Path | None, prefix: str
) -> dict[str, LabelSettings]:
    """Read the settings of label files by name; their paths start in the configuration's folder.

    `prefix` begins messages.
    """
    labels = {}
    for name, table in tables.items():
        settings = read_section(f"{prefix}[labels.{name}]", table, LabelSettings)
        if path is not None:
            settings = replace(settings, file=str(path.parent / settings.file))
        labels[name] = settings
    return labels


def read_section(name: str, table: Any, kind: type[Section]) -> Section:
    """Make a dataclass of a section's keys.

    Parameters
    ----------
    name : str
        Name of the section, for errors.
    table : mapping
        Values by key. A text is read as the type of its field, such as ``"1"`` as a number.
    kind : type
        The dataclass.

    Raises
    ------
    UserError
        For an unknown key, with the nearest known one, and for a value of a wrong type.
    """
    if not isinstance(table, Mapping):
        raise UserError(f"{name}: expected a section, got {table!r}")
    known = [option.name for option in fields(kind)]  # type: ignore[arg-type]
    _require_known(f"key of {name}", table, known)
    table = {**table, **_sizes_in_points(name, table, kind)}
    try:
        return msgspec.convert(table, kind, strict=False)
    except msgspec.ValidationError as error:
        # The message ends with the place of the error: " - at `$.seed`".
        message, _, path = str(error).partition(" - at `$.")
        key = path.rstrip("`")
        subject = f"{name} {key}" if key else name
        if message.startswith("Invalid enum value"):
            value = message.removeprefix("Invalid enum value ").strip("'")
            choices = _choices(get_type_hints(kind)[key])
            raise unknown_name(f"value of {subject}", value, choices) from error
        raise UserError(f"{subject}: {_in_words(message)}") from error


def _sizes_in_points(name: str, table: Mapping[str, Any], kind: type) -> dict[str, float]:
    """Read the sizes in a section, such as ``5%``, whose fields have the unit points.

    The unit is in the annotation of a field: ``Annotated[float, msgspec.Meta(extra=…)]``.
    """
    sizes = {}
    for key, hint in get_type_hints(kind, include_extras=True).items():
        for meta in getattr(hint, "__metadata__", ()):
            if key in table and (meta.extra or {}).get("unit") == POINTS:
                largest = math.inf if meta.le is None else meta.le
                sizes[key] = read_points(table[key], f"{name} {key}", most=largest)
    return sizes


def _choices(hint: Any) -> Sequence[str]:
    """Return the choices of the type of a field: a `Literal`, or a union that has one."""
    members = get_args(hint)
    choices: list[str] = []
    for member in members:
        choices += get_args(member)
    return choices or members


def _in_words(message: str) -> str:
    """Put msgspec's message about types, ``Expected `int | null`, got `str` ``, into words."""
    message = message.replace(" | null`", "`")
    for kind, words in _TYPE_WORDS.items():
        message = message.replace(f"`{kind}`", words)
    return message[:1].lower() + message[1:]


def _require_known(kind: str, names: Mapping[str, Any], known: Sequence[str]) -> None:
    """Refuse a name that is not known; `kind` says what it names."""
    for name in names:
        if name not in known:
            raise unknown_name(kind, name, known)


def _full_keys(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield the full key of each option, such as ``statistics.seed``."""
    for section, options in table.items():
        for name in options:
            yield f"{section}.{name}"


def _require_owner(path: Path) -> None:
    """Refuse a file of another user, or that everybody may write: it could send texts away."""
    if os.name != "posix":
        return
    status = path.stat()
    if status.st_uid != os.getuid():
        raise UserError(f"{path}: not read, because it belongs to another user; copy it to use it")
    if status.st_mode & stat.S_IWOTH:
        raise UserError(f"{path}: not read, because everybody may write it: chmod o-w {path}")


def _read_toml(path: Path) -> dict[str, Any]:
    """Read a file; `UserError` if it is too large, or no TOML."""
    if path.stat().st_size > _MOST_BYTES:
        raise UserError(f"{path}: too large for a configuration: over {_MOST_BYTES:,} bytes")
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path}: cannot be read: {' '.join(str(error).split())}") from error
    if path.name == PROJECT_FILE:
        table = table["tool"]["ranktilt"]
    if not isinstance(table, dict):
        raise UserError(f"{path}: expected sections, such as [statistics]")
    return dict(table)


def _require_harmless(path: Path, table: Any, key: str = "") -> None:
    """Refuse keys and passwords, names of code, and clusters that could run code, in any value.

    `table` is the file's content or a part of it, and `key` the path of the part, with a point at
    its end.
    """
    if isinstance(table, Mapping):
        for name, value in table.items():
            _require_harmless_name(path, name, key)
            _require_harmless(path, value, f"{key}{name}.")
    elif isinstance(table, list):
        for value in table:
            _require_harmless(path, value, key)
    elif isinstance(table, str):
        _require_harmless_text(path, table, key.rstrip("."))


def _require_harmless_name(path: Path, name: str, key: str) -> None:
    """Refuse the name of an option that cannot be printed, or is that of a secret.

    `key` is the path that leads to the option, with a point at its end.
    """
    if not name.isprintable() or name != name.strip():
        raise UserError(f"{path}: {key}{name!r}: expected a key of letters, digits and _")
    # The names in [labels.NAME.columns] and [labels.NAME.names] are words of the data.
    is_data = key.startswith("labels.") and key.count(".") > 2
    if _SECRET_NAME.search(name) and not is_data:
        raise _secret_error(path, f"{key}{name}")


def _require_harmless_text(path: Path, text: str, key: str) -> None:
    """Refuse a text that cannot be printed, may be a secret, or would run as code."""
    if not text.isprintable():
        raise UserError(f"{path}: {key} contains a character that cannot be printed")
    if _looks_secret(text):
        raise _secret_error(path, key)
    if _CODE_NAME.fullmatch(text.strip()):
        raise UserError(
            f"{path}: {key} names code, which a configuration file may not do: type it instead"
        )
    if key == "machine.executor" and text.strip() not in ("local", "ray"):
        raise UserError(
            f"{path}: {key} names a cluster, which can run anything with your data: type it "
            f"instead, --executor {text}"
        )


def _looks_secret(text: str) -> bool:
    """Tell whether a text has a key or a password, or an address that may have one."""
    assigned_names = _NAME_BEFORE_EQUALS.findall(text)
    if any(map(_SECRET_NAME.search, assigned_names)) or _SECRET_PREFIX.search(text):
        return True
    _scheme, _, address = text.partition("://")
    if re.search(r"[@?#]", address):
        return True
    return any(_looks_random(word) for word in re.split(r"[\s()/,=:@\"]+", text))


def _looks_random(word: str) -> bool:
    """Tell whether a word looks random: long, with letters of both cases and scattered digits.

    Names of models are such words too. But each of their parts has its digits together, as in
    ``70B``, while a part of a key has letters between digits.
    """
    has_all_kinds = all(re.search(kind, word) for kind in ("[a-z]", "[A-Z]", "[0-9]"))
    is_scattered = _digit_run_count(word) >= _FEWEST_DIGIT_RUNS
    is_name = all(_digit_run_count(part) < 2 for part in _NAME_SEPARATORS.split(word))
    return len(word) >= _LONG_WORD and has_all_kinds and is_scattered and not is_name


def _digit_run_count(text: str) -> int:
    """Count the runs of digits in a text."""
    return len(re.findall(r"[0-9]+", text))


def _secret_error(path: Path, key: str) -> UserError:
    """Return the error for a secret in the option `key`, without its value."""
    return UserError(
        f"{path}: {key} looks like a secret: set keys in the environment, such as OPENAI_API_KEY"
    )
