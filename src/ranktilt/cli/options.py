"""Options that several verbs share, and how their texts become rankers, models and labels."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from cyclopts import Parameter
from cyclopts.validators import Number

from ranktilt.cli import completion
from ranktilt.cli.app import (
    INPUT,
    MODEL,
    OUTPUT,
    QUESTION,
    SELDOM,
    STATISTICS,
    share,
    whole_number,
)
from ranktilt.cli.notes import note, note_once, say
from ranktilt.cli.settings import settings
from ranktilt.errors import UserError, unknown
from ranktilt.llm.server import base_url

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.data.label_file import LabelFile
    from ranktilt.data.run import Run
    from ranktilt.llm.spec import ModelSpec
    from ranktilt.presets import Preset as PresetOfPaper
    from ranktilt.rankers.base import Ranker
    from ranktilt.spec import Stage

Formats = Literal["table", "markdown", "csv", "latex", "html", "json"]
"""How a result is printed, the same for every verb."""
Fields = Literal["title+text", "text", "title"]
Pairs = list[tuple[str, str]]

AT_LEAST_ONE = Number(gte=1)
SHARE = Number(gte=0, lte=1)
NOT_NEGATIVE = Number(gte=0)


def _require_input_name(_kind: object, value: object) -> None:
    """Refuse an option where a file is expected; a lone hyphen is standard input."""
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str | Path) and str(text).startswith("--"):
            raise UserError(f"expected a file or -, got the option {text}")


FILE_OR_STDIN = Parameter(allow_leading_hyphen=True, validator=_require_input_name)
"""For options that take a file, or - for standard input."""

Rankers = Annotated[
    list[str] | None,
    Parameter(
        alias="-r",
        help='A ranker, such as bm25, "bm25(k1=0.9,b=0.4)@100", dense:minilm; for an audit also '
        "called NAME as NAME=SPEC.",
        metavar="SPEC",
        group=INPUT,
        completer=completion.rankers,
    ),
]
Measures = Annotated[
    list[str] | None,
    Parameter(
        alias="-m",
        help="A measure, such as nDCG@3; several may be given.",
        metavar="MEASURE",
        group=QUESTION,
        completer=completion.measures,
    ),
]
Preset = Annotated[
    str | None,
    Parameter(
        help="Compute as a paper did: dai, wang or askari; explicit options override it.",
        metavar="NAME",
        group=QUESTION,
        completer=completion.presets,
    ),
]
Card = Annotated[
    bool,
    Parameter(help="Add the question card: five questions side by side.", group=QUESTION),
]
Controls = Annotated[
    bool,
    Parameter(
        help="Add controls, such as matched lengths and boilerplate removed.", group=QUESTION
    ),
]
Reference = Annotated[
    str | None,
    Parameter(
        help="The group that others are compared with (default: human).",
        metavar="GROUP",
        group=QUESTION,
    ),
]
Folder = Annotated[
    Path, Parameter(name="DIR", help="A collection: BEIR, Cocktail or the papers' layout.")
]
AnyCollection = Annotated[
    Path,
    Parameter(name="DIR", help="A collection: a folder, hub:OWNER/NAME or irds:ID."),
]
CollectionOrFile = Annotated[
    Path,
    Parameter(
        name="DIR",
        allow_leading_hyphen=True,
        help="A collection, hub:OWNER/NAME or irds:ID; or any file.",
    ),
]
Destination = Annotated[
    Path,
    Parameter(
        name="--output",
        alias="-o",
        help="Folder for the collection.",
        metavar="DIR",
        group=OUTPUT,
    ),
]
Qrels = Annotated[
    str | None,
    FILE_OR_STDIN,
    Parameter(
        help="Judgments to use instead, such as qrels, CSV or FILE:grade=rating; none for none.",
        metavar="FILE",
        group=INPUT,
    ),
]
Split = Annotated[
    str | None,
    Parameter(
        help="Judgments in qrels/<split>.tsv (default: test, or the only one).",
        metavar="SPLIT",
        group=INPUT,
    ),
]
IgnoreUnknown = Annotated[
    bool,
    Parameter(
        help="Allow judgments of documents that the collection lacks; they count in no group.",
        group=SELDOM,
    ),
]
LanguageModel = Annotated[
    str | None,
    Parameter(
        help='Model: openai:NAME, "openai:NAME(temperature=0,concurrency=16)", '
        "transformers:FOLDER, or a name of ranktilt.toml.",
        metavar="MODEL",
        group=MODEL,
        completer=completion.language_models,
    ),
]
Batch = Annotated[
    bool,
    Parameter(
        help="Ask through the server's batches: within 24 hours, at half the price.", group=MODEL
    ),
]
Price = Annotated[
    str | None,
    Parameter(
        help="Price per million input and output tokens, for --dry-run.",
        metavar="IN,OUT",
        group=MODEL,
    ),
]
DryRun = Annotated[
    bool,
    Parameter(help="Send nothing; show requests, tokens, price and time.", group=MODEL),
]
MaxFailures = Annotated[
    float | None,
    Parameter(
        help="Share of queries or answers allowed to fail, 0 to 1, such as 0.1 or 10%.",
        metavar="X",
        validator=SHARE,
        converter=share,
        group=SELDOM,
    ),
]
Text = Annotated[Fields | None, Parameter(help="Part of a document to read.", group=MODEL)]
ScoreOrder = Annotated[
    Literal["score", "ascending", "rank"] | None,
    Parameter(
        help="Order runs by falling scores (default), by rising scores (distances), or by ranks.",
        group=SELDOM,
    ),
]
RowsPerFile = Annotated[
    int | None,
    Parameter(
        help="Save documents as Parquet files of N rows each.",
        metavar="N",
        validator=AT_LEAST_ONE,
        converter=whole_number,
        group=SELDOM,
    ),
]
Protected = Annotated[
    str | None,
    Parameter(
        help="Protected group, A|B or non-A (default: the smaller of two).",
        metavar="GROUP",
        group=QUESTION,
    ),
]


_NAMED_TEXT = re.compile(r"(?P<name>[^:(@>=/\\]+)=(?P<text>.+)", re.DOTALL)
"""A name and its text; the options of a text begin with a parenthesis or a colon."""


@Parameter(name="*", group=STATISTICS)
@dataclass(frozen=True, kw_only=True)
class StatisticsOptions:
    """Options of how tilts are tested; resamples, seed and correction are keys of ranktilt.toml."""

    ties: Annotated[
        Literal["expected", "trec_eval"] | None,
        Parameter(
            help="Ties: expected value over all orders (default), or trec_eval's order by id."
        ),
    ] = None
    primary: Annotated[
        str | None,
        Parameter(
            help="The question that verdicts answer (default: the deepest nDCG, or else the first "
            "-m; without judgments HeadToHead of twins, or Share@10).",
            metavar="MEASURE",
            group=SELDOM,
        ),
    ] = None
    margin: Annotated[
        str | None,
        Parameter(
            help="Tilts within this margin count as level: points, or '0.5 ranks' (default: 5).",
            metavar="X",
        ),
    ] = None

    def keywords(self, preset: str | None = None) -> dict[str, Any]:
        """Return the keywords of an audit.

        Options win over ``--set``, a preset and the file, in this order.
        """
        from ranktilt.measures.margin import DEFAULT_MARGIN, read_margin
        from ranktilt.presets import preset as preset_named

        statistics = settings().configuration.statistics
        assigned = settings().assigned_statistics
        typed = {} if self.ties is None else {"ties": self.ties}
        margin, name = self.margin, "--margin"
        if margin is None and statistics.margin is not None:
            margin, name = str(statistics.margin), "statistics.margin"
        return {
            **sampling_of_tests(),
            **statistics.of_audits,
            **({} if preset is None else preset_named(preset).statistics),
            **{name: value for name, value in statistics.of_audits.items() if name in assigned},
            **typed,
            "primary": self.primary,
            "margin": DEFAULT_MARGIN if margin is None else read_margin(margin, name),
        }

    def preset_changes(self, preset: str) -> list[str]:
        """Return the keywords that differ from the preset's, such as ``ties = expected``."""
        from ranktilt.presets import preset as preset_named

        keywords = self.keywords(preset)
        usual = preset_named(preset).statistics
        return [
            f"{name} = {keywords[name]}" for name, value in usual.items() if keywords[name] != value
        ]


def sampling_of_tests() -> dict[str, Any]:
    """Return resamples, seed and correction, as ranktilt.toml or ``--set`` has them."""
    statistics = settings().configuration.statistics
    return {
        "resamples": statistics.resamples,
        "seed": statistics.seed,
        "correction": statistics.correction,
    }


def resampling() -> dict[str, Any]:
    """Return resamples and seed, for what has no p values to correct."""
    statistics = settings().configuration.statistics
    return {"resamples": statistics.resamples, "seed": statistics.seed}


@Parameter(name="*", group=INPUT)
@dataclass(frozen=True, kw_only=True)
class LabelOptions:
    """Labels of documents, how their file is read, and which group comes first."""

    groups: Annotated[
        str | None,
        FILE_OR_STDIN,
        Parameter(
            help="Labels of documents: doc_id, source[, origin]; other columns as "
            "FILE:id=url,source=is_ai; or a name of ranktilt.toml.",
            metavar="FILE",
        ),
    ] = None
    rest: Annotated[
        str | None,
        Parameter(
            help="Label of every document that --groups does not name.",
            metavar="LABEL",
            group=SELDOM,
        ),
    ] = None
    name: Annotated[
        list[str] | None,
        Parameter(
            help="Names for values of the labels, such as 1=ai,0=human.", metavar="VALUE=NAME"
        ),
    ] = None
    reference: Reference = None

    @property
    def labels(self) -> LabelFile | None:
        """The label file; None where none is named."""
        from ranktilt.data.label_file import LabelFile

        if self.groups is None:
            if self.rest is not None:
                raise UserError("--rest needs a label file: --groups FILE")
            return None
        if self.rest is not None and not self.rest.strip():
            raise UserError(
                "--rest expects a label for all other documents, such as --rest other; got none"
            )
        configured = _configured_labels(self.groups)
        labels = LabelFile.from_text(self.groups) if configured is None else configured
        names = {**labels.names, **self.label_names}
        return replace(labels, names=names, rest=self.rest or labels.rest)

    @property
    def label_names(self) -> dict[str, str]:
        """Names by value of the labels."""
        texts: list[str] = []
        for text in self.name or ():
            texts += _several_names(text)
        pairs = [text.partition("=") for text in texts]
        names = {value: name.strip() for value, _, name in pairs}
        if not all(map(str.strip, names)) or not all(names.values()) or len(names) < len(pairs):
            typed = ", ".join(self.name or ())
            raise UserError(f"--name expects a value and its name, such as 1=ai; got {typed}")
        return names

    def labelled(self, collection: Collection, by: str) -> Collection:
        """Give documents the labels of the file, or the collection's own labels their names."""
        from ranktilt.data.labels import with_labels, with_names

        if self.labels is not None:
            return with_labels(collection, self.labels, by=by)
        return with_names(collection, self.label_names, by=by) if self.name else collection

    def reference_first(
        self, collection: Collection, by: str | None, pairs: Pairs | None
    ) -> Pairs | None:
        """Return the pairs to compare, the reference group first in each."""
        from ranktilt.auditing.groups import grouped_pairs

        groups, chosen = grouped_pairs(collection, by, pairs, fewest=1)
        if self.reference is None:
            return pairs
        name = groups.names[groups.number(self.reference)]
        return [(b, a) if b == name else (a, b) for a, b in chosen]


def _several_names(text: str) -> list[str]:
    """Take ``0=human,1=ai`` apart; a name with a comma stays whole."""
    parts = text.split(",")
    return parts if all("=" in part for part in parts) else [text]


def _configured_labels(name: str) -> LabelFile | None:
    """Return the label file of that name in ranktilt.toml; None for a name of a file."""
    from ranktilt.data.label_file import LabelFile

    configuration = settings().configuration
    section = configuration.labels.get(name)
    if section is None:
        is_plain = not os.path.exists(name) and not re.search(r"[./:\\]", name)
        if is_plain and configuration.labels:
            raise unknown(
                f"label file, and name in {configuration.path},", name, configuration.labels
            )
        return None
    if os.path.isfile(name):
        note_once(f"--groups {name}: the file is read, not [labels.{name}] of {configuration.path}")
        return None
    columns = {"doc_id" if key == "id" else key: column for key, column in section.columns.items()}
    return LabelFile(
        path=section.file, columns=columns, names=dict(section.names), rest=section.rest
    )


def language_model(text: str) -> ModelSpec:
    """Read a model's text or its name in ranktilt.toml; say where texts go if the file decides."""
    from ranktilt.llm.spec import read_model

    return read_model(language_model_text(text))


def language_model_text(text: str) -> str:
    """Return the text of a model that ranktilt.toml names; any other text as it is.

    Options in parentheses behind the name win over the file, and so does a typed ``--device``. An
    address that a file names is printed before anything is sent there, with the file and with the
    variable whose key goes along: the file may be somebody else's.
    """
    from ranktilt.llm.base import KINDS
    from ranktilt.llm.server import VARIABLE
    from ranktilt.llm.spec import read_model
    from ranktilt.spec import parse_stages

    configuration = settings().configuration
    if not configuration.llm:
        return text
    stages = parse_stages(text)
    typed = stages[0]
    if typed.name in KINDS:
        if typed.name in configuration.llm:
            note(f"--llm {text}: {typed.name} is a kind of model, not [llm.{typed.name}]")
        return text
    section = configuration.llm.get(typed.name)
    if section is None:
        kinds = [f"{kind}:…" for kind in KINDS]
        raise unknown("language model", typed.name, [*configuration.llm, *kinds])
    if len(stages) > 1 or typed.argument is not None or typed.k is not None:
        raise UserError(
            f"--llm {text}: expected a name of {configuration.path}, such as {typed.name}, with "
            f"options or none: {typed.name}(temperature=0)"
        )
    file_text = _text_of_section(typed.name, section)
    spec = read_model(file_text)
    address = spec.client.get("base_url")
    if address is not None and "base_url" not in typed.options:
        key = f", with the key in {VARIABLE}" if os.environ.get(VARIABLE) else ""
        setting = f"base_url of [llm.{typed.name}] in {configuration.path}"
        say(f"asks {base_url(address)}{key} ({setting})")
    (model,) = parse_stages(file_text)
    options = {**model.options, **typed.options}
    if settings().is_device_typed and "device" not in typed.options:
        options.pop("device", None)
    return str(replace(model, options=options))


def _text_of_section(name: str, section: Mapping[str, Any]) -> str:
    """Return the text of a model of ranktilt.toml: its ``model`` with the other keys as options."""
    from ranktilt.llm.spec import read_model
    from ranktilt.spec import parse_stages

    path = settings().configuration.path
    try:
        read_model(str(section["model"]))
        (model,) = parse_stages(str(section["model"]))
        options = {
            option: _option_text(value) for option, value in section.items() if option != "model"
        }
        for option in options:
            if option in model.options:
                raise UserError(f"{option} is given twice, as a key and in model")
        text = str(replace(model, options={**model.options, **options}))
        read_model(text)
    except UserError as error:
        raise UserError(f"{path}: [llm.{name}]: {error}") from error
    return text


def _option_text(value: object) -> str:
    """Return a value of an option as it is typed."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def first_typed(**values: Any) -> str | None:
    """Return the flag of the first option that has a value, such as ``--max-tilt``."""
    for name, value in values.items():
        if value not in (None, False, []):
            return f"--{name.replace('_', '-')}"
    return None


def require_answers(specs: Iterable[Any], max_failures: float | None) -> None:
    """Refuse runs with a greater share of unreadable answers of language models than allowed.

    Runs are given by their specs; None allows every share.
    """
    from ranktilt.data.run import stage_facts
    from ranktilt.rankers.llm.answers import require_answers as require

    if max_failures is None:
        return
    for spec in specs:
        for stage, answers in stage_facts(spec, "llm_answers"):
            require(stage, answers, max_failures, "--max-failures")


def load_texts(folder: Path, split: str | None) -> Collection:
    """Load a collection for its texts.

    It needs no judgments, and those that it has may name unknown documents.
    """
    from ranktilt.data.load import NO_QRELS, load

    qrels = NO_QRELS if without_judgments(folder, split) else None
    return load(folder, split=split, qrels=qrels, ignore_unknown=True)


def without_judgments(folder: Path, split: str | None) -> bool:
    """Tell whether a folder holds no judgments, where none are asked for.

    A name such as ``hub:…`` is no folder.
    """
    from ranktilt.data.load import splits

    return split is None and os.path.isdir(folder) and not splits(folder)


@dataclass(frozen=True, kw_only=True)
class NamedText:
    """Text of a ranker or file of a run, and the name that its user gave it."""

    text: str
    name: str | None = None

    @classmethod
    def from_text(cls, text: str | Path) -> Self:
        """Read ``NAME=SPEC`` or ``NAME=FILE``; a file of the whole name is that file."""
        match = None if os.path.exists(text) else _NAMED_TEXT.fullmatch(str(text))
        if match is None:
            return cls(text=str(text))
        return cls(text=match["text"], name=match["name"].strip())


def rank_with(
    rankers: Sequence[Ranker], collection: Collection, names: Sequence[str | None] = ()
) -> list[Run]:
    """Rank with each ranker, once all are known to be able to; `names` are the users' for runs."""
    from ranktilt.data.run import named_apart
    from ranktilt.rankers.candidates import check_reranked

    for ranker in rankers:
        ranker.check()
    runs = named_apart(check_reranked(ranker.rank(collection), None, ranker) for ranker in rankers)
    return with_names(runs, names) if names else runs


def with_names(runs: Sequence[Run], names: Sequence[str | None]) -> list[Run]:
    """Give runs the names of their user; None keeps a run's name."""
    renamed_runs = []
    for run, name in zip(runs, names, strict=True):
        renamed_runs.append(run if name is None else replace(run, spec={**run.spec, "alias": name}))
    return renamed_runs


def read_rankers(specs: Sequence[str], preset: str | None = None, **defaults: Any) -> list[Ranker]:
    """Read rankers, each with the options of the command line that it has and does not set itself.

    The options of a preset come after those, and its recipe replaces the ranker's name.
    """
    from ranktilt.presets import Preset as Presets
    from ranktilt.presets import preset as preset_named
    from ranktilt.registry import ranker_of_stages, ranker_stages
    from ranktilt.spec import parse_stages

    defaults.setdefault("device", settings().machine.device)
    stage_defaults = _StageDefaults(
        typed={name: _option_text(value) for name, value in defaults.items() if value is not None},
        preset=Presets(source="") if preset is None else preset_named(preset),
        preset_name=preset or "",
    )
    rankers = []
    for spec in specs:
        stages = ranker_stages(spec)
        for typed_stage, stage in zip(parse_stages(spec), stages, strict=True):
            if typed_stage.name == stage.argument:
                note_once(f"{typed_stage.name}: taken as {stage.name}:{stage.argument}")
        rankers.append(ranker_of_stages([stage_defaults.equip(stage) for stage in stages]))
    return rankers


@dataclass(frozen=True, kw_only=True)
class _StageDefaults:
    """Options for the stages of rankers that do not set them."""

    typed: Mapping[str, str]
    """Options of the command line."""
    preset: PresetOfPaper
    preset_name: str

    def equip(self, stage: Stage) -> Stage:
        """Return a stage with the options that its ranker has, and with the preset's recipe."""
        from ranktilt.registry import ranker_class

        names = {field.name for field in fields(ranker_class(stage.name))}  # type: ignore[arg-type]
        preset_options = self.preset.options.get(stage.name, {})
        for option in preset_options:
            if option not in names:
                kind = f"option of {stage.name} in preset {self.preset_name!r}"
                raise unknown(kind, option, sorted(names))
        text = {} if self.preset.text is None else {"text": self.preset.text}
        usual = {**text, **preset_options, **self.typed}
        options = {name: value for name, value in usual.items() if name in names}
        name, argument = stage.name, stage.argument
        if argument is None and name in self.preset.recipes:
            name, _, recipe = self.preset.recipes[name].partition(":")
            argument = recipe or None
        return replace(stage, name=name, argument=argument, options={**options, **stage.options})


def read_pairs(texts: Sequence[str] | None) -> list[tuple[str, str]] | None:
    """Read pairs of groups, ``A,B`` each; None where none are named."""
    if not texts:
        return None
    pairs = []
    for text in texts:
        a, comma, b = text.partition(",")
        if not comma or not a.strip() or not b.strip():
            raise UserError(f"--pair expects two groups, such as human,llm; got {text!r}")
        pairs.append((a.strip(), b.strip()))
    return pairs


def read_price(text: str | None, *, dry_run: bool) -> tuple[float, float] | None:
    """Read the price of a million tokens, ``IN,OUT``; None where none is named."""
    if text is None:
        return None
    if not dry_run:
        raise UserError("--price needs --dry-run")
    try:
        input_price, output_price = map(float, text.split(","))
    except ValueError as error:
        raise UserError(
            "--price expects two numbers, per million input and output tokens, such as 0.15,0.60; "
            f"got {text!r}"
        ) from error
    return input_price, output_price
