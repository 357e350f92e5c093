"""Options that several verbs share, and how a function with options becomes a verb."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import MISSING, dataclass, fields, replace
from functools import partial, wraps
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    get_args,
    get_origin,
    get_type_hints,
)

import typer
from typer.core import TyperCommand

from ranktilt.cli import completion
from ranktilt.cli.notes import reporting
from ranktilt.errors import UserError, unknown
from ranktilt.option import Option, refuse_repeated

if TYPE_CHECKING:
    from ranktilt.collection import Collection
    from ranktilt.datasets.labels import LabelFile
    from ranktilt.rankers.base import Ranker
    from ranktilt.run import Run

Formats = Literal["table", "markdown", "csv", "latex", "html", "json"]
"""How a result is printed, the same for every verb."""
Corrections = Literal["holm", "bonferroni"]
Fields = Literal["title+text", "text", "title"]

PANELS = (
    "Arguments",
    "Input",
    "Question",
    "With --full",
    "Model",
    "Training",
    "Statistics",
    "Output",
    "Other options",
)
"""Headings of ``--help``, in order; what is of none of them stands under the last."""
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS")

Pairs = list[tuple[str, str]]
Rankers = Annotated[
    list[str] | None,
    Option(
        'A ranker, such as bm25, "bm25(k1=0.9,b=0.4)@100", dense:minilm.',
        "SPEC",
        short="-r",
        panel="Input",
        complete=completion.rankers,
    ),
]
Measures = Annotated[
    list[str] | None,
    Option(
        "A measure, such as nDCG@3; several may be given.",
        "MEASURE",
        short="-m",
        panel="Question",
        complete=completion.measures,
    ),
]
Preset = Annotated[
    str | None,
    Option(
        "Compute as a paper did: dai, wang or askari; explicit options override it.",
        "NAME",
        complete=completion.presets,
    ),
]
Card = Annotated[
    bool, Option("Add the question card: five questions side by side.", panel="Question")
]
Controls = Annotated[
    bool, Option("Add controls, such as matched lengths and boilerplate removed.", panel="Question")
]
Reference = Annotated[
    str | None,
    Option("The group that others are compared with (default: human).", "GROUP", panel="Question"),
]
Folder = Annotated[
    Path, typer.Argument(metavar="DIR", help="A collection: BEIR, Cocktail or the papers' layout.")
]
AnyCollection = Annotated[
    Path, typer.Argument(metavar="DIR", help="A collection: a folder, hub:OWNER/NAME or irds:ID.")
]
Destination = Annotated[
    Path, Option("Folder for the collection.", "DIR", short="-o", panel="Output")
]
Qrels = Annotated[
    str | None,
    Option("Judgment file to use instead; none for no judgments.", "FILE", panel="Input"),
]
Split = Annotated[
    str | None,
    Option(
        "Judgments in qrels/<split>.tsv (default: test, or the only one).", "SPLIT", panel="Input"
    ),
]
IgnoreUnknown = Annotated[
    bool,
    Option(
        "Allow judgments of documents that the collection lacks; they count in no group.",
        panel="Input",
    ),
]
Correction = Annotated[
    Corrections, Option("Correction of p values for multiple tests.", panel="Statistics")
]
Price = Annotated[
    str | None,
    Option("Price per million input and output tokens, for --dry-run.", "IN,OUT", panel="Model"),
]
DryRun = Annotated[
    bool, Option("Send nothing; show requests, tokens, price and time.", panel="Model")
]
MaxFailures = Annotated[
    float | None,
    Option(
        "Share of queries or answers allowed to fail, 0 to 1.", "X", min=0, max=1, panel="Model"
    ),
]
ScoreOrder = Annotated[
    Literal["score", "ascending", "rank"] | None,
    Option(
        "Order runs by falling scores (default), by rising scores (distances), or by ranks.",
        panel="Input",
    ),
]
RowsPerFile = Annotated[
    int | None,
    Option("Save documents as Parquet files of N rows each.", "N", min=1, panel="Output"),
]
Seed = Annotated[int, Option("Random seed.", "N", min=0, panel="Statistics")]
Resamples = Annotated[int, Option("Bootstrap resamples.", "N", min=100, panel="Statistics")]
Protected = Annotated[
    str | None,
    Option(
        "Protected group, A|B or non-A (default: the smaller of two).", "GROUP", panel="Question"
    ),
]


@dataclass(frozen=True)
class OptionGroup:
    """Options that belong together; a verb with a parameter of such a type takes each field as an option."""

    panel: ClassVar[str | None] = None
    """The heading of ``--help`` under which they stand."""

    def in_force(self) -> AbstractContextManager[None]:
        """What holds while the verb runs."""
        return nullcontext()

    def changed(self) -> list[str]:
        """Name the options that differ from their defaults."""
        return [
            _flag(one) for one in _options_of(type(self)) if getattr(self, one.name) != one.default
        ]


@dataclass(frozen=True)
class Compute(OptionGroup):
    """What models run on."""

    panel = "Model"

    device: Annotated[str | None, Option("Device for models, such as cpu or cuda:0.", "DEVICE")] = (
        None
    )
    threads: Annotated[int | None, Option("Processor threads to use.", "N", min=1)] = None
    executor: Annotated[
        str | None,
        Option("Where to compute: local, ray (this machine), ray:ADDRESS (a cluster).", "PLACE"),
    ] = None

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """Let what is computed be computed there; libraries read their thread counts when they are imported."""
        if self.threads is not None:
            os.environ.update(dict.fromkeys(_THREADS, str(self.threads)))
        if self.executor is None:
            yield
            return
        from ranktilt.executing.run_on import run_on

        with run_on(self.executor):
            yield


@dataclass(frozen=True)
class RankerOptions(Compute):
    """What rankers have in common."""

    text: Annotated[Fields | None, Option("Part of a document to rank.")] = None

    def rankers(self, specs: Sequence[str], preset: str | None = None, **more: Any) -> list[Ranker]:
        """Read rankers and give each these options and `more`, where it has them and does not set them itself."""
        own = {
            name: getattr(self, name, None)
            for name in ("text", "device", "max_failures", "exclude_self")
        }
        return read_rankers(specs, preset, **(own | more))


@dataclass(frozen=True)
class SearchOptions(RankerOptions):
    """The same, with what a whole search needs."""

    exclude_self: Annotated[
        bool | None,
        Option(
            "Drop a query's own document from its results, where queries are documents.",
            flag="--exclude-self/--no-exclude-self",
        ),
    ] = None
    memory: Annotated[
        str | None,
        Option(
            "Memory limit of exact search and random labels, such as 1GB (default: a quarter of the memory).",
            "SIZE",
        ),
    ] = None

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """Let search hold no more memory; the usual share where nothing is named."""
        with super().in_force():
            from ranktilt.executing.memory_limits import MemoryLimits, limited, read_size

            most = None if self.memory is None else read_size(self.memory)
            with limited(MemoryLimits(memory=most)):
                yield


@dataclass(frozen=True)
class EngineOptions(SearchOptions):
    """The same, where an engine or a language model may be asked."""

    max_failures: MaxFailures = None

    def require_answers(self, runs: Sequence[Run]) -> None:
        """Refuse runs, wherever they come from, whose language models failed more often than allowed."""
        require_answers((run.spec for run in runs), self.max_failures)


@dataclass(frozen=True)
class StatisticsOptions(OptionGroup):
    """How tilts are tested."""

    panel = "Statistics"

    ties: Annotated[
        Literal["expected", "trec_eval"] | None,
        Option("Ties: expected value over all orders (default), or trec_eval's order by id."),
    ] = None
    correction: Correction = "holm"
    primary: Annotated[
        str | None,
        Option(
            "The question that verdicts answer (default: the deepest nDCG, or else the first -m; without "
            "judgments HeadToHead of twins, or Share@10).",
            "MEASURE",
        ),
    ] = None
    level_margin: Annotated[
        str, Option("Tilts within this margin count as level: points, or '0.5 ranks'.", "X")
    ] = "5"
    resamples: Resamples = 10_000
    seed: Seed = 0

    @property
    def keywords(self) -> dict[str, Any]:
        """As the functions take them."""
        return self.keywords_of(None)

    def keywords_of(self, preset: str | None) -> dict[str, Any]:
        """The same, with what a preset sets and no option overrides."""
        from ranktilt.measures.margin import read_margin
        from ranktilt.presets import preset as preset_named

        given = dict(vars(self))
        level = read_margin(given.pop("level_margin"), "--level-margin")
        chosen = {} if preset is None else preset_named(preset).statistics
        ties = self.ties or chosen.get("ties", "expected")
        return {**chosen, **given, "ties": ties, "level": level}


@dataclass(frozen=True)
class LabelOptions(OptionGroup):
    """Labels of documents, how their file is read, and which group comes first."""

    panel = "Input"

    groups: Annotated[
        str | None,
        Option(
            "Labels of documents: doc_id, source[, origin]; other columns as FILE:id=url,source=is_ai.",
            "FILE",
        ),
    ] = None
    rest: Annotated[
        str | None, Option("Label of every document that --groups does not name.", "LABEL")
    ] = None
    name: Annotated[
        list[str] | None,
        Option("Name for a value of the labels, such as 1=ai or AI=ai.", "VALUE=NAME"),
    ] = None
    reference: Reference = None

    @property
    def labels(self) -> LabelFile | None:
        """The label file; refuses what is about one where there is none."""
        from ranktilt.datasets.labels import LabelFile

        if self.groups is None:
            if self.rest:
                raise UserError("--rest needs a label file: --groups FILE")
            return None
        return replace(LabelFile.of(self.groups), names=self.label_names, rest=self.rest)

    @property
    def label_names(self) -> dict[str, str]:
        """What values of the labels are called."""
        pairs = [text.partition("=") for text in self.name or ()]
        names = {value: name.strip() for value, _, name in pairs}
        if not all(map(str.strip, names)) or not all(names.values()) or len(names) < len(pairs):
            raise UserError(
                f"--name expects a value and its name, such as 1=ai; got {', '.join(self.name or ())}"
            )
        return names

    def labelled(self, collection: Collection, by: str) -> Collection:
        """Give documents the labels of the file, or the collection's own labels their names."""
        from ranktilt.datasets.labels import with_labels, with_names

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


@dataclass(frozen=True)
class FieldsOf:
    """The fields of a dataclass as options: a verb takes those that were given, by the fields' names."""

    kind: type
    without: tuple[str, ...] = ()
    panel: str = "Training"

    def parameters(self) -> list[inspect.Parameter]:
        """Every field with an option, None where it is not given; its help names the dataclass's default."""
        return [
            parameter.replace(annotation=_optional(parameter), default=None)
            for parameter in _options_of(self.kind, self.panel)
            if parameter.name not in self.without and hasattr(parameter.annotation, "__metadata__")
        ]

    def flags(self, given: Mapping[str, Any]) -> list[str]:
        """Name the options that were given."""
        return [_flag(one) for one in self.parameters() if one.name in given]


def _flag(parameter: inspect.Parameter) -> str:
    name: str = parameter.annotation.__metadata__[0].names(parameter.name)[0]
    return name


def _optional(parameter: inspect.Parameter) -> Any:
    kind, default = parameter.annotation.__origin__, parameter.default
    (option,) = parameter.annotation.__metadata__
    usual = f"{default:g}" if isinstance(default, float) else default
    if get_origin(kind) is tuple:
        kind, usual = list[get_args(kind)[0]], ", ".join(map(str, default))  # type: ignore[misc]  # typer has no such
    kind = str if kind == str | Path else kind
    if default not in (None, False):
        option = replace(option, help=f"{option.help.rstrip('.')} (default: {usual}).")
    return Annotated[kind | None, option]


def verb(
    *examples: str, panel: str = "Question"
) -> Callable[[Callable[..., int | None]], Callable[..., None]]:
    """Make a verb of a function: with ``--quiet``, ``--debug`` and the fields of its option groups as options.

    Its help opens with the examples, commands without ``ranktilt``, and shows its own options under
    `panel`. It runs with progress and notes on stderr; an exit code that it returns other than 0
    ends the process.
    """
    return partial(_verb, examples=examples, panel=panel)


def _verb(
    function: Callable[..., int | None], examples: tuple[str, ...], panel: str
) -> Callable[..., None]:
    hints = get_type_hints(function, include_extras=True)
    groups = {
        name: kind
        for name, kind in hints.items()
        if isinstance(kind, type) and issubclass(kind, OptionGroup)
    }
    more = {name: _options_of(kind, kind.panel) for name, kind in groups.items()}
    chosen = {
        name: kind.__metadata__[0] for name, kind in hints.items() if hasattr(kind, "__metadata__")
    }
    fields_of = {
        name: one.parameters() for name, one in chosen.items() if isinstance(one, FieldsOf)
    }
    more |= fields_of
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(function).parameters.values():
        own = [parameter.replace(annotation=_under(panel, hints[parameter.name]))]
        parameters += more.get(parameter.name, own)
    parameters += _options_of(_Common)
    parameters = [parameter.replace(annotation=_for_typer(parameter)) for parameter in parameters]

    @wraps(function)
    def run(**given: Any) -> None:
        common = _Common(given.pop("quiet"), given.pop("debug"))
        made = {
            name: kind(**{f.name: given.pop(f.name) for f in fields(kind)})
            for name, kind in groups.items()
        }
        for name, named in fields_of.items():
            values = {one.name: given.pop(one.name) for one in named}
            told = {key: value for key, value in values.items() if value not in (None, [])}
            given[name] = {
                key: tuple(value) if isinstance(value, list) else value
                for key, value in told.items()
            }
        with reporting(quiet=common.quiet), ExitStack() as stack:
            for group in made.values():
                stack.enter_context(group.in_force())
            code = function(**given, **made)
        if code:
            raise typer.Exit(code)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.examples = examples  # type: ignore[attr-defined]
    return run


class Verb(TyperCommand):
    """A verb whose help opens with examples and shows options under headings; an option of one value is given once."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse an option that takes one value and is given several."""
        if not ctx.resilient_parsing:  # as shells parse for completion
            refuse_repeated(ctx, self.make_parser(ctx).parse_args(args=list(args))[2])
        return super().parse_args(ctx, args)

    @property
    def examples(self) -> list[str]:
        """Whole commands, as they are typed."""
        return [f"ranktilt {example}" for example in self.callback.examples]  # type: ignore[union-attr]

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        super().format_usage(ctx, formatter)
        formatter.write_paragraph()
        with formatter.indentation():
            for example in self.examples:
                formatter.write_text(f"$ {example}")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        rows: dict[str, list[tuple[str, str]]] = {panel: [] for panel in PANELS}
        for parameter in self.get_params(ctx):
            if record := parameter.get_help_record(ctx):
                own = getattr(parameter, "rich_help_panel", None) or PANELS[-1]
                rows[PANELS[0] if parameter.param_type_name == "argument" else own].append(record)
        for panel, records in rows.items():
            if records:
                with formatter.section(panel):
                    formatter.write_dl(records)


@dataclass(frozen=True)
class _Common(OptionGroup):
    quiet: Annotated[bool, Option("Print no progress and no notes.")] = False
    debug: Annotated[bool, Option("Show the traceback of errors.")] = False
    """Read when an error ends the program."""


def _options_of(group: type, panel: str | None = None) -> list[inspect.Parameter]:
    hints, kind = get_type_hints(group, include_extras=True), inspect.Parameter.KEYWORD_ONLY
    empty = inspect.Parameter.empty
    defaults = {f.name: empty if f.default is MISSING else f.default for f in fields(group)}
    return [
        inspect.Parameter(name, kind, annotation=_under(panel, hints[name]), default=value)
        for name, value in defaults.items()
    ]


def _under(panel: str | None, kind: Any) -> Any:
    """The type of a field whose option stands under a heading, unless it names its own."""
    option = kind.__metadata__[0] if hasattr(kind, "__metadata__") else None
    if not isinstance(option, Option) or option.panel is not None:
        return kind
    return Annotated[kind.__origin__, replace(option, panel=panel)]


def _for_typer(parameter: inspect.Parameter) -> Any:
    """The type of a parameter with its option as typer declares it."""
    kind = parameter.annotation
    (option,) = kind.__metadata__
    if not isinstance(option, Option):
        return kind
    told = {name: getattr(option, name) for name in ("help", "min", "max")}
    number = (get_args(kind.__origin__) or (kind.__origin__,))[0]
    told["metavar"] = option.metavar or {int: "N", float: "X"}.get(number)
    told |= {"rich_help_panel": option.panel, "autocompletion": option.complete}
    return Annotated[kind.__origin__, typer.Option(*option.names(parameter.name), **told)]


def require_answers(specs: Iterable[Any], max_failures: float | None) -> None:
    """Refuse runs, by their specs, with more unreadable answers of language models than allowed, a share."""
    from ranktilt.rankers.llm.answers import require_answers as require
    from ranktilt.run import stage_facts

    for spec in specs if max_failures is not None else ():
        for stage, said in stage_facts(spec, "llm_answers"):
            require(stage, said, max_failures or 0.0, "--max-failures")


def load_texts(folder: Path, split: str | None) -> Collection:
    """Load a collection to look at its texts: judgments are no condition, and unknown documents in them no mistake."""
    from ranktilt.datasets.load import NO_QRELS, load

    none = NO_QRELS if without_judgments(folder, split) else None
    return load(folder, split=split, qrels=none, ignore_unknown=True)


def without_judgments(folder: Path, split: str | None) -> bool:
    """Tell whether a folder holds no judgments and none are asked for; a name such as ``hub:…`` is no folder."""
    from ranktilt.datasets.load import splits

    return split is None and os.path.isdir(folder) and not splits(folder)


def rank_with(rankers: Sequence[Ranker], collection: Collection) -> list[Run]:
    """Rank with each, once all are known to be able to; what one gives that is no run is refused."""
    from ranktilt.rankers.candidates import check_reranked
    from ranktilt.run import named_apart

    for one in rankers:
        one.check()
    return named_apart(check_reranked(one.rank(collection), None, one) for one in rankers)


def stages_of(ranker: Ranker) -> Sequence[Ranker]:
    """The stages of a pipeline; of any other ranker itself."""
    stages: Sequence[Ranker] = getattr(ranker, "stages", (ranker,))
    return stages


def read_rankers(specs: Sequence[str], preset: str | None = None, **defaults: Any) -> list[Ranker]:
    """Read rankers and give each the options of the command line that it has and does not set itself.

    Those of the preset come after: its recipe of the ranker's name, and its options.
    """
    from ranktilt.presets import Preset as Presets
    from ranktilt.presets import preset as preset_named
    from ranktilt.rankers.spec import Stage, parse_stages
    from ranktilt.registry import ranker, ranker_class

    chosen = Presets(source="") if preset is None else preset_named(preset)

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

    return [
        ranker(">>".join(str(equipped(stage)) for stage in parse_stages(spec))) for spec in specs
    ]


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
