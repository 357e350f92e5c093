"""The methods of a bench of corrections: what each learns from the queries to fit on, and its ranker at a strength."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ranktilt.auditing.audit import audit
from ranktilt.auditing.groups import Pair, grouping
from ranktilt.data.collection import Collection
from ranktilt.data.group_names import REST
from ranktilt.data.run import Run
from ranktilt.errors import UserError, unknown
from ranktilt.explaining.perplexity import NGRAM, PerplexityProbe
from ranktilt.measures.base import Estimand
from ranktilt.mitigation.base import Correction
from ranktilt.mitigation.causal import Causal, fit_causal
from ranktilt.mitigation.factor_instrument import factor_instrument
from ranktilt.mitigation.fair_rerank import METHODS as FAIR_METHODS
from ranktilt.mitigation.fair_rerank import FairReRank
from ranktilt.mitigation.interleave import Interleave
from ranktilt.mitigation.offset import Offset, fit_offset
from ranktilt.mitigation.projection import fit_direction
from ranktilt.rankers.base import Ranker
from ranktilt.rankers.dense.retriever import Dense

FAIR = "fair-rerank"
FEW = 100
"""Resamples of audits of which values alone are read: the fewest there may be."""


@dataclass(frozen=True, kw_only=True)
class Fitting:
    """What methods learn from: queries that are not tested on, and what the ranker found for them."""

    collection: Collection
    """With the queries to fit on."""
    run: Run
    """Of these queries."""
    ranker: Ranker | None
    """What made the run; None where only the run is at hand."""
    pair: Pair
    folder: Path
    """What is fitted goes into it, a file each."""
    by: str = "source"
    page: int = 10
    """First ranks on which shares and exposure are fitted."""
    target: float | None = None
    """Where the dials of fair re-ranking end, in the unit of the method's estimand; level by default."""
    held_out: AbstractSet[str] = frozenset()
    """Origins that nothing may be learned from: of what is relevant to queries to select by and to test on."""
    other: str = ""
    """What the collection is called, where another one is levelled; its groups may be others."""
    groups: tuple[str, ...] = ()
    """Those of what is levelled."""
    lm: str = NGRAM
    instrument: str | None = None
    """A factor of the collection in place of the source, for the causal correction."""
    seed: int = 0
    force: bool = False
    sentences: list[str] = field(default_factory=list)
    """What was found, a line a fit."""

    def value(self, question: str | Estimand, pair: Pair | None = None) -> float:
        found = audit(
            self.collection,
            self.run,
            [question],
            by=self.by,
            pairs=[pair or self.pair],
            confounds=False,
            keep_top=0,
            resamples=FEW,
        )
        return next((e.value for e in (*found.tilts, *found.card)), float("nan"))

    @cached_property
    def protected(self) -> Pair:
        """The group that holds less of the first ranks, and the other one; few judgments are left to fit on."""
        favours = self.value(f"Share@{self.page}")
        return self.pair if favours < 0 else (self.pair[1], self.pair[0])

    def need_ranker(self, method: str) -> Ranker:
        """Return the ranker; refuses a saved run."""
        if self.ranker is None:
            raise UserError(
                f"{method} needs the ranker itself, and {self.run.name} is a saved run; leave it out"
            )
        return self.ranker

    def need_groups(self, needed: Sequence[str]) -> None:
        """Refuse another collection that lacks a group."""
        if not self.other:
            return
        try:
            held = grouping(self.collection, self.by).names
        except UserError as error:
            raise UserError(f"{self.other}: {error}") from error
        lacking = next((name for name in needed if name not in held), None)
        if lacking is not None:
            raise UserError(
                f"{self.other} has no {self.by} {lacking!r} to fit on (valid: {', '.join(held)})"
            )

    def keep(self, name: str, save: Callable[[Path], object], sentence: str) -> str:
        """Write what was fitted of this ranker, note what it says, and return the file's name."""
        ranker = re.sub(r"[^a-z0-9.]+", "-", self.run.name.lower())[:60].strip("-.") or "ranker"
        place = self.folder / f"{ranker}-{name}"
        save(place)
        self.sentences.append(f"{Path(name).stem}: {sentence}")
        return str(place)


At = Callable[[float], Ranker]
"""A method's ranker by strength, from 0, nothing, to 1: a correction, or the ranker itself with something removed."""


def causal(fitting: Fitting) -> At:
    """Take the part of the scores away that perplexity explains."""
    ranker, instrument = fitting.need_ranker("causal"), None
    between: dict[str, Any] = {
        "reference": fitting.pair[0],
        "source": fitting.pair[1],
        "force": fitting.force,
    }
    if fitting.instrument is None:
        fitting.need_groups(fitting.pair)
    else:
        instrument = factor_instrument(fitting.collection, fitting.instrument, **between)
    fit = fit_causal(
        fitting.collection,
        ranker,
        probe=PerplexityProbe(fitting.lm),
        seed=fitting.seed,
        instrument=instrument,
        **between,
    )
    file = fitting.keep("causal.json", fit.save, fit.sentence)
    return lambda strength: Causal(fit=file, strength=strength, by=fitting.by)


def projection(fitting: Fitting) -> At:
    """Take the direction out of the vectors that parts the twins."""
    dense = fitting.need_ranker("projection")
    if not isinstance(dense, Dense):
        raise UserError(
            f"projection takes a direction out of vectors, and {dense!r} has none; it is for dense rankers"
        )
    fitting.need_groups(fitting.pair)
    a, b = fitting.pair
    fit = fit_direction(
        fitting.collection,
        dense,
        reference=a,
        source=b,
        leave_out=fitting.held_out,
        seed=fitting.seed,
    )
    file = fitting.keep("direction.json", fit.save, fit.sentence)
    return lambda strength: replace(dense, project=file, project_strength=strength)


def offset(fitting: Fitting) -> At:
    """Add a constant to the scores of each group."""
    fitting.need_groups(fitting.groups)
    fit = fit_offset(
        fitting.collection, fitting.run, by=fitting.by, reference=fitting.pair[0], seed=fitting.seed
    )
    file = fitting.keep("offset.json", fit.save, fit.sentence)
    return lambda strength: Offset(fit=file, strength=strength, by=fitting.by)


def interleave(fitting: Fitting) -> At:
    """Take from each group in turn."""
    return lambda strength: Interleave(strength=strength, by=fitting.by, seed=fitting.seed)


def fair_rerank(fitting: Fitting, method: str = FAIR_METHODS[0]) -> At:
    """Raise the group that is put lower to the target, from as far below it as it is today, or is above it."""
    fitting.need_groups(fitting.pair)
    group, other = fitting.protected
    if (
        len(grouping(fitting.collection, fitting.by).names) > 2
    ):  # it holds the group against all others together
        other = REST
    exposure = method == "exposure"
    asked, scale, end, least = (
        (f"ExposureRatio@{fitting.page}", 1, 1.0, 0.0)
        if exposure
        else (f"Share@{fitting.page}", 100, 0.0, -100.0)
    )
    today = scale * fitting.value(asked, (group, other))
    if not math.isfinite(today):
        raise UserError(
            f"{FAIR}: {asked} is undefined on the queries to fit on: no list has {group} beside others"
        )
    end = end if fitting.target is None else fitting.target

    def at(strength: float) -> Ranker:
        target = (
            end if strength == 1 else max(round(end - (1 - strength) * abs(end - today), 6), least)
        )
        return FairReRank(
            method=method, group=group, target=target, by=fitting.by, seed=fitting.seed
        )

    at(1.0)  # refuses a target out of range
    return at


METHODS: Mapping[str, Callable[[Fitting], At]] = {
    "causal": causal,
    "projection": projection,
    FAIR: fair_rerank,
    "interleave": interleave,
    "offset": offset,
}
"""Methods by name; ``fair-rerank:METHOD`` names one of fair re-ranking."""


def method_named(name: str) -> Callable[[Fitting], At]:
    """Find a method; `UserError` if there is none of that name."""
    kind, colon, more = name.partition(":")
    if kind not in METHODS or (colon and kind != FAIR):
        raise unknown("method", name, METHODS)
    if not colon:
        return METHODS[kind]
    if more not in FAIR_METHODS:
        raise unknown(f"method of {FAIR}", more, FAIR_METHODS)
    return lambda fitting: fair_rerank(fitting, more)


def correct(
    at: Ranker, collection: Collection, run: Run, searched: Collection | None = None
) -> Run:
    """Rank with a method at a strength: correct a run, or search anew where the ranker itself is another.

    `searched` is what is searched where that is only a part of the collection, which the correction
    knows whole.
    """
    return (
        at.rank(collection, run) if isinstance(at, Correction) else at.rank(searched or collection)
    )
