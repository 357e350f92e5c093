"""Estimands: questions with a number for an answer, written in one notation, such as ``nDCG@3``.

`Estimand` is what all of them have in common. A `Measure` asks how well a ranking serves the
relevant documents of one group. A `GroupEstimand` asks at which ranks two groups are, relevant or
not. `twins.base` has the questions about twins, the two versions of one document.

- *group*: a set of documents, such as all human texts; two of them are compared, *a* and *b*
- *label*: it says which group a document is in; a *labeling* gives every document a label
- *tie block*: the documents of one list with the same score, of which all orders are equally likely
- *entry*: a document in the list of a query
- *random labels*: labels dealt out by chance; the answers that they give show how far from neutral
  an answer may be although no group is favoured
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, ClassVar, Literal, Self

import numpy as np

from ranktilt.errors import UserError, shorten, unknown_name
from ranktilt.extensions import ExtensionTable
from ranktilt.measures.notation import (
    Notation,
    canonical,
    read_contrast,
    read_notation,
    whole_number,
)
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
"""Module and object of every estimand by the name that users type; imported at the first use."""
_UNTYPED = ("RelativeDelta", "Preference", "GradeGap")
"""Names that nobody types, so that no message offers them: commands ask these by themselves."""
_LARGEST_CUTOFF = (1 << 31) - 1
"""Largest cutoff: the largest integer of 32 bits, far beyond any list."""


@dataclass(frozen=True, repr=False)
class Estimand:
    """A question with a number for an answer: what to compute, what it means, and how it prints.

    A new estimand takes one class in one file, and one line in `ESTIMANDS` or, in another package,
    an entry point of the group ``ranktilt.measures``. Tables, pages and the command line read what
    they need from the object.

    A value is computed from two columns with one row for each query, `total` and `weight`: it is
    ``Σ total / Σ weight``, unless the estimand says otherwise. For a share of wins, for example,
    the total counts a query's wins and the weight its pairs. Intervals and tests resample the rows.

    Parameters
    ----------
    cutoff : int, optional
        Number of ranks that count, written ``@k``; None for all. Some estimands need one.

    Raises
    ------
    UserError
        If the estimand cannot have the cutoff or option.
    """

    cutoff: int | None = None

    name: ClassVar[str]
    """Name that users type: ``nDCG``."""
    kind: ClassVar[Literal["relevance", "group", "twins", "choices", "grades", "property"]]
    """Input that it reads, apart from rankings.

    ``relevance``: judgments; ``group``: the groups of documents; ``twins``: pairs of versions;
    ``choices``: answers to "which of two documents?"; ``grades``: a judge's grades; ``property``: a
    number for each document."""
    unit: ClassVar[Literal["query", "pair", "list"]] = "query"
    """What its values are averaged over: queries, pairs of documents, or lists."""
    question: ClassVar[str] = ""
    """Question that it answers, in one line."""
    bounds: ClassVar[tuple[float, float]] = (-np.inf, np.inf)
    """Smallest and largest value."""
    neutral: ClassVar[float] = 0.0
    """Value that favours neither group, if the groups are twins.

    For other groups, the neutral value is the median under random labels.
    """
    per_ratio: ClassVar[float] = 1.0
    """Value of the estimand where ``Σ total / Σ weight`` is 1; 100 for an estimand in percent."""
    descriptive: ClassVar[bool] = False
    """Whether its value is only described, and never judged.

    Then it gets no verdict, its p is not among those that are corrected for several tests, and it
    cannot contradict another estimand.
    """
    directed: ClassVar[bool] = False
    """Whether swapping the groups makes it another question, instead of changing the sign.

    A mean of ratios is directed: it is not 1 over the mean of the inverse ratios."""
    sided: ClassVar[bool] = True
    """Whether it favours one of two groups; an estimand over all groups together favours none."""
    outside: ClassVar[tuple[str, str]] = (
        "lower than random rankings",
        "higher than random rankings",
    )
    """Words for a value below and above what random rankings give, if it is not `sided`."""
    scale: ClassVar[float] = 1.0
    """Factor from values to printed numbers: 100 for a share that is printed in percent."""
    digits: ClassVar[int] = 1
    """Decimals of printed numbers."""
    signed: ClassVar[bool] = True
    """Whether numbers are printed with their sign, also a plus."""
    suffix: ClassVar[str] = ""
    """Unit behind a printed answer."""
    term: ClassVar[str] = ""
    """Title in the glossary."""
    definition: ClassVar[str] = ""
    """Definition in the glossary, in a sentence or two."""
    pattern: ClassVar[str] = ""
    """Regular expression that finds the estimand in printed text; if empty, `term` is looked
    for."""
    needs_cutoff: ClassVar[bool] = False
    """Whether it is undefined without a cutoff, as precision is."""
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Valid values of the options that are words."""
    free: ClassVar[tuple[str, ...]] = ()
    """Options that may be any text without commas and parentheses, such as a name of a column."""

    def __post_init__(self) -> None:
        self._check_numbers()
        self._check_cutoff()
        self._check_choices()

    def _check_numbers(self) -> None:
        """Refuse an option that is no whole number, unless the option takes words."""
        for option in fields(self):
            if option.name in self.choices or option.name in self.free:
                continue
            value = getattr(self, option.name)
            # Not isinstance: True would pass as 1.
            if value is not None and type(value) is not int:
                raise UserError(
                    f"measure {self.name}: expected a whole number as {option.name}, got {value!r}"
                )

    def _check_cutoff(self) -> None:
        """Refuse a cutoff that is no rank."""
        if self.cutoff is not None and not 1 <= self.cutoff <= _LARGEST_CUTOFF:
            bound = "at least 1" if self.cutoff < 1 else f"at most {_LARGEST_CUTOFF:,}"
            raise UserError(
                f"measure {self.name}: expected a cutoff of {bound}, got @{self.cutoff}"
            )

    def _check_choices(self) -> None:
        """Refuse a word that is not among the valid words of its option."""
        for option, valid in self.choices.items():
            word = getattr(self, option)
            if word not in valid:
                raise unknown_name(f"{option} of measure {self.name}", str(word), valid)

    def __matmul__(self, cutoff: int) -> Self:
        """Return the same estimand with a cutoff: ``nDCG @ 3``."""
        return replace(self, cutoff=cutoff)

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value}" for name, value in self.options.items())
        parentheses = f"({options})" if options else ""
        cutoff = "" if self.cutoff is None else f"@{self.cutoff}"
        return f"{self.name}{parentheses}{cutoff}"

    @property
    def options(self) -> dict[str, Any]:
        """Options that differ from their defaults, by name, without the cutoff."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            field.name: values[field.name]
            for field in fields(self)
            if field.name != "cutoff" and values[field.name] != field.default
        }

    @property
    def key(self) -> str:
        """Name in saved audits, without the cutoff."""
        return self.name

    @property
    def title(self) -> str:
        """Name in tables and pages."""
        return repr(self)

    @property
    def reads_scores(self) -> bool:
        """Whether it needs the scores themselves; most estimands need only their order."""
        return False

    def amount(self, value: float, *, sign: bool | None = None, digits: int | None = None) -> str:
        """Print a value without its unit; a dash for NaN.

        `sign` says whether a plus is printed too, and `digits` how many decimals; if None, the
        estimand decides.
        """
        if math.isnan(value):
            return "–"
        has_sign = self.signed if sign is None else sign
        print_number = signed if has_sign else rounded
        text = print_number(self.scale * value, self.digits if digits is None else digits)
        # Numbers with three decimals are printed as in papers, .345 for 0.345.
        return re.sub(r"^([+−]?)0\.", r"\1.", text) if self.digits > 2 else text

    def answer(self, value: float) -> str:
        """Print a value with its unit; a dash for NaN."""
        return "–" if math.isnan(value) else f"{self.amount(value)}{self.suffix}"

    @property
    def point(self) -> float:
        """Size of one point in the estimand's values; margins are in points.

        .01 for a share from 0 to 1, and 1 for a value in percent. NaN for an estimand whose values
        are no percentages and no ratios, such as ranks.
        """
        if self.suffix in (" %", " points"):
            return 1 / self.scale
        # A neutral value of 1 is that of a ratio.
        return 0.01 if self.neutral == 1 else float("nan")

    def counts(self, total: Floats, weight: Floats) -> Bools:
        """Tell from both columns which queries have an answer to the question."""
        return weight > 0

    def value(self, total: Floats, weight: Floats, *, rounding: str = "none") -> float:
        """Compute the estimand's value from the columns of all queries; NaN if none has an answer.

        `rounding` is ``none``, or ``paper`` to round means to 0.1 % first, as published tables do.
        """
        weight_sum = float(weight.sum())
        return float(total.sum()) / weight_sum if weight_sum else float("nan")

    def combine(self, total: Floats, weight: Floats) -> Floats:
        """Compute values from means of both columns, one for each resample of the bootstrap.

        The same formula as `value`, for arrays.
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            return total / weight

    def differences(self, total: Floats, weight: Floats) -> Floats:
        """Return each query's number for a test that flips signs (`sign_flip_p`).

        It changes its sign if the two groups are swapped, and is 0 for a query that favours neither
        group.
        """
        return total

    def residuals(self, total: Floats, weight: Floats, ratio: float) -> Floats:
        """Return each query's residual, ``total − ratio · weight``, for the standard error.

        It is how far the query pulls the estimate away from its value; the residuals of all queries
        sum to 0. `ratio` is the estimand's value divided by `per_ratio`.
        """
        return total - ratio * weight

    def denominator(self, total: Floats, weight: Floats) -> Floats:
        """Return each query's part of the denominator, ``Σ weight``."""
        return weight

    def depends_on_order(self, lengths: Ints) -> Bools:
        """Tell for each list, by its length, whether another order could change its answer.

        If it could not, the list says nothing about the ranker.
        """
        return np.ones(len(lengths), dtype=bool)

    def means(self, total: Floats, weight: Floats) -> dict[str, float]:
        """Return means that are printed with the answer, by name; empty for most estimands."""
        return {}

    def complete(self) -> Self:
        """Return the estimand itself; refuse one that lacks the cutoff it needs."""
        if self.needs_cutoff and self.cutoff is None:
            raise UserError(f"measure {self.name} needs a cutoff, such as {self.name}@10")
        self.require_measure()
        return self

    def require_measure(self) -> None:
        """Refuse an estimand that is of a measure, such as Relative Δ, and names none."""


@dataclass(frozen=True, repr=False)
class Measure(Estimand):
    """A relevance measure: one value in [0, 1] for each query and group, higher is better.

    Parameters
    ----------
    cutoff : int, optional
        Number of ranks that count; all if None. P and R need one.
    rel : int, optional
        Smallest grade that counts as relevant; not for measures that read the grades themselves.

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
    """Whether it only asks if a document is relevant, and not how relevant."""
    linear: ClassVar[bool] = True
    """Whether ``M_a − M_b`` of twins is a sum over documents, in which each label has its own term.

    If so, the effect of exchanging the labels of one pair of twins does not depend on the others.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rel < 1:
            raise UserError(f"measure {self.name}: expected rel of at least 1, got rel={self.rel}")
        if self.rel != 1 and not self.binary:
            raise UserError(
                f"measure {self.name} takes no option rel: it uses the grades themselves"
            )

    def __call__(self, *, rel: int = 1) -> Self:
        """Return the same measure with another smallest relevant grade."""
        return replace(self, rel=rel)

    @property
    def gain_grade(self) -> int:
        """Smallest grade that gains 1; 0 for a measure in which each grade is its own gain."""
        return self.rel if self.binary else 0

    def per_document(self, before: Ints, size: Ints) -> Floats:
        """Return what each relevant document of a tie block adds to `totals`, for a gain of 1.

        Only measures that are sums over documents have this. Each block has `size` documents, and
        `before` documents are above it.
        """
        raise NotImplementedError

    def totals(self, ranking: Ranking, gains: Floats) -> Floats:
        """Return the numerator of the measure for each query, shape (n_queries,).

        The measure is this sum divided by `ideal`. It counts documents down to the cutoff, and is
        the expected value over all orders of tied documents. `gains` has a number for each entry of
        the ranking: 0 if its document is not relevant, else its grade, or 1 if the measure is
        binary.
        """
        return per_query(
            ranking, per_block(ranking, gains) * self.per_document(ranking.before, ranking.sizes)
        )

    def ideal(self, judged: Judged) -> Floats:
        """Return the `totals` of the best possible ranking.

        0 for a query without a relevant document.
        """
        return self.best(judged.count(self.rel).astype(np.float64))

    def label_weights(self, ranking: Ranking, gains: Floats) -> Floats:
        """Return what a relevant document of each tie block adds to ``M_a − M_b`` of twins.

        M_a and M_b are the measure for the two groups. `relevance.label_weights` divides the result
        by `ideal`. The parameters are those of `totals`; the result has the shape (n_blocks,).
        """
        return self.per_document(ranking.before, ranking.sizes)

    def block_factors(
        self, before: Ints, size: Ints, hit_counts: Ints
    ) -> tuple[tuple[Floats, ...], Any]:
        """Return factors of tie blocks that are the same for all labelings.

        A labeling says which documents belong to the group; `permuted_labels` draws many at random.
        `block_totals` computes the measure's totals from these factors and the labels.

        Parameters
        ----------
        before, size : ndarray of int64, shape (n_blocks,)
            Number of documents above each block, and in it. Blocks without a relevant document are
            left out.
        hit_counts : ndarray of int64, shape (n_blocks,)
            Number of relevant documents in each block, if all of them belong to the group.

        Returns
        -------
        tuple
            One or more factors of each block, and a table for `block_totals` to look values up in,
            or None if it needs no table.
        """
        return (self.per_document(before, size),), None

    def block_totals(self, factors: tuple[Any, ...], table: Any, hits: Hits) -> Floats:
        """Return `totals` under many labelings together, shape (n_queries, n_labelings).

        `factors` are those of `block_factors` as sparse matrices of shape (n_queries, n_blocks),
        and `table` is its table. `hits` has the gains of each block under each labeling.
        """
        totals: Floats = factors[0] @ hits.gains
        return totals

    def best(self, count: Floats) -> Floats:
        """Return the `totals` of the best possible ranking, as `ideal` does, for a binary measure.

        `count` is the number of relevant documents of each query.
        """
        return count

    def discount(self, depth: int) -> Floats:
        """Return the factor by which a grade counts at rank 1, 2, … `depth` of the best ranking.

        The result starts with a 0 for "rank 0", which stands for documents of another group. Only
        measures that read the grades themselves need it.
        """
        raise NotImplementedError


@dataclass(frozen=True, repr=False)
class GroupEstimand(Estimand):
    """A question about the ranks of two groups of documents, relevant or not.

    Its answer for one query is called the query's *contrast*.
    """

    unit = "list"
    kind = "group"

    @property
    def is_difference_of_sums(self) -> bool:
        """Whether the answer is a difference of two groups' sums over documents.

        It is if the estimand has its own `weights`.
        """
        return type(self).weights is not GroupEstimand.weights

    def weights(self, ranking: Ranking) -> Floats | None:
        """Return the weight of each entry, if the answer is a difference of two sums of weights.

        The answer is then the sum over the first group minus the sum over the second.

        Parameters
        ----------
        ranking : Ranking
            Each query's list, down to the cutoff.

        Returns
        -------
        ndarray of float64, shape (n_entries,), or None
            With weights, a formula gives how much the answer varies under random labels. None if
            there are no such weights; then the labels of each list are shuffled many times.
        """
        return None

    def columns(self, ranking: Ranking, first: Bools, second: Bools) -> tuple[Floats, Floats]:
        """Return the columns `total` and `weight` of the queries.

        By default, the total is a query's contrast and the weight 1; both are 0 for a query without
        an answer. The parameters are those of `contrast`.
        """
        contrasts = self.contrast(ranking, first, second)
        is_known = ~np.isnan(contrasts)
        return np.where(is_known, contrasts, 0.0), is_known.astype(np.float64)

    def label_effects(
        self, ranking: Ranking, first: Bools, second: Bools
    ) -> tuple[Floats, Floats] | None:
        """Return the effect of each entry's label on its query's total, and on its weight.

        The effect is how much the total would change if the document had the mean label of the list
        instead of its own. The standard error over documents is computed from these effects. None
        if they are not known. The parameters are those of `contrast`.
        """
        return None

    def label_coefficients(self, ranking: Ranking, labelled: Bools) -> Floats | None:
        """Return what each entry's label adds to its query's answer; None if that is not a sum.

        The answer is the sum of the coefficients of the first group's entries minus the sum of
        those of the second group's. Such an answer is linear in the labels, so it can be corrected
        for labels that are wrong. `labelled` says which entries have a label.
        """
        weights = self.weights(ranking)
        return None if weights is None else np.where(labelled, weights, 0.0)

    def composition(self, ranking: Ranking, first: Bools, second: Bools) -> dict[str, float]:
        """Return numbers about the lists that are printed with the answer; empty by default.

        The parameters are those of `contrast`.
        """
        return {}

    def contrast(self, ranking: Ranking, first: Bools, second: Bools) -> Floats:
        """Answer the question for each query.

        Parameters
        ----------
        ranking : Ranking
            Each query's list, from the first rank to the last.
        first, second : ndarray of bool, shape (n_entries,)
            Entries of either group.

        Returns
        -------
        ndarray of float64, shape (n_queries,)
            NaN for a query that gives no answer, such as a list with documents of one group only.
        """
        raise NotImplementedError


def estimand(text: object) -> Estimand:
    """Read an estimand's text; the inverse of its ``repr``.

    Names from trec_eval, mteb and ir_measures work too.

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
    # RelativeDelta is the only estimand with a measure's text in its parentheses.
    name_and_measure = read_contrast(text)
    if name_and_measure is not None:
        name, measure_text = name_and_measure
        if measure_text.strip():
            return replace(_load(name), of=measure(measure_text))  # type: ignore[call-arg]
    notation = read_notation(text)
    name, cutoff = canonical(notation.name, notation.cutoff, estimands())
    loaded = _load(name)
    loaded.require_measure()
    options = _read_options(notation, loaded)
    if options:
        loaded = replace(loaded, **options)
    if cutoff is not None:
        loaded = loaded @ whole_number(cutoff, f"cutoff of measure {shorten(text)}")
    return loaded.complete()


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
    loaded = estimand(text)
    if not isinstance(loaded, Measure):
        raise UserError(f"expected a measure of relevance, such as nDCG@3, got {loaded!r}")
    return loaded


@cache
def estimands() -> dict[str, str]:
    """Return ``module:object`` of every estimand by its name, including other packages'."""
    return _estimand_table().paths()


def every_estimand() -> tuple[Estimand, ...]:
    """Load each estimand."""
    return tuple(map(_load, estimands()))


def _estimand_table() -> ExtensionTable:
    """Return the table that loads estimands: ours, and those of other packages."""
    paths = {name: f"{__package__}.{path}" for name, path in ESTIMANDS.items()}
    return ExtensionTable("measure", "ranktilt.measures", paths, _entry_point_fault)


def _entry_point_fault(loaded: object, name: str) -> str:
    """Say why the object of an entry point is refused; an empty text if it is an estimand."""
    return "" if isinstance(loaded, Estimand) else f"is not an estimand: {type(loaded).__name__}"


def _load(name: str) -> Estimand:
    """Import an estimand; an unknown name is refused with the names that may have been meant."""
    if name not in estimands():
        typed = [_hint(loaded) for loaded in every_estimand() if loaded.name not in _UNTYPED]
        raise unknown_name("measure", name, typed)
    loaded: Estimand = _estimand_table().load(name)
    return loaded


def _hint(loaded: Estimand) -> str:
    """Write an estimand as a message offers it, with the cutoff that it may have."""
    has_cutoff = loaded.kind in ("relevance", "group", "property")
    return f"{loaded.name}@k" if has_cutoff else loaded.name


def _read_options(notation: Notation, loaded: Estimand) -> dict[str, Any]:
    """Read the options in parentheses, and refuse those that the estimand does not have."""
    valid = [field.name for field in fields(loaded) if field.name != "cutoff"]
    if notation.has_options and not valid:
        raise UserError(f"measure {loaded.name} takes no option, got {notation.text!r}")
    options: dict[str, Any] = {}
    for name, value in notation.options():
        if name not in valid:
            raise unknown_name(f"option of measure {notation.text!r}", name, valid)
        if name in options:
            raise UserError(f"option {name!r} of measure {notation.text!r} is given twice")
        is_word = name in loaded.choices or name in loaded.free
        label = f"option {name} of measure {notation.text!r}"
        options[name] = value if is_word else whole_number(value, label)
    return options
