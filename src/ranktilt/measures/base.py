"""Estimands: questions with a number for an answer, as values in one notation, such as ``nDCG@3``."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np

from ranktilt.errors import UserError, unknown
from ranktilt.extensions import ExtensionTable
from ranktilt.measures.printing import rounded, signed
from ranktilt.measures.ranking import (
    Bools,
    Floats,
    Hits,
    Ints,
    Judged,
    Ranking,
    per_block,
    per_query,
)

ESTIMANDS = {
    "nDCG": "ndcg:nDCG",
    "AP": "average_precision:AP",
    "P": "precision:P",
    "R": "recall:R",
    "RR": "reciprocal_rank:RR",
    "NDSR": "ndsr:NDSR",
    "HeadToHead": "twins.head_to_head:HeadToHead",
    "RankGap": "twins.rank_gap:RankGap",
    "ScoreGap": "twins.score_gap:ScoreGap",
    "ExposureRatio": "exposure_ratio:ExposureRatio",
    "Share": "share:Share",
    "AWRF": "exposure.awrf:AWRF",
    "EEL": "exposure.expected_exposure:EEL",
    "NDKL": "exposure.ndkl:NDKL",
    "PropertyLift": "exposure.property_lift:PropertyLift",
    "RelativeDelta": "contrast:RELATIVE_DELTA",
    "Preference": "preference:Preference",
    "GradeGap": "grade_gap:GradeGap",
}
"""Every estimand by the name that is typed for it: where it is defined, looked up when it is first asked for."""
"""Entry points of other packages: each names an estimand, such as ``mine:MyMeasure()``'s object."""
_TEXT = re.compile(
    r"\s*(?P<name>[A-Za-z_][\w.]*)\s*(?:\(\s*(?P<options>[^()]*)\)\s*)?(?:@\s*(?P<cutoff>-?\w+)\s*)?"
)
_CONTRAST = re.compile(r"(?P<name>RelativeDelta)\((?P<of>[^=]*(?:\(.*\).*)?)\)")
E_ = TypeVar("E_", bound="Estimand")


@dataclass(frozen=True, repr=False)
class Estimand:
    """A question with a number for an answer: what to compute, what it means, and how it prints.

    One class in one file is all that a new one takes, and one line in `ESTIMANDS` or an entry point
    of the group ``ranktilt.measures``; tables, cards, pages and the command line read the object.

    Parameters
    ----------
    cutoff : int, optional
        Ranks that count (k, written ``@k``); all where None. Some need one.

    Raises
    ------
    UserError
        If the estimand cannot have the cutoff or option.
    """

    cutoff: int | None = None

    name: ClassVar[str]
    """What is typed: ``nDCG``."""
    kind: ClassVar[Literal["relevance", "group", "twins", "choices", "grades", "property"]]
    """What it is given: judgments; the ranks of groups; twins; choices between two documents; a judge's grades; a
    number of each document."""
    unit: ClassVar[Literal["query", "pair", "list"]] = "query"
    """What its values are a mean over."""
    question: ClassVar[str] = ""
    """What it answers, in a line."""
    bounds: ClassVar[tuple[float, float]] = (-np.inf, np.inf)
    """Smallest and largest value."""
    neutral: ClassVar[float] = 0.0
    """The value that favours nobody, where groups are twins."""
    per_ratio: ClassVar[float] = 1.0
    """The value of a ratio of 1."""
    descriptive: ClassVar[bool] = False
    """Whether it only describes: no verdict, no correction, no conflict."""
    directed: ClassVar[bool] = False
    """Whether it cannot be turned round: a ratio's mean is not 1 over the mean of the ratio's inverse."""
    sided: ClassVar[bool] = True
    """Whether it favours one of two groups; one over all groups at once favours none."""
    outside: ClassVar[tuple[str, str]] = (
        "lower than random rankings",
        "higher than random rankings",
    )
    """What is said below and above the random band, where nobody is favoured."""
    scale: ClassVar[float] = 1.0
    """Printed numbers are values times this."""
    digits: ClassVar[int] = 1
    signed: ClassVar[bool] = True
    suffix: ClassVar[str] = ""
    """Unit behind a printed answer."""
    term: ClassVar[str] = ""
    """Title in the glossary."""
    definition: ClassVar[str] = ""
    """Definition in the glossary, in a sentence or two."""
    pattern: ClassVar[str] = ""
    """What stands for it in a text, as a regular expression; its term where this is empty."""
    needs_cutoff: ClassVar[bool] = False
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Valid values of the options that are words."""
    free: ClassVar[tuple[str, ...]] = ()
    """Options that are any text without commas and parentheses, read by the estimand itself."""

    def __post_init__(self) -> None:
        numbers = {
            f.name: getattr(self, f.name)
            for f in fields(self)
            if f.name not in (*self.choices, *self.free)
        }
        for what, number in numbers.items():
            if number is not None and type(number) is not int:
                raise UserError(
                    f"measure {self.name}: expected a whole number as {what}, got {number!r}"
                )
        if self.cutoff is not None and not 1 <= self.cutoff < 1 << 31:
            bound = "at least 1" if self.cutoff < 1 else "at most 2,147,483,647"
            raise UserError(
                f"measure {self.name}: expected a cutoff of {bound}, got @{self.cutoff}"
            )
        for what, valid in self.choices.items():
            if getattr(self, what) not in valid:
                raise unknown(f"{what} of measure {self.name}", str(getattr(self, what)), valid)

    def __matmul__(self: E_, cutoff: int) -> E_:
        return replace(self, cutoff=cutoff)

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value}" for name, value in self.options.items())
        return f"{self.name}{f'({given})' if given else ''}{'' if self.cutoff is None else f'@{self.cutoff}'}"

    @property
    def options(self) -> dict[str, Any]:
        """Options that differ from the usual ones, by name."""
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "cutoff"}
        usual = {f.name: f.default for f in fields(self)}
        return {name: value for name, value in values.items() if value != usual[name]}

    @property
    def key(self) -> str:
        """What stands for it in saved audits, whatever its cutoff is."""
        return self.name

    @property
    def title(self) -> str:
        """The name as tables and pages print it."""
        return repr(self)

    @property
    def reads_scores(self) -> bool:
        """Whether it needs to know how far scores lie apart, and not only their order."""
        return False

    def amount(self, value: float, *, sign: bool | None = None, digits: int | None = None) -> str:
        """Print a value in its unit, without the unit, with a sign where it has one; a dash where it is undefined."""
        if value != value:
            return "–"
        value, shown = self.scale * value, self.signed if sign is None else sign
        text = (signed if shown else rounded)(value, self.digits if digits is None else digits)
        return re.sub(r"^([+−]?)0\.", r"\1.", text) if self.digits > 2 else text

    def answer(self, value: float) -> str:
        """Print a value with its unit; a dash where it is undefined."""
        return "–" if value != value else f"{self.amount(value)}{self.suffix}"

    @property
    def point(self) -> float:
        """One point, of which margins are made, in the estimand's own values; NaN where it has no percent."""
        return (
            1 / self.scale
            if self.suffix in (" %", " points")
            else 0.01
            if self.neutral == 1
            else float("nan")
        )

    def counts(self, one: Floats, two: Floats) -> Bools:
        """Queries that say something, from their total and weight (see `ranktilt.measures.twins.Answers`)."""
        return two > 0

    def value(self, one: Floats, two: Floats, *, rounding: str = "none") -> float:
        """Make both columns one number; NaN where no query counts."""
        weight = float(two.sum())
        return float(one.sum()) / weight if weight else float("nan")

    def combine(self, one: Floats, two: Floats) -> Floats:
        """Make means of both columns one number each."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return one / two

    def differences(self, one: Floats, two: Floats) -> Floats:
        """What turns its sign where a query's two sides are exchanged."""
        return one

    def residuals(self, one: Floats, two: Floats, ratio: float) -> Floats:
        """What is left of each query beside the ratio, whose value in the estimand's unit is `per_ratio` times it."""
        return one - ratio * two

    def denominator(self, one: Floats, two: Floats) -> Floats:
        """Return what each query carries in the denominator of the ratio."""
        return two

    def depends_on_order(self, lengths: Ints) -> Bools:
        """Tell of lists of some lengths whether another order of their documents could change the answer."""
        return np.ones(len(lengths), dtype=bool)

    def means(self, one: Floats, two: Floats) -> dict[str, float]:
        """Means to be shown beside the answer."""
        return {}

    def complete(self: E_) -> E_:
        """Return the estimand itself; refuse one that lacks the cutoff it needs."""
        if self.needs_cutoff and self.cutoff is None:
            raise UserError(f"measure {self.name} needs a cutoff, such as {self.name}@10")
        return self


@dataclass(frozen=True, repr=False)
class Measure(Estimand):
    """A relevance measure: one value in [0, 1] a query and group, higher is better.

    Parameters
    ----------
    cutoff : int, optional
        Ranks that count; all where None. P and R need one.
    rel : int, optional
        Smallest grade that counts as relevant; of no use to measures that read the grades
        themselves.

    Raises
    ------
    UserError
        If the measure cannot have such a cutoff or grade.

    Examples
    --------
    >>> nDCG @ 3
    nDCG@3
    >>> AP(rel=2) @ 5
    AP(rel=2)@5
    """

    rel: int = 1

    kind = "relevance"
    bounds = (0.0, 1.0)
    binary: ClassVar[bool] = True
    """Whether it only asks if a document is relevant."""
    linear: ClassVar[bool] = True
    """Whether the difference between two groups of twins is linear in their labels."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rel < 1:
            raise UserError(f"measure {self.name}: expected rel of at least 1, got rel={self.rel}")
        if self.rel != 1 and not self.binary:
            raise UserError(
                f"measure {self.name} takes no option rel: it uses the grades themselves"
            )

    def __call__(self: M_, *, rel: int = 1) -> M_:
        """Return the same measure with another smallest relevant grade."""
        return replace(self, rel=rel)

    @property
    def grade(self) -> int:
        """Smallest grade that counts, as 1; 0 where the grades themselves are the gains."""
        return self.rel if self.binary else 0

    def per_document(self, before: Ints, size: Ints) -> Floats:
        """What each relevant document of tie blocks adds, of `size` documents below `before`, where these add up."""
        raise NotImplementedError

    def totals(self, ranking: Ranking, gains: Floats) -> Floats:
        """Sum what each query's relevant documents gain down to the cutoff, in expectation over ties: (n_queries,).

        `gains` holds the grade of each entry, or 1 for a relevant one where the measure is binary;
        0 for all others. To be divided by `ideal`.
        """
        return per_query(
            ranking, per_block(ranking, gains) * self.per_document(ranking.before, ranking.sizes)
        )

    def ideal(self, judged: Judged) -> Floats:
        """What `totals` is for the best ranking; 0 where a query has no relevant document."""
        return self.best(judged.count(self.rel).astype(np.float64))

    def label_weights(self, ranking: Ranking, gains: Floats) -> Floats:
        """What a relevant document of each tie block adds to ``M_a − M_b`` of twins, before it is divided by `ideal`.

        Parameters and errors as for `totals`; the result has the shape (n_blocks,).
        """
        return self.per_document(ranking.before, ranking.sizes)

    def block_weights(self, before: Ints, size: Ints, hits: Ints) -> tuple[tuple[Floats, ...], Any]:
        """Weights of the tie blocks that hold relevant documents, for sums under many labelings; see `permuted_labels`.

        `before` documents stand above each block of `size` documents, of which `hits` are relevant
        under some labeling. Gives what blocks are multiplied with before they are summed up, and
        anything else that `block_totals` needs.
        """
        return (self.per_document(before, size),), None

    def block_totals(self, weights: tuple[Any, ...], table: Any, hits: Hits) -> Floats:
        """Sum up each query under many labelings, as `totals` does: (n_queries, labelings).

        Weights come as matrices of shape (n_queries, n_blocks), `hits` are what each block gains.
        """
        found: Floats = weights[0] @ hits.gains
        return found

    def best(self, count: Floats) -> Floats:
        """What `ideal` is where a query has so many relevant documents (binary measures)."""
        return count

    def discount(self, depth: int) -> Floats:
        """What a grade is multiplied with at rank 0, 1, … `depth` of the best ranking (measures of grades)."""
        raise NotImplementedError


M_ = TypeVar("M_", bound=Measure)


@dataclass(frozen=True, repr=False)
class GroupEstimand(Estimand):
    """A question about where two groups of documents stand, relevant or not."""

    unit = "list"
    kind = "group"

    def weights(self, ranking: Ranking) -> Floats | None:
        """What each entry adds to its group, where the answer is the difference of two groups' sums; None elsewhere.

        Parameters
        ----------
        ranking : Ranking
            Each query's list, down to the cutoff.

        Returns
        -------
        ndarray of float64, shape (n_entries,), or None
            Without weights each list is shuffled by itself to see what random labels give; see
            `label_effects`.
        """
        return None

    def columns(self, ranking: Ranking, first: Bools, second: Bools) -> tuple[Floats, Floats]:
        """Total and weight of each query, from which `value` is made; parameters as for `contrast`."""
        found = self.contrast(ranking, first, second)
        known = ~np.isnan(found)
        return np.where(known, found, 0.0), known.astype(np.float64)

    def label_effects(
        self, ranking: Ranking, first: Bools, second: Bools
    ) -> tuple[Floats, Floats] | None:
        """What each entry's label adds to its query's total beyond a mean one, and its weight; None where not known."""
        return None

    def composition(self, ranking: Ranking, first: Bools, second: Bools) -> dict[str, float]:
        """What the lists are made of, to be told beside the answer; parameters as for `contrast`."""
        return {}

    def contrast(self, ranking: Ranking, first: Bools, second: Bools) -> Floats:
        """Answer it for each query.

        Parameters
        ----------
        ranking : Ranking
            Each query's whole list.
        first, second : ndarray of bool, shape (n_entries,)
            Entries of either group.

        Returns
        -------
        ndarray of float64, shape (n_queries,)
            NaN where a query says nothing.
        """
        raise NotImplementedError


def estimand(text: object) -> Estimand:
    """Read an estimand's text; the inverse of its ``repr``. Names of trec_eval, mteb and ir_measures work, too.

    Parameters
    ----------
    text : str or Estimand
        ``name[(option=value)][@cutoff]``, such as ``"nDCG@3"`` or ``"NDSR@20"``, or ir_measures'
        object. An estimand comes back as it is.

    Returns
    -------
    Estimand
        What to compute.

    Raises
    ------
    UserError
        If it cannot be read, or there is no such estimand or option.
    """
    if isinstance(text, Estimand):
        return text.complete()
    text = str(text)
    if contrast := _CONTRAST.fullmatch(text):
        return replace(_named(contrast["name"]), of=measure(contrast["of"]))  # type: ignore[call-arg]
    match = _TEXT.fullmatch(text)
    if match is None:
        raise UserError(
            f"cannot read measure {text!r}: expected name[(rel=grade)][@cutoff], such as nDCG@3"
        )
    name, cutoff = canonical(match["name"], match["cutoff"], estimands())
    found = _named(name)
    options = _options(match["options"] or "", text, found)
    found = replace(found, **options) if options else found
    if cutoff is not None:
        found = found @ whole_number(cutoff, f"cutoff of measure {text!r}")
    return found.complete()


def measure(text: object) -> Measure:
    """Read a relevance measure's text, such as ``"nDCG@3"``; see `estimand`.

    Parameters
    ----------
    text : str or Measure
        ``name[(rel=grade)][@cutoff]``. A measure comes back as it is.

    Returns
    -------
    Measure
        The measure.

    Raises
    ------
    UserError
        If it cannot be read, there is no such measure or option, or it is an estimand of another
        kind.
    """
    found = estimand(text)
    if not isinstance(found, Measure):
        raise UserError(
            f"{found!r} is no measure of relevance, which is needed here, such as nDCG@3"
        )
    return found


@cache
def estimands() -> dict[str, str]:
    """List every estimand: its name, and where it is defined; those of other packages too."""
    return _table().paths()


def _table() -> ExtensionTable:
    own = {name: f"{__package__}.{path}" for name, path in ESTIMANDS.items()}
    return ExtensionTable("measure", "ranktilt.measures", own, _fault)


def _fault(loaded: object, name: str) -> str:
    return "" if isinstance(loaded, Estimand) else f"is no estimand, but {type(loaded).__name__}"


def every_estimand() -> tuple[Estimand, ...]:
    """Load each estimand."""
    return tuple(map(_named, estimands()))


def _named(name: str) -> Estimand:
    if name not in estimands():
        typed = (
            _typed(one)
            for one in every_estimand()
            if one.name not in ("RelativeDelta", "Preference", "GradeGap")
        )
        raise unknown("measure", name, typed)
    loaded: Estimand = _table().load(name)
    return loaded


def _typed(one: Estimand) -> str:
    return f"{one.name}@k" if one.kind in ("relevance", "group", "property") else one.name


def _options(written: str, text: str, of: Estimand) -> dict[str, Any]:
    valid = [f.name for f in fields(of) if f.name != "cutoff"]
    if written.strip() and not valid:
        raise UserError(f"measure {of.name} takes no option, got {text!r}")
    options: dict[str, Any] = {}
    for piece in written.split(",") if written.strip() else []:
        name, equals, value = (part.strip() for part in piece.partition("="))
        if not equals:
            raise UserError(f"cannot read measure {text!r}: expected name[(rel=grade)][@cutoff]")
        if name not in valid:
            raise unknown(f"option of measure {text!r}", name, valid)
        if name in options:
            raise UserError(f"option {name!r} of measure {text!r} is given twice")
        words = name in of.choices or name in of.free
        options[name] = (
            value if words else whole_number(value, f"option {name} of measure {text!r}")
        )
    return options


ALIASES = {
    "map": "AP",
    "mrr": "RR",
    "recip_rank": "RR",
    "recall": "R",
    "prec": "P",
    "precision": "P",
}
"""Measures by other names, in small letters. trec_eval's map_cut is AP with a cutoff."""
# trec_eval: ndcg_cut.10, ndcg_cut_10, recall.100, P_20; mteb and BEIR: ndcg_at_10.
_CUT = re.compile(r"(?P<name>\w+?)(?:_cut|_at)?[._](?P<cutoff>[0-9]+)")


def canonical(name: str, cutoff: str | None, names: Collection[str]) -> tuple[str, str | None]:
    """Return a measure's name here, of `names`, and its cutoff; an exact name is taken as it is, an unknown one too."""
    if name in names:
        return name, cutoff
    folded = {**ALIASES, **{known.casefold(): known for known in names}}
    cut = _CUT.fullmatch(name)
    if name.casefold() not in folded and cut and cut["name"].casefold() in folded:
        if cutoff is not None:
            raise UserError(f"measure {name}@{cutoff} has two cutoffs; give only one")
        name, cutoff = cut["name"], cut["cutoff"]
    return folded.get(name.casefold(), name), cutoff


def whole_number(value: str, what: str) -> int:
    """Read a whole number; `what` it is stands in the `UserError`."""
    if not re.fullmatch("-?[0-9]+", value):
        raise UserError(f"{what}: expected a whole number, got {value!r}")
    return int(value)
