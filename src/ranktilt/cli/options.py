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
from ranktilt.cli.app import INPUT, MODEL, OUTPUT, QUESTION, SELDOM, STATISTICS, whole_number
from ranktilt.cli.notes import note, note_once, say
from ranktilt.cli.settings import settings
from ranktilt.errors import UserError, unknown
from ranktilt.llm.server import base_url

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.data.label_file import LabelFile
    from ranktilt.data.run import Run
    from ranktilt.llm.spec import ModelSpec
    from ranktilt.rankers.base import Ranker

Formats = Literal["table", "markdown", "csv", "latex", "html", "json"]
"""How a result is printed, the same for every verb."""
Fields = Literal["title+text", "text", "title"]
Pairs = list[tuple[str, str]]

AT_LEAST_ONE = Number(gte=1)
SHARE = Number(gte=0, lte=1)
NOT_NEGATIVE = Number(gte=0)


def _require_input_name(_kind: object, value: object) -> None:
    """Refuse an option in the place of a file: a lone hyphen is allowed there, which is standard input."""
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
        help="Share of queries or answers allowed to fail, 0 to 1.",
        metavar="X",
        validator=SHARE,
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


_NAMED = re.compile(r"(?P<name>[^:(@>=/\\]+)=(?P<text>.+)", re.DOTALL)
"""A name and what it names; the options of a text begin with a parenthesis or a colon."""


@Parameter(name="*", group=STATISTICS)
@dataclass(frozen=True, kw_only=True)
class StatisticsOptions:
    """How tilts are tested; resamples, seed and correction are keys of [statistics] in ranktilt.toml."""

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
        """Return the keywords of an audit: options win over ``--set``, a preset and the file, in this order."""
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
        """Return what was asked for otherwise than a preset has it, such as ``ties = expected``."""
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
        """The label file; refuses what is about one where there is none."""
        from ranktilt.data.label_file import LabelFile

        if self.groups is None:
            if self.rest:
                raise UserError("--rest needs a label file: --groups FILE")
            return None
        configured = _configured_labels(self.groups)
        labels = LabelFile.from_text(self.groups) if configured is None else configured
        names = {**labels.names, **self.label_names}
        return replace(labels, names=names, rest=self.rest or labels.rest)

    @property
    def label_names(self) -> dict[str, str]:
        """What values of the labels are called."""
        texts = [part for text in self.name or () for part in _several_names(text)]
        pairs = [text.partition("=") for text in texts]
        names = {value: name.strip() for value, _, name in pairs}
        if not all(map(str.strip, names)) or not all(names.values()) or len(names) < len(pairs):
            raise UserError(
                f"--name expects a value and its name, such as 1=ai; got {', '.join(self.name or ())}"
            )
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
        """Pairs to compare, the reference group first in each; refuses those that cannot be compared."""
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
    """Return the label file of that name in ranktilt.toml; None where it has none, or a file is called so."""
    from ranktilt.data.label_file import LabelFile

    configuration = settings().configuration
    entry = configuration.labels.get(name)
    if entry is None:
        is_plain = not os.path.exists(name) and not re.search(r"[./:\\]", name)
        if is_plain and configuration.labels:
            raise unknown(
                f"label file, and name in {configuration.path},", name, configuration.labels
            )
        return None
    if os.path.isfile(name):
        note_once(f"--groups {name}: the file is read, not [labels.{name}] of {configuration.path}")
        return None
    columns = {"doc_id" if key == "id" else key: column for key, column in entry.columns.items()}
    return LabelFile(path=entry.file, columns=columns, names=dict(entry.names), rest=entry.rest)


def language_model(text: str) -> ModelSpec:
    """Read a model's text, or its name in ranktilt.toml, and say where texts go if a file decides that."""
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
    entry = configuration.llm.get(typed.name)
    if entry is None:
        raise unknown(
            "language model", typed.name, [*configuration.llm, *(f"{kind}:…" for kind in KINDS)]
        )
    if len(stages) > 1 or typed.argument is not None or typed.k is not None:
        raise UserError(
            f"--llm {text}: expected a name of {configuration.path}, such as {typed.name}, with "
            f"options or none: {typed.name}(temperature=0)"
        )
    file_text = _text_of_entry(typed.name, entry)
    spec = read_model(file_text)
    address = spec.client.get("base_url")
    if address is not None and "base_url" not in typed.options:
        key = f", with the key in {VARIABLE}" if os.environ.get(VARIABLE) else ""
        place = f"base_url of [llm.{typed.name}] in {configuration.path}"
        say(f"asks {base_url(address)}{key} ({place})")
    (model,) = parse_stages(file_text)
    options = {**model.options, **typed.options}
    if settings().is_device_typed and "device" not in typed.options:
        options.pop("device", None)
    return str(replace(model, options=options))


def _text_of_entry(name: str, entry: Mapping[str, Any]) -> str:
    """Return the text of a model of ranktilt.toml: its ``model`` with the other keys as options."""
    from ranktilt.llm.spec import read_model
    from ranktilt.spec import parse_stages

    path = settings().configuration.path
    try:
        read_model(str(entry["model"]))
        (model,) = parse_stages(str(entry["model"]))
        options = {
            option: str(value).lower() if isinstance(value, bool) else str(value)
            for option, value in entry.items()
            if option != "model"
        }
        for option in options:
            if option in model.options:
                raise UserError(f"{option} is given twice, as a key and in model")
        text = str(replace(model, options={**model.options, **options}))
        read_model(text)
    except UserError as error:
        raise UserError(f"{path}: [llm.{name}]: {error}") from error
    return text


def first_given(**values: Any) -> str | None:
    """Return the flag of the first option that has a value, such as ``--max-tilt``; None where none has."""
    name = next((name for name, value in values.items() if value not in (None, False, [])), None)
    return None if name is None else f"--{name.replace('_', '-')}"


def require_answers(specs: Iterable[Any], max_failures: float | None) -> None:
    """Refuse runs, by their specs, with more unreadable answers of language models than allowed, a share."""
    from ranktilt.data.run import stage_facts
    from ranktilt.rankers.llm.answers import require_answers as require

    for spec in specs if max_failures is not None else ():
        for stage, said in stage_facts(spec, "llm_answers"):
            require(stage, said, max_failures or 0.0, "--max-failures")


def load_texts(folder: Path, split: str | None) -> Collection:
    """Load a collection to look at its texts: judgments are no condition, and unknown documents in them no mistake."""
    from ranktilt.data.load import NO_QRELS, load

    none = NO_QRELS if without_judgments(folder, split) else None
    return load(folder, split=split, qrels=none, ignore_unknown=True)


def without_judgments(folder: Path, split: str | None) -> bool:
    """Tell whether a folder holds no judgments and none are asked for; a name such as ``hub:…`` is no folder."""
    from ranktilt.data.load import splits

    return split is None and os.path.isdir(folder) and not splits(folder)


@dataclass(frozen=True, kw_only=True)
class NamedText:
    """The text of a ranker or a run's file, and what its user calls it."""

    text: str
    name: str | None = None

    @classmethod
    def from_text(cls, text: str | Path) -> Self:
        """Read ``NAME=SPEC`` or ``NAME=FILE``; a file of the whole name is that file."""
        match = None if os.path.exists(text) else _NAMED.fullmatch(str(text))
        if match is None:
            return cls(text=str(text))
        return cls(text=match["text"], name=match["name"].strip())


def rank_with(
    rankers: Sequence[Ranker], collection: Collection, names: Sequence[str | None] = ()
) -> list[Run]:
    """Rank with each ranker, once all are known to be able to; `names` are what users call them."""
    from ranktilt.data.run import named_apart
    from ranktilt.rankers.candidates import check_reranked

    for ranker in rankers:
        ranker.check()
    runs = named_apart(check_reranked(ranker.rank(collection), None, ranker) for ranker in rankers)
    return with_names(runs, names) if names else runs


def with_names(runs: Sequence[Run], names: Sequence[str | None]) -> list[Run]:
    """Call runs what their user calls them; those without a name keep their own."""
    named = []
    for run, name in zip(runs, names, strict=True):
        named.append(run if name is None else replace(run, spec={**run.spec, "alias": name}))
    return named


def read_rankers(specs: Sequence[str], preset: str | None = None, **defaults: Any) -> list[Ranker]:
    """Read rankers and give each the options of the command line that it has and does not set itself.

    Those of the preset come after: its recipe of the ranker's name, and its options.
    """
    from ranktilt.presets import Preset as Presets
    from ranktilt.presets import preset as preset_named
    from ranktilt.registry import ranker_class, ranker_of_stages, ranker_stages
    from ranktilt.spec import Stage, parse_stages

    chosen = Presets(source="") if preset is None else preset_named(preset)

    defaults.setdefault("device", settings().machine.device)
    named = {name: value for name, value in defaults.items() if value is not None}
    given = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in named.items()
    }

    def equipped(stage: Stage) -> Stage:
        own = {f.name for f in fields(ranker_class(stage.name))}  # type: ignore[arg-type]
        for option in chosen.options.get(stage.name, {}):
            if option not in own:
                raise unknown(f"option of {stage.name} in preset {preset!r}", option, sorted(own))
        from_preset = {"text": chosen.text} if chosen.text else {}
        usual = {**from_preset, **chosen.options.get(stage.name, {}), **given}
        more = {name: value for name, value in usual.items() if name in own}
        name, argument = stage.name, stage.argument
        if argument is None and name in chosen.recipes:
            name, _, recipe = chosen.recipes[name].partition(":")
            argument = recipe or None
        return replace(stage, name=name, argument=argument, options={**more, **stage.options})

    rankers = []
    for spec in specs:
        stages = ranker_stages(spec)
        for written, stage in zip(parse_stages(spec), stages, strict=True):
            if written.name == stage.argument:
                note_once(f"{written.name}: taken as {stage.name}:{stage.argument}")
        rankers.append(ranker_of_stages([equipped(stage) for stage in stages]))
    return rankers


def read_pairs(texts: Sequence[str] | None) -> list[tuple[str, str]] | None:
    """Read pairs of groups, ``A,B`` each; None where none are named."""
    if not texts:
        return None
    found = []
    for text in texts:
        a, comma, b = text.partition(",")
        if not comma or not a.strip() or not b.strip():
            raise UserError(f"--pair expects two groups, such as human,llm; got {text!r}")
        found.append((a.strip(), b.strip()))
    return found


def read_price(text: str | None, *, dry_run: bool) -> tuple[float, float] | None:
    """Read the price of a million tokens, ``IN,OUT``; None where none is named, refused where nothing is estimated."""
    if text is None:
        return None
    if not dry_run:
        raise UserError("--price needs --dry-run")
    try:
        read, written = map(float, text.split(","))
    except ValueError as error:
        raise UserError(
            f"--price expects two numbers, per million input and output tokens, such as 0.15,0.60; got {text!r}"
        ) from error
    return read, written
