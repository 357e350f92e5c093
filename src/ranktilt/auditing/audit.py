"""The one call: audit(collection, runs, measures, by=…)."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ranktilt._version import __version__
from ranktilt.auditing.card import DEPTH, HEAD_TO_HEAD, Card, CardKey, card_estimands
from ranktilt.auditing.confounds import Confound
from ranktilt.auditing.confounds import confounds as text_confounds
from ranktilt.auditing.contributions import Contributions
from ranktilt.auditing.effects import Effect
from ranktilt.auditing.groups import ALL, Groups, Pair, are_twins, grouped_pairs, twin_rows
from ranktilt.auditing.judged_rankings import JudgedRun, Judgments, group_values
from ranktilt.auditing.list_variation import list_variations, with_variation
from ranktilt.auditing.notes import (
    card_notes,
    group_notes,
    identical_notes,
    judgment_notes,
    lone_group_notes,
    repeated_notes,
    run_notes,
    source_notes,
    sparse_notes,
    twin_notes,
    variation_notes,
    without_fitted,
)
from ranktilt.auditing.null_distributions.base import NullDistribution, Shuffles, enough
from ranktilt.auditing.null_distributions.judged_documents import (
    Task,
    exchange_p,
    judged_labels,
    null_deltas,
    relevant_clusters,
)
from ranktilt.auditing.null_distributions.twins import TwinPairs
from ranktilt.auditing.numerical_noise import NumericalNoise, hanging, numerical_noise
from ranktilt.auditing.options import check_choices, check_resamples, files_of_runs, usual_primary
from ranktilt.auditing.result import PAIR_COUNTS, Audit, QueryAnswers
from ranktilt.auditing.significance import InferenceOptions, Sample, effects
from ranktilt.auditing.top_results import KEEP_TOP, TopResults
from ranktilt.data.collection import Collection
from ranktilt.data.files import sha256
from ranktilt.data.formats.runfile import unwritable
from ranktilt.data.run import Run, named_apart
from ranktilt.errors import UserError, counted, join_words, refuse_twice, shorten
from ranktilt.measures.base import Estimand, GroupEstimand, Measure, estimand
from ranktilt.measures.contrast import RelativeDelta
from ranktilt.measures.exposure.base import AttentionEstimand
from ranktilt.measures.margin import LEVEL, Margin, read_margin, require_unit
from ranktilt.measures.twins.base import TwinLists
from ranktilt.measures.twins.head_to_head import PairCounts, pair_counts
from ranktilt.statistics.bootstrap import RESAMPLES

DEFAULT_MEASURES = ("nDCG@1", "nDCG@3", "nDCG@5", "nDCG@10", "AP@1", "AP@3", "AP@5")
SHARE = "Share@10"
LONE_DEPTH = 10
"""First ranks of which a group's share is given where there is nothing to compare it with."""
CARD_ROWS = 6
PACKAGES = ("numpy", "scipy", "polars", "PyStemmer")


def audit(
    collection: Collection,
    runs: Run | Sequence[Run],
    measures: str | Estimand | Iterable[str | Estimand] | None = None,
    *,
    primary: str | Estimand | None = None,
    card: bool = False,
    depth: int = DEPTH,
    confounds: bool = True,
    by: str | None = "source",
    pairs: Iterable[Pair] | None = None,
    missing: str = "zero",
    ties: str = "expected",
    rounding: str = "none",
    test: str = "interval",
    correction: str = "holm",
    level: Margin = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = 0,
    keep_top: int = KEEP_TOP,
) -> Audit:
    """Measure each group of documents on the same rankings, and compare the groups.

    Parameters
    ----------
    collection : Collection
        Documents, queries and judgments; every judgment counts in the row ``all``.
    runs : Run or sequence of Run
        Rankings of the mixed collection.
    measures : str, Estimand or iterable of them, optional
        By default nDCG at 1, 3, 5 and 10 and AP at 1, 3 and 5; none where nothing is judged.
        Estimands that are no measures of relevance, such as ``"NDSR@20"``, are answered on the
        card.
    primary : str or Estimand, optional
        The question that verdicts answer, chosen before the data are seen; all others are
        secondary. By default the deepest nDCG of `measures`, or else the first of them; where
        nothing is judged or asked, head-to-head over all twins, and Share@10 where there are none.
        Of groups that are no sources ExposureRatio leads, where it is asked.
    card : bool, optional
        Ask the other questions too: who fills the page, which twin stands higher and by how much
        (`Audit.card`).
    depth : int, optional
        Ranks over which ΔNDSR counts who fills the page.
    confounds : bool, optional
        Compare the texts of the sources too (`Audit.confounds`); only by ``source``, and only where
        there are texts.
    by : str or None, optional
        Document column to group by; None for no groups. Documents without a value are in no group,
        and counted. Where one group is left beside them, its values are given and nothing is
        compared.
    pairs : iterable of (str, str), optional
        Groups to compare, the first being favoured by positive values; all pairs by default.
    missing : {"zero", "exclude"}, optional
        Whether a judged query that a run lacks counts 0, as with trec_eval's ``-c``, or not at all
        for that run.
    ties : {"expected", "trec_eval"}, optional
        Expected value over all orders of tied documents, or trec_eval's order by id (for published
        numbers).
    rounding : {"none", "paper"}, optional
        Round means to 0.1 % before Relative Δ, as the papers do.
    test : {"interval", "t"}, optional
        The p: the level at which the interval first excludes what favours nobody; or, for twins, a
        paired t test over queries, as some papers computed it.
    correction : {"holm", "bonferroni"}, optional
        Of every p on the primary question (run × pair) together, and of every other p of a table.
    level : float or str, optional
        Half-width of what a verdict calls level, in points of percent; where the primary question
        has another unit, a text that names it: ``"0.5 ranks"``.
    resamples, seed : int, optional
        Bootstrap resamples; random seed of everything that is drawn.
    keep_top : int, optional
        Ranks that the audit keeps of every list, for its reports; fewer where runs hold over half a
        million results together. 0 keeps none.
    """
    if not isinstance(collection, Collection):
        raise UserError(
            f"expected a collection, got {shorten(collection)}; load it first: load(folder)"
        )
    judged = collection.qrels.height > 0
    asked = _estimands(measures, primary, judged=judged)
    runs = [runs] if isinstance(runs, Run | str) else named_apart(runs)
    options = {
        "missing": missing,
        "ties": ties,
        "rounding": rounding,
        "test": test,
        "correction": correction,
    }
    check_choices(**options)
    _check(asked, runs, depth)
    collection, fitted = without_fitted(collection, runs)
    level = read_margin(level)
    check_resamples(resamples)
    _refuse_ungrouped(by, asked, card=card, pairs=pairs)
    groups, chosen = grouped_pairs(collection, by, pairs, fewest=1)
    judgments = Judgments.of(collection, groups)
    if not asked and by is not None:  # nothing is judged
        asked = _usual_estimands(collection, groups, chosen)
    leading = _leading(asked, primary, by, level)
    found = [one for one in asked if isinstance(one, Measure)]
    others = [one for one in asked if not isinstance(one, Measure)]
    _refuse_unanswerable(others, runs, groups, judged=len(judgments.grade) > 0)
    if found:
        _refuse_unjudged(judgments, groups, chosen, collection)
    how = InferenceOptions(resamples, seed, test, correction, rounding)
    standard = card_estimands(depth, judged=len(judgments.grade) > 0) if card else ()
    questions = [*standard, *(one for one in others if one not in standard)]
    work = _AuditPlan(
        collection,
        groups,
        chosen,
        judgments,
        measures=found,
        questions=questions,
        primary=leading,
        runs=len(runs),
        ties=ties,
        how=how,
    )
    aligned = [JudgedRun.of(run, collection, judgments) for run in runs]
    values = np.stack(
        [_group_values(ranked, found, groups, ties=ties, missing=missing) for ranked in aligned]
    )
    variations = list_variations(aligned, groups, missing=missing)
    tilt_samples = work.samples(aligned, values)
    found_tilts = with_variation(effects(tilt_samples, how, primary=leading), variations)
    noise = work.noise(aligned, values, found_tilts)
    counts, answers = [pl.DataFrame(schema=PAIR_COUNTS)], list[tuple[CardKey, Sample]]()
    for number, one in enumerate(aligned):
        lists = {
            pair: twins.lists(one, missing) for pair, twins in work.twins.items() if len(twins.rows)
        }
        counts += work.pair_counts(one.run.name, lists)
        answers += work.asked.of_twins(number, one, lists)
    estimates, group_samples = work.card(aligned, answers, found_tilts if card else ())
    estimates = with_variation(estimates, variations)
    query_answers = tuple(map(_query_answers, group_samples))
    contributions = Contributions.from_samples(
        [*tilt_samples, *group_samples], collection, judgments.queries
    )
    if chosen and leading is not None:
        _refuse_unanswered(leading, (*found_tilts, *estimates))
    named: dict[str, Any] = {} if leading is None else {"primary": repr(leading)}
    named |= {} if pairs is None else {"pairs": [list(pair) for pair in chosen]}
    spec = {"by": by, "level": level, **options, "resamples": resamples, "seed": seed, **named}
    noted = hanging(noise, work.leading(found_tilts), level if isinstance(level, float) else LEVEL)
    notes = (*fitted, *work.notes(aligned, values, found_tilts, missing, estimates), *noted)
    return Audit(
        {**spec, **audit_provenance(collection, [run.spec for run in runs])},
        tuple(r.name for r in runs),
        tuple(found),
        (ALL, *groups.names),
        judgments.queries,
        values,
        found_tilts,
        pl.concat(counts),
        notes,
        estimates,
        work.confounds(collection, runs) if confounds and by == "source" else (),
        repeated={one.run.name: one.repeated for one in aligned if one.repeated},
        top_results=TopResults.of(runs, keep_top) if keep_top else None,
        query_answers=query_answers,
        contributions=contributions,
        noise=noise,
    )


def _usual_estimands(
    collection: Collection, groups: Groups, pairs: Sequence[Pair]
) -> list[Estimand]:
    """Return what is asked where nothing is judged: head-to-head of twins, or who holds the first ranks."""
    has_twins = any(len(twin_rows(collection, groups, pair)) for pair in pairs)
    return list(HEAD_TO_HEAD) if has_twins else [estimand(SHARE)]


def _group_values(
    aligned: JudgedRun, measures: Sequence[Measure], groups: Groups, *, ties: str, missing: str
) -> np.ndarray:
    """Return a run's values of every measure, group and query; NaN for queries that count nowhere."""
    values = group_values(aligned, measures, groups, ties)
    values[:, :, aligned.left_out(missing)] = np.nan
    return values


def _query_answers(sample: Sample) -> QueryAnswers:
    return QueryAnswers(
        sample.run, sample.estimand, sample.a, sample.b, one=sample.one, two=sample.two
    )


def _refuse_unanswered(primary: Estimand, effects: Sequence[Effect]) -> None:
    """Refuse a primary question that no effect answers, and name those that can be asked."""
    if any(effect.measure == repr(primary) for effect in effects):
        return
    others = dict.fromkeys(effect.measure for effect in effects if not effect.estimand.descriptive)
    can = join_words(list(dict.fromkeys((*others, SHARE))), "or")
    raise UserError(f"{primary!r} cannot be answered: there are no twins; {can} can")


def _estimands(
    given: str | Estimand | Iterable[str | Estimand] | None,
    primary: str | Estimand | None,
    *,
    judged: bool,
) -> list[Estimand]:
    if given is None:
        given = DEFAULT_MEASURES if judged else ()
    elif isinstance(given, str | Estimand):
        given = [given]
    else:
        given = list(given)
        if not given:
            raise UserError("an audit needs at least one measure, such as nDCG@3")
    found = [estimand(one) for one in given]
    if primary is not None:
        leading = estimand(primary)
        if leading.descriptive:
            raise UserError(
                f"{leading!r} only describes and gives no verdict; choose another primary question"
            )
        found += [leading] if leading not in found else []
    choosy = next((one for one in found if one.kind == "choices"), None)
    if choosy is not None:
        raise UserError(f"{choosy!r} compares two documents at a time: use ranktilt pairwise")
    needy = next((one for one in found if isinstance(one, Measure)), None)
    if needy is not None and not judged:
        raise UserError(
            f"{needy!r} needs judgments, and there are none: name them (--qrels FILE), or ask what needs none, such as "
            f"{SHARE}, or HeadToHead of twins"
        )
    return found


def _leading(
    asked: Sequence[Estimand], primary: str | Estimand | None, by: str | None, level: Margin
) -> Estimand | None:
    """The primary question; refuses a margin in another unit than its own."""
    leading = usual_primary(asked, by) if primary is None else estimand(primary)
    if leading is not None and level != LEVEL:
        require_unit(
            RelativeDelta(of=leading) if isinstance(leading, Measure) else leading,
            level,
            "a margin of",
        )
    return leading


def _refuse_ungrouped(
    by: str | None, asked: Sequence[Estimand], *, card: bool, pairs: Iterable[Pair] | None
) -> None:
    """Refuse what asks about groups where there are none, and where nothing else is asked."""
    others = [one for one in asked if not isinstance(one, Measure)]
    if by is None and (card or others or pairs is not None):
        what = (
            "the card needs"
            if card
            else f"{others[0]!r} needs"
            if others
            else "pairs of groups need"
        )
        raise UserError(f"{what} a column to group by; omit --by none")
    if by is None and not asked:
        raise UserError(
            "no judgments, so no measure can be computed, and no groups to ask about: name them (--by)"
        )


def _check(measures: Sequence[Estimand], runs: Sequence[Run], depth: int) -> None:
    if depth < 1:
        raise UserError(f"expected a depth of at least 1 rank, got {depth}")
    strange = next((r for r in runs if not isinstance(r, Run)), None)
    if strange is not None:
        raise UserError(
            f"expected runs, got {shorten(strange)}; rank first: ranker(...).rank(collection)"
        )
    for one in runs:
        if fault := unwritable(one.spec):
            raise UserError(f"run {one.name!r}: its spec: {fault}")
    if not runs:
        raise UserError("an audit needs at least one run or ranker, such as -r bm25")
    for noun, names in (("measure", list(map(repr, measures))), ("run", [r.name for r in runs])):
        refuse_twice(names, noun)


def _refuse_unanswerable(
    asked: Sequence[Estimand], runs: Sequence[Run], groups: Groups, *, judged: bool
) -> None:
    """Refuse estimands that need judgments, scores or groups that are not there, before anything is computed."""
    for one in asked:
        ordered = next((run for run in runs if one.reads_scores and not run.scored), None)
        if ordered is not None:
            raise UserError(
                f"{one!r} needs scores, and {ordered.name} gives only an order; choose a measure of ranks"
            )
        if isinstance(one, AttentionEstimand):
            one.check(groups.names)
            if one.needs_judgments() and not judged:
                raise UserError(
                    f"{one!r} needs judgments: it asks which documents are relevant, and there are none (--qrels FILE)"
                )


def _refuse_unjudged(
    judgments: Judgments, groups: Groups, pairs: Sequence[Pair], collection: Collection
) -> None:
    if not len(judgments.grade):
        raise UserError("no document is judged relevant to any query")
    held = judgments.held(groups)
    if pairs and not any(a in held and b in held for a, b in pairs):
        missing = next(n for pair in pairs for n in pair if n not in held)
        beyond = np.unique(judgments.row[judgments.row >= len(groups.code)])
        hint = ""
        if len(beyond):
            noun = counted(len(beyond), "relevant document", "relevant documents")
            hint = (
                f"; of {noun} no {groups.by} is known (first: {judgments.ids[int(beyond[0])]!r}; known ids look like "
                f"{collection.ids[0]!r}): write the judgments with these ids"
            )
        raise UserError(
            f"nothing to compare: no document of {groups.by} {missing!r} is judged relevant{hint}"
        )


class _AuditPlan:
    """One audit in the making: what all its runs share."""

    def __init__(
        self,
        collection: Collection,
        groups: Groups,
        pairs: Sequence[Pair],
        judgments: Judgments,
        *,
        measures: Sequence[Measure],
        questions: Sequence[Estimand],
        primary: Estimand | None,
        runs: int,
        ties: str,
        how: InferenceOptions,
    ) -> None:
        self.collection, self.groups, self.judgments = collection, groups, judgments
        self.measures, self.primary, self.ties, self.how = measures, primary, ties, how
        leading = primary if isinstance(primary, Measure) else usual_primary(measures)
        self.place = measures.index(leading) if isinstance(leading, Measure) else 0
        held = judgments.held(groups)
        self.pairs = [p for p in pairs if set(p) <= held]
        self.left_out = [p for p in pairs if measures and not set(p) <= held]
        frame = judgments.frame().filter(pl.Series(judgments.group >= 0))
        self.level_pairs = {p for p in self.pairs if are_twins(collection, groups, p, frame)}
        self.origins = collection.origin_codes()
        self.twins = {
            p: TwinPairs.from_rows(p, twin_rows(collection, groups, p), judgments, self.origins)
            for p in pairs
        }
        tests = runs * max(len(measures), CARD_ROWS if questions else 0) * max(len(pairs), 1)
        self.shuffles = Shuffles(judgments, how.seed, enough(tests))
        # Groups without twins are asked fewer questions: Relative Δ and those about groups.
        few = 1 + sum(isinstance(one, GroupEstimand) for one in questions)
        asked = sum(
            max(CARD_ROWS, len(questions)) if len(twins.rows) else few
            for twins in self.twins.values()
        )
        lists = Shuffles(judgments, how.seed, enough(runs * asked))
        banded = groups.by != "source"
        self.asked = Card(
            groups=groups,
            twins=self.twins,
            questions=questions,
            how=how,
            shuffles=lists,
            banded=banded,
            origins=self.origins,
        )

    def samples(self, aligned: Sequence[JudgedRun], values: np.ndarray) -> list[Sample]:
        """Comparisons of each run, pair by pair and measure by measure."""
        if not self.measures:
            return []
        numbers = {
            p: (self.groups.names.index(p[0]), self.groups.names.index(p[1])) for p in self.pairs
        }
        found, tasks, uneven = list[list[Sample]](), list[Task](), list[int]()
        for one, of_run in zip(aligned, values, strict=True):
            ordered = one if self.ties == "expected" else one.untied()
            for pair, (a, b) in numbers.items():
                of_pair = [
                    Sample(
                        one.run.name,
                        RelativeDelta(of=m),
                        *pair,
                        first,
                        second,
                        distinct=one.distinct,
                    )
                    for m, first, second in zip(
                        self.measures, of_run[:, a + 1], of_run[:, b + 1], strict=True
                    )
                ]
                if pair in self.level_pairs:
                    of_pair = [
                        self._exchanged(ordered, m, (a, b), s)
                        for m, s in zip(self.measures, of_pair, strict=True)
                    ]
                else:
                    tasks.append((ordered, (a, b)))
                    uneven.append(len(found))
                found.append(of_pair)
        nulls = null_deltas(tasks, self.measures, self.shuffles)
        for place, (aligned_run, pair_numbers), drawn in zip(uneven, tasks, nulls, strict=True):
            found[place] = [
                sample.among(
                    null, judged_labels(aligned_run, m, pair_numbers, sample, self.origins)
                )
                for m, sample, null in zip(self.measures, found[place], drawn, strict=True)
            ]
        return [sample for of_pair in found for sample in of_pair]

    def leading(self, tilts: Iterable[Effect]) -> list[Effect]:
        return [t for t in tilts if t.measure == repr(self.measures[self.place])]

    def noise(
        self, aligned: Sequence[JudgedRun], values: np.ndarray, tilts: Sequence[Effect]
    ) -> tuple[NumericalNoise, ...]:
        """How far Relative Δ on the primary measure moves within the resolution of each run's scores."""
        found = list[NumericalNoise]()
        for one, of_run in zip(aligned, values, strict=True) if self.measures else ():
            leading = self.measures[self.place]
            first = [t for t in self.leading(tilts) if t.run == one.run.name]
            found += numerical_noise(
                one, leading, self.groups, first, of_run[self.place], seed=self.how.seed
            )
        return tuple(found)

    def _exchanged(
        self, aligned: JudgedRun, measure: Measure, numbers: tuple[int, int], sample: Sample
    ) -> Sample:
        """Hold a comparison of twins against exchanged labels too."""
        sample = replace(
            sample, clusters=relevant_clusters(aligned, measure, numbers, sample, self.origins)
        )
        p = exchange_p(aligned, measure, numbers, sample, origins=self.origins, how=self.how)
        return replace(sample, null=NullDistribution(0.0, 0.0, p))

    def pair_counts(self, run: str, lists: Mapping[Pair, TwinLists]) -> Iterator[pl.DataFrame]:
        """Twins' wins, losses and ties of one run per pair and query, as tables: of relevant twins, and of others."""
        for pair, found in lists.items():
            for relevant, numbers in zip((True, False), pair_counts(found), strict=True):
                names = dict(zip(PairCounts._fields, numbers, strict=True))
                frame = pl.DataFrame(
                    {"query": self.judgments.queries, **names}, schema_overrides=PAIR_COUNTS
                )
                frame = frame.with_columns(run=pl.lit(run), a=pl.lit(pair[0]), b=pl.lit(pair[1]))
                yield frame.with_columns(relevant=pl.lit(relevant)).select(list(PAIR_COUNTS))

    def card(
        self,
        aligned: Sequence[JudgedRun],
        found: Sequence[tuple[CardKey, Sample]],
        tilts: Iterable[Effect],
    ) -> tuple[tuple[Effect, ...], list[Sample]]:
        """The card of every run and pair, below the tilts of the primary measure, and the samples about groups."""
        if not self.asked.questions:
            return (), []
        ordered = sorted([*found, *self.asked.of_groups(aligned)], key=itemgetter(0))
        samples = [sample for _, sample in ordered]
        first = self.leading(tilts) if self.measures else []
        # What `compare` reads: questions about groups, and the primary one where that is about
        # twins.
        group_samples = [
            sample
            for sample in samples
            if isinstance(sample.estimand, GroupEstimand) or sample.estimand == self.primary
        ]
        return effects(samples, self.how, beside=first, primary=self.primary), group_samples

    def notes(
        self,
        aligned: Sequence[JudgedRun],
        values: np.ndarray,
        tilts: Sequence[Effect],
        missing: str,
        estimates: Sequence[Effect],
    ) -> Iterator[str]:
        """What a reader should know: exclusions, small samples, unknown documents."""
        yield from variation_notes((*tilts, *estimates))
        groups, judgments, collection = self.groups, self.judgments, self.collection
        for one in aligned:
            yield from run_notes(one, collection, missing)
        yield from identical_notes(aligned)
        yield from source_notes(collection, groups.by)
        yield from judgment_notes(judgments, collection)
        yield from repeated_notes({one.run.name: one.repeated for one in aligned if one.repeated})
        absent = any(one.left_out(missing).any() for one in aligned)
        yield from group_notes(groups, self.left_out, tilts, self.how.resamples, absent=absent)
        yield from lone_group_notes(
            aligned, groups, collection, depth=LONE_DEPTH if self.asked.questions else None
        )
        yield from sparse_notes(tilts, [one.run.name for one in aligned], groups, values)
        yield from twin_notes(
            collection, groups, [p for p in self.pairs if p not in self.level_pairs], judgments
        )
        if self.asked.questions:
            yield from card_notes(
                collection, groups, twins=any(len(t.rows) for t in self.twins.values())
            )

    def confounds(self, collection: Collection, runs: Sequence[Run]) -> tuple[Confound, ...]:
        found = (
            text_confounds(collection, self.groups, twins, runs) for twins in self.twins.values()
        )
        return tuple(one for pair in found for one in pair)


@cache
def _packages() -> dict[str, str]:
    """Versions of what the numbers rest on; looked up once, for it takes a quarter of a small audit."""
    return {name: version(name) for name in PACKAGES}


def audit_provenance(collection: Collection, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Say what numbers were made of and with: collection, specs of runs, files with their hashes, versions."""
    files = _files(collection.spec) + files_of_runs(runs)
    inputs = [
        {"path": f, "sha256": sha256(Path(f))} for f in dict.fromkeys(files) if os.path.isfile(f)
    ]
    return {
        "ranktilt": __version__,
        "python": platform.python_version(),
        "packages": dict(_packages()),
        "collection": {k: v for k, v in collection.spec.items() if k != "files"},
        "runs": list(map(dict, runs)),
        "inputs": inputs,
    }


def _files(spec: Mapping[str, Any]) -> list[str]:
    """Files that a collection was read from, those of its parts where it is a mix."""
    own = [str(file) for file in spec.get("files", ())]
    return own + [file for part in spec.get("mix", ()) for file in _files(part)]
