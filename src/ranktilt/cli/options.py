"""Options that several verbs share, and how a function with options becomes a verb."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import MISSING, dataclass, fields, replace
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from ranktilt.cli.notes import reporting
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.collection import Collection
    from ranktilt.datasets.label_file import LabelFile
    from ranktilt.rankers.base import Ranker
    from ranktilt.run import Run

Formats = StrEnum("Formats", ["table", "markdown", "csv", "latex", "html", "json"])
"""How a result is printed, the same for every verb."""
TieRule = StrEnum("TieRule", ["expected", "trec_eval"])
MeanRounding = StrEnum("MeanRounding", ["none", "paper"])
TiltTest = StrEnum("TiltTest", ["permutation", "t"])
Corrections = StrEnum("Corrections", ["holm", "bonferroni"])
MissingRule = StrEnum("MissingRule", ["zero", "exclude"])
RunOrder = StrEnum("RunOrder", ["score", "rank"])
Fields = StrEnum("Fields", {"both": "title+text", "text": "text", "title": "title"})
Layouts = StrEnum("Layouts", ["beir", "cocktail"])
Documents = StrEnum("Documents", ["all", "judged"])
OnInconclusive = StrEnum("OnInconclusive", {"fail_": "fail", "pass_": "pass"})
Precisions = StrEnum("Precisions", ["float32", "bfloat16"])

Pairs = list[tuple[str, str]]
Rankers = Annotated[
    list[str] | None,
    typer.Option(
        "--ranker",
        "-r",
        metavar="SPEC",
        help='A ranker, such as bm25, "bm25(k1=0.9,b=0.4)@100", dense:minilm.',
    ),
]
Measures = Annotated[
    list[str] | None,
    typer.Option(
        "--measure",
        "-m",
        metavar="MEASURE",
        help="A measure, such as nDCG@3; several may be given.",
    ),
]
Card = Annotated[bool, typer.Option("--card", help="The estimand card: five questions side by side.")]
Controls = Annotated[
    bool, typer.Option("--controls", help="Raw beside length-matched, boilerplate-free and other controls.")
]
Reference = Annotated[
    str | None,
    typer.Option("--reference", metavar="GROUP", help="The group that others are compared with (default: human)."),
]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A collection: BEIR, Cocktail or the papers' layout.")]
AnyCollection = Annotated[
    Path, typer.Argument(metavar="DIR", help="A collection: a folder, hub:OWNER/NAME or irds:ID.")
]
Destination = Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Where the collection goes.")]
Qrels = Annotated[
    str | None,
    typer.Option("--qrels", metavar="FILE", help="Judgment file to use instead; none for no judgments."),
]
Split = Annotated[
    str | None, typer.Option("--split", help="Judgments in qrels/<split>.tsv (default: test, or the only one).")
]
IgnoreUnknown = Annotated[
    bool,
    typer.Option("--ignore-unknown", help="Keep judgments of unknown documents out of group measures."),
]
Correction = Annotated[
    Corrections, typer.Option("--correction", help="Correction of the p values for the number of tests.")
]
Price = Annotated[
    str | None, typer.Option("--price", metavar="IN,OUT", help="Price of a million tokens, for --dry-run.")
]
MaxFailures = Annotated[
    float | None,
    typer.Option(
        "--max-failures", min=0, max=1, metavar="X",
        help="Most queries or answers that an engine or language model may fail: a share, 0 to 1.",
    ),
]  # fmt: skip
Layout = Annotated[Layouts, typer.Option("--layout", help="How the folder is laid out.")]
Parts = Annotated[
    int | None,
    typer.Option("--parts", min=1, metavar="N", help="Documents in Parquet files of N each, for many of them."),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="Random seed.")]


@dataclass(frozen=True)
class OptionGroup:
    """Options that belong together; a verb with a parameter of such a type takes each field as an option."""

    def in_force(self) -> AbstractContextManager[None]:
        """What holds while the verb runs."""
        return nullcontext()

    def changed(self) -> list[str]:
        """Name the options that differ from their defaults."""
        hints = get_type_hints(type(self), include_extras=True)
        chosen = [f.name for f in fields(self) if getattr(self, f.name) != f.default]
        return [hints[name].__metadata__[0].default for name in chosen]  # where typer keeps the first name


@dataclass(frozen=True)
class Compute(OptionGroup):
    """What models run on."""

    device: Annotated[str | None, typer.Option("--device", help="Device of neural rankers, such as cpu or cuda:0.")] = (
        None
    )
    threads: Annotated[int | None, typer.Option("--threads", min=1, help="Processor threads to use.")] = None
    """Read when the program starts, before libraries are imported."""
    executor: Annotated[
        str | None,
        typer.Option(
            "--executor", metavar="PLACE", help="Where to compute: local, ray (a cluster of this machine), ray:ADDRESS."
        ),
    ] = None

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """Let what is computed be computed there."""
        if self.executor is None:
            yield
            return
        from ranktilt.executing.run_on import run_on

        with run_on(self.executor):
            yield


@dataclass(frozen=True)
class RankerOptions(Compute):
    """What rankers have in common."""

    text: Annotated[Fields | None, typer.Option("--text", help="Which part of a document is ranked.")] = None
    max_failures: MaxFailures = None

    def rankers(self, specs: Sequence[str], **more: Any) -> list[Ranker]:
        """Read rankers and give each these options and `more`, where it has them and does not set them itself."""
        most = self.max_failures
        found = read_rankers(specs, text=self.text, device=self.device, max_failures=most, **more)
        if most is not None and specs and not any(_can_fail(stage) for one in found for stage in stages_of(one)):
            raise UserError(
                "--max-failures is about rankers that ask an engine or a language model, or about their runs; here "
                "is none"
            )
        return found

    def require_answers(self, runs: Sequence[Run]) -> None:
        """Refuse runs, wherever they come from, whose language models failed more often than allowed."""
        require_answers((run.spec for run in runs), self.max_failures)


@dataclass(frozen=True)
class SearchOptions(RankerOptions):
    """The same, with what a whole search needs."""

    exclude_self: Annotated[
        bool | None,
        typer.Option(
            "--exclude-self/--no-exclude-self", help="Drop a query's own document where queries are documents."
        ),
    ] = None
    memory: Annotated[
        str | None,
        typer.Option(
            "--memory",
            metavar="SIZE",
            help="What exact search or random labels may hold, such as 1GB (default: a quarter of the memory).",
        ),
    ] = None

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """Let search hold no more memory; the usual share where nothing is named."""
        from ranktilt.executing.memory_limits import MemoryLimits, limited, read_size

        most = None if self.memory is None else read_size(self.memory)
        with super().in_force(), limited(MemoryLimits(memory=most)):
            yield

    def rankers(self, specs: Sequence[str], **more: Any) -> list[Ranker]:
        """Read rankers and give each these options and `more`, where it has them and does not set them itself."""
        return super().rankers(specs, exclude_self=self.exclude_self, **more)


@dataclass(frozen=True)
class StatisticsOptions(OptionGroup):
    """How tilts are tested."""

    ties: Annotated[TieRule, typer.Option("--ties", help="How ties count; trec_eval for published numbers.")] = (
        TieRule.expected
    )
    test: Annotated[TiltTest, typer.Option("--test", help="The test of twins.")] = TiltTest.permutation
    correction: Correction = Corrections.holm
    primary: Annotated[
        str | None,
        typer.Option(
            "--primary",
            metavar="MEASURE",
            help="The question that verdicts answer (default: the deepest nDCG, or else the first -m; without "
            "judgments HeadToHead of twins, or Share@10).",
        ),
    ] = None
    level_margin: Annotated[
        str,
        typer.Option(
            "--level-margin", metavar="X", help="Half-width of what counts as level: points, or such as '0.5 ranks'."
        ),
    ] = "5"
    resamples: Annotated[int, typer.Option("--resamples", min=100, help="Bootstrap resamples and sign flips.")] = 10_000
    seed: Seed = 0

    def __post_init__(self) -> None:
        """Refuse what is no margin before anything is read."""
        if self.level_margin != "5":
            from ranktilt.measures.margin import read_margin

            read_margin(self.level_margin, "--level-margin")

    @property
    def keywords(self) -> dict[str, Any]:
        """As the functions take them."""
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        from ranktilt.measures.margin import read_margin

        level = read_margin(given.pop("level_margin"), "--level-margin")
        return {**given, "level": level}


@dataclass(frozen=True)
class LabelOptions(OptionGroup):
    """Labels of documents, how their file is read, and which group comes first."""

    groups: Annotated[
        str | None,
        typer.Option("--groups", metavar="FILE", help="Labels: doc_id, source[, origin], or FILE:id=url,source=is_ai."),
    ] = None
    rest: Annotated[
        str | None,
        typer.Option(
            "--rest", metavar="LABEL", help="Label of all documents that --groups, or its list of ids, lacks."
        ),
    ] = None
    name: Annotated[
        list[str] | None,
        typer.Option("--name", metavar="VALUE=NAME", help="What a value of the labels is called, such as 1=ai."),
    ] = None
    reference: Reference = None

    @property
    def labels(self) -> LabelFile | None:
        """The label file; refuses what is about one where there is none."""
        from ranktilt.datasets.label_file import LabelFile

        if self.groups is None:
            if alone := [option for option in ("rest", "name") if getattr(self, option)]:
                raise UserError(f"--{alone[0]} is about labels; name their file: --groups FILE")
            return None
        names = {value.strip(): name.strip() for value, _, name in (text.partition("=") for text in self.name or ())}
        if not all(names) or not all(names.values()) or len(names) < len(self.name or ()):
            raise UserError(f"--name expects a value and its name, such as 1=ai; got {', '.join(self.name or ())}")
        return replace(LabelFile.of(self.groups), names=names, rest=self.rest)

    def reference_first(self, collection: Collection, by: str | None, pairs: Pairs | None) -> Pairs | None:
        """Pairs to compare, the reference group first in each; refuses those that cannot be compared."""
        from ranktilt.auditing.groups import grouped_pairs

        groups, chosen = grouped_pairs(collection, by, pairs)
        if self.reference is None:
            return pairs
        name = groups.names[groups.number(self.reference)]
        return [(b, a) if b == name else (a, b) for a, b in chosen]


def verb(function: Callable[..., int | None]) -> Callable[..., None]:
    """Make a verb of a function: with ``--quiet``, ``--debug`` and the fields of its option groups as options.

    It runs with progress and notes on stderr; an exit code that it returns other than 0 ends the process.
    """
    hints = get_type_hints(function, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if isinstance(kind, type) and issubclass(kind, OptionGroup)}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(function).parameters.values():
        group = groups.get(parameter.name)
        parameters += [parameter.replace(annotation=hints[parameter.name])] if group is None else _options_of(group)
    parameters += _options_of(_Common)

    @wraps(function)
    def run(**given: Any) -> None:
        common = _Common(given.pop("quiet"), given.pop("debug"))
        made = {name: kind(**{f.name: given.pop(f.name) for f in fields(kind)}) for name, kind in groups.items()}
        with reporting(quiet=common.quiet), ExitStack() as stack:
            for group in made.values():
                stack.enter_context(group.in_force())
            code = function(**given, **made)
        if code:
            raise typer.Exit(code)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


@dataclass(frozen=True)
class _Common(OptionGroup):
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no notes.")] = False
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False
    """Read when an error ends the program."""


def _options_of(group: type[OptionGroup]) -> list[inspect.Parameter]:
    hints, kind = get_type_hints(group, include_extras=True), inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(
            f.name,
            kind,
            annotation=hints[f.name],
            default=inspect.Parameter.empty if f.default is MISSING else f.default,
        )
        for f in fields(group)
    ]


def _can_fail(stage: Ranker) -> bool:
    return hasattr(stage, "max_failures") or stage.name == "replay"


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


def stages_of(one: Ranker) -> Sequence[Ranker]:
    """The stages of a pipeline; of any other ranker itself."""
    found: Sequence[Ranker] = getattr(one, "stages", (one,))
    return found


def read_rankers(specs: Sequence[str], **defaults: Any) -> list[Ranker]:
    """Read rankers and give each the options of the command line that it has and does not set itself."""
    from ranktilt.rankers.spec import Stage, parse_stages
    from ranktilt.registry import ranker, ranker_class

    named = {name: value for name, value in defaults.items() if value is not None}
    given = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in named.items()}

    def equipped(stage: Stage) -> Stage:
        own = {f.name for f in fields(ranker_class(stage.name))}  # type: ignore[arg-type]
        more = {name: value for name, value in given.items() if name in own}
        return replace(stage, options={**more, **stage.options})

    return [ranker(">>".join(str(equipped(stage)) for stage in parse_stages(spec))) for spec in specs]


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


def read_price(text: str | None, option: str = "--price") -> tuple[float, float] | None:
    """Read the price of a million tokens, ``IN,OUT``; None where none is named."""
    if text is None:
        return None
    try:
        read, written = map(float, text.split(","))
    except ValueError as error:
        raise UserError(
            f"{option} expects two numbers, of a million tokens in and out, such as 0.15,0.60; got {text!r}"
        ) from error
    return read, written
