"""The document of a comparison: how new runs differ from old ones, or from a baseline.

Both are runs of two audits, or of one audit. Every difference (*change*) is new − old, of
effectiveness (the mean of a measure over all relevant documents), of Relative Δ between two groups
(a *tilt*), or of the answer to another question about groups (an *estimand*). The *verdict* says
whether the tilt on the primary question grew. *Pairwise* audits are compared too: in them a
language model names the better of two documents. The *spec* of a comparison is its settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from math import isfinite

from ranktilt.auditing.comparison.match import RunPair
from ranktilt.auditing.comparison.result import Comparison
from ranktilt.auditing.effects import Change
from ranktilt.auditing.groups import ALL, Pair
from ranktilt.auditing.pairwise.result import EVEN, Share
from ranktilt.data.notes.comparisons import PrimaryNotCompared, PrimaryQuestionsDiffer
from ranktilt.errors import join_words
from ranktilt.measures.base import Measure
from ranktilt.measures.preference import PreferenceOfPairs
from ranktilt.reporting.document import (
    Block,
    Cell,
    Column,
    Document,
    Figure,
    PageBlocks,
    PageSections,
    Row,
    Section,
    Sentence,
    Table,
    name_column,
)
from ranktilt.reporting.figures.charts import Point, lines
from ranktilt.reporting.headline import headline
from ranktilt.reporting.interval_chart import IntervalChart
from ranktilt.reporting.numbers import change_cell, decimal, ends, number_cell, p_value, signed
from ranktilt.reporting.provenance import MOST_NAMED, provenance
from ranktilt.reporting.sentences.comparison.compare import (
    change_order,
    comparison_findings,
)
from ranktilt.reporting.sentences.comparison.meaning import (
    comparison_meaning,
    comparison_next_commands,
)
from ranktilt.reporting.sentences.verdicts import sides_legend, star_legend
from ranktilt.reporting.views.readings import change_chart, tilt_change_chart

BEFORE_AND_AFTER = ("before", "after")
"""Names of two runs, where one is the other after a change."""
_PRIMARY_NOTES = (PrimaryQuestionsDiffer, PrimaryNotCompared)
"""Notes that a reader of the headline needs, so that they are printed among the findings."""
_DODGE = 0.12
"""Distance along the horizontal axis between the points of two models, which none may hide."""


def view(comparison: Comparison) -> Document:
    """Return the document of a comparison."""
    blocks: list[Block] = []
    if comparison.measures:
        blocks.append(_mean_table(comparison))
    if comparison.estimates:
        blocks.append(_estimand_table(comparison))
    blocks.append(PageBlocks(make=partial(_choice_figure, comparison)))
    findings = comparison_findings(comparison)
    sentences = [Sentence(finding.sentence, emphasis="strong") for finding in findings]
    primary_notes = [note for note in comparison.notes if isinstance(note, _PRIMARY_NOTES)]
    sentences += [
        Sentence(note.sentence.removeprefix("warning: "), "warning") for note in primary_notes
    ]
    notes = [note.sentence for note in comparison.notes if note not in primary_notes]
    numbers = Section("result", "Every number", blocks=tuple(blocks), short_title="Numbers")
    return Document(
        kind=_kind(comparison),
        headline=headline(comparison),
        sections=(numbers, PageSections(make=partial(_provenance, comparison))),
        sentences=tuple(sentences),
        meaning=comparison_meaning(comparison),
        first_figure=PageBlocks(make=partial(_first_figure, comparison)),
        next_steps=comparison_next_commands(comparison),
        names=tuple(chain.from_iterable(comparison.runs)),
        legend=tuple(legend(comparison)),
        notes=tuple(notes),
    )


def _provenance(comparison: Comparison) -> Iterator[Section]:
    """Yield the section on inputs and options."""
    yield provenance(comparison.spec)


def _first_figure(comparison: Comparison) -> Iterator[IntervalChart]:
    """Draw how the answers to the primary question changed, and effectiveness on a second scale.

    Where the primary question has no two sides, and for pairwise audits, all differences share a
    single scale.
    """
    verdicts = [verdict for verdict in comparison.verdicts() if verdict.kind != "identical"]
    verdicts.sort(key=lambda verdict: (not verdict.is_primary, change_order(verdict.changes[0])))
    changes = [verdict.changes[0] for verdict in verdicts]
    primary_changes = [verdict.changes[0] for verdict in verdicts if verdict.is_primary]
    if _are_sided(primary_changes) and not _is_pairwise(comparison):
        yield _primary_chart(comparison, primary_changes, changes)
        return
    label = partial(_change_label, comparison, has_several_pairs=len(_pairs_of(changes)) > 1)
    chart = change_chart(changes, label, title=_change_title(comparison))
    if chart is not None:
        yield chart


def _is_pairwise(comparison: Comparison) -> bool:
    """Tell whether two pairwise audits are compared, whose options have a rule of counting."""
    return "count_rule" in comparison.spec


def _are_sided(changes: Sequence[Change]) -> bool:
    """Tell whether every difference is between two groups; False where there is none."""
    sided = [change for change in changes if change.a != change.b and change.estimand.sided]
    return bool(changes) and len(sided) == len(changes)


def _primary_chart(
    comparison: Comparison, primary_changes: Sequence[Change], changes: Sequence[Change]
) -> IntervalChart:
    """Draw answers to the primary question, with effectiveness where `changes` hold it."""
    title = _change_title(comparison)
    means = [change for change in changes if isinstance(change.estimand, Measure)]
    effectiveness = {(mean.run, mean.old_run): mean for mean in means}
    if not effectiveness:  # the chart then has a single scale, whose title is not printed
        title = f"{title} in {primary_changes[0].name}"
    has_several_pairs = len(_pairs_of(primary_changes)) > 1
    label = partial(_tilt_label, comparison, has_several_pairs=has_several_pairs)
    return tilt_change_chart(primary_changes, effectiveness, label, title=title)


def _pairs_of(changes: Sequence[Change]) -> list[Pair]:
    """Return the pairs of groups that differences are about."""
    pairs = [(change.a, change.b) for change in changes if change.a != change.b]
    return list(dict.fromkeys(pairs))


def _tilt_label(comparison: Comparison, tilt: Change, *, has_several_pairs: bool) -> str:
    """Name a row of the figure: the run, or the pair of groups where there are several pairs."""
    if not has_several_pairs:
        return tilt.run
    pair = f"{tilt.a} | {tilt.b}"
    return f"{pair}, {tilt.run}" if len(comparison.runs) > 1 else pair


def _change_label(comparison: Comparison, change: Change, *, has_several_pairs: bool) -> str:
    """Name a difference: its quantity, then its groups and its run where there are several."""
    words = [_quantity(change)]
    if has_several_pairs and change.a != change.b:
        words.append(f"{change.a} | {change.b}")
    if len(comparison.runs) > 1:
        words.append(change.run)
    return ", ".join(words)


def _quantity(change: Change) -> str:
    """Name the quantity of a difference in a word or two."""
    if isinstance(change.estimand, PreferenceOfPairs):
        return f"{change.estimand.pairs} pairs"
    return "effectiveness" if isinstance(change.estimand, Measure) else change.name


def _change_title(comparison: Comparison) -> str:
    """Say between which runs the figure draws differences."""
    baseline = comparison.spec.get("baseline_run")
    if baseline is not None:
        return f"How the other runs differ from {baseline}"
    if len(comparison.runs) > 1:
        return "How the new runs differ from the old ones"
    (runs,) = comparison.runs
    if runs.new == runs.old:
        return f"How {runs.new} differs from its old run"
    return f"How {runs.new} differs from {runs.old}"


def _kind(comparison: Comparison) -> str:
    """Return the title of the document, which names the compared runs."""
    baseline = comparison.spec.get("baseline_run")
    subjects = [runs.new for runs in comparison.runs]
    subject = join_words(subjects) if len(subjects) <= MOST_NAMED else f"{len(subjects)} runs"
    if baseline is not None:
        return f"Comparison of {subject} with {baseline}"
    if len(comparison.runs) == 1 and comparison.runs[0].new != comparison.runs[0].old:
        return f"Comparison of {subject} with {comparison.runs[0].old}"
    return (
        f"Comparison of {subject} with {'their old runs' if len(subjects) > 1 else 'its old run'}"
    )


def _mean_table(comparison: Comparison) -> Table:
    """Return the table of means and Relative Δ, before and after."""
    columns = (name_column(""), *map(Column, comparison.measures), Column("queries"))
    rows = list[Row]()
    for runs in comparison.runs:
        rows += _run_rows(comparison, runs)
    title = " and ".join(_new_and_old(comparison)).capitalize()
    return Table(title, columns, tuple(rows), group_titles=("runs",), collapsed=True)


def _new_and_old(comparison: Comparison) -> tuple[str, str]:
    """Return the words for the two runs of a difference, the first minus the second."""
    return ("new", "old") if comparison.spec.get("baseline_run") is None else ("run", "reference")


def _runs_title(comparison: Comparison, runs: RunPair) -> str:
    """Return the heading above the rows of a new and an old run."""
    if comparison.spec.get("baseline_run") is not None:
        return runs.new
    return f"{runs.new} against {'its old run' if runs.new == runs.old else runs.old}"


def _estimand_table(comparison: Comparison) -> Table:
    """Return the table of the differences on all questions but effectiveness and Relative Δ."""
    new, old = _new_and_old(comparison)
    columns = (
        name_column(""),
        Column(new),
        Column(old),
        Column("difference"),
        Column("corrected p", drop_order=1),
        Column("queries", drop_order=2),
    )
    rows = list[Row]()
    for runs in comparison.runs:
        group = (_runs_title(comparison, runs),)
        rows += [Row(_estimand_cells(change), group) for change in comparison.of_estimands(runs)]
    title = "Other questions about groups" if comparison.measures else "Questions about groups"
    if _is_pairwise(comparison):
        title = "Choices between two documents"
    return Table(title, columns, tuple(rows), group_titles=("runs",), collapsed=True)


def _estimand_cells(change: Change) -> tuple[Cell, ...]:
    """Return the cells of a question: its name, new and old value, difference, p and queries."""
    return (
        Cell(_estimand_name(change)),
        number_cell(change.new, change.amount),
        number_cell(change.old, change.amount),
        change_cell(change),
        number_cell(change.p_corrected, p_value),
        Cell(str(change.queries)),
    )


def _estimand_name(change: Change) -> str:
    """Name a question, with its groups where it is about two of them."""
    if isinstance(change.estimand, PreferenceOfPairs):
        return f"{change.estimand.pairs} pairs"
    return change.name if change.a == ALL else f"{change.name} {change.a} | {change.b}"


def _run_rows(comparison: Comparison, runs: RunPair) -> Iterator[Row]:
    """Yield the rows of a new and an old run: effectiveness, then Relative Δ of each pair."""
    group = (_runs_title(comparison, runs),)
    means = [mean for mean in comparison.effectiveness if (mean.run, mean.old_run) == runs]
    for cells in _mean_rows(comparison, means):
        yield Row(tuple(cells), group)
    tilts = [tilt for tilt in comparison.tilts if (tilt.run, tilt.old_run) == runs]
    for pair in comparison.pairs:
        tilts_of_pair = [tilt for tilt in tilts if (tilt.a, tilt.b) == pair]
        for cells in _tilt_rows(comparison, tilts_of_pair):
            yield Row(tuple(cells), group)


def _mean_rows(comparison: Comparison, means: Sequence[Change]) -> Iterator[list[Cell]]:
    """Yield the cells of three rows: effectiveness of the old run, of the new one, difference."""
    new, old = _new_and_old(comparison)
    empty = Cell("", emphasis="quiet")
    yield [
        Cell(f"effectiveness: {old}", emphasis="quiet"),
        *(number_cell(mean.old, decimal, emphasis="quiet") for mean in means),
        Cell(str(means[0].queries), emphasis="quiet"),
    ]
    yield [Cell(new), *(number_cell(mean.new, decimal) for mean in means), empty]
    yield [Cell("difference", emphasis="strong"), *map(change_cell, means), empty]


def _tilt_rows(comparison: Comparison, tilts: Sequence[Change]) -> Iterator[list[Cell]]:
    """Yield the cells of four rows: Relative Δ, old and new, its difference, growth of the tilt."""
    new, old = _new_and_old(comparison)
    empty = Cell("", emphasis="quiet")
    name = "Relative Δ"
    if len(comparison.pairs) > 1:
        name = f"Relative Δ {tilts[0].a} | {tilts[0].b}"
    queries = Cell(str(tilts[0].queries), emphasis="quiet")
    yield [Cell(f"{name}: {old}"), *(number_cell(tilt.old, signed) for tilt in tilts), queries]
    yield [Cell(new), *(number_cell(tilt.new, signed) for tilt in tilts), empty]
    yield [Cell("difference", emphasis="strong"), *map(change_cell, tilts), empty]
    yield [Cell("growth of the tilt"), *map(_growth_cell, tilts), empty]


def _growth_cell(tilt: Change) -> Cell:
    """Return the cell of the growth of a tilt: by how much it became larger, to either side."""
    return Cell(signed(tilt.growth), tilt.growth, ends=ends(tilt.growth_low, tilt.growth_high))


def legend(comparison: Comparison) -> list[str]:
    """Say what the numbers are, in a few lines."""
    spec = comparison.spec
    new, old = _new_and_old(comparison)
    intervals = f"Intervals: paired bootstrap over queries, {spec['resamples']:,} resamples."
    if _is_pairwise(comparison):
        choices = "the answers that could be read"
        if spec["count_rule"] == "both-agree":
            choices = "the pairs on which both orders agree"
        return [
            f"Preference: {spec['protected']} chosen among {choices}, minus 50 %; 0 is neutral. "
            "Differences are new − old, in points, over the queries in which both models "
            "decided anything.",
            star_legend(spec),
            f"{intervals} Tests and intervals apply to these documents only.",
        ]
    lines = []
    if spec.get("baseline_run") is not None:
        lines.append(f"Reference: {spec['baseline_run']}.")
    if comparison.measures:
        lines.append("Effectiveness: means over all relevant documents, in %.")
    others = "; for other estimands, in their own unit" if comparison.estimates else ""
    lines.append(f"Differences are {new} − {old}, in points{others}.")
    if comparison.pairs:
        lines.append(
            f"Relative Δ in %: {sides_legend(comparison.pairs)}. Growth of the tilt: |Δ {new}| "
            f"− |Δ {old}|; above 0 the tilt grew, in either direction."
        )
    changes = (*comparison.tilts, *comparison.estimates)
    if spec.get("baseline_run") is None and any(change.has_growth_apart for change in changes):
        lines.append(
            "ranktilt gate --baseline judges the growth of a tilt, |new| − |old|, and not the "
            "difference, new − old; here the two have different intervals."
        )
    return [*lines, star_legend(spec), intervals]


def choices_of(comparison: Comparison) -> dict[str, Change]:
    """Return the changes of preference between documents, by their kind of pairs.

    Empty unless two pairwise audits are compared.
    """
    return {
        change.estimand.pairs: change
        for change in comparison.estimates
        if isinstance(change.estimand, PreferenceOfPairs)
    }


def ratios(change: Change) -> tuple[Share, Share]:
    """Return the ratio of protected to unprotected choices of the old and of the new model.

    1 is level. `change` is one of `choices_of`.
    """
    details = change.details
    # A preference is the protected share of the choices minus a half.
    before = Share(
        value=EVEN + change.old, low=EVEN + details["old_low"], high=EVEN + details["old_high"]
    )
    after = Share(
        value=EVEN + change.new, low=EVEN + details["new_low"], high=EVEN + details["new_high"]
    )
    return before.odds, after.odds


def _choice_figure(comparison: Comparison) -> Iterator[Figure]:
    """Draw both models' ratios on each kind of pairs, as Wang et al. do.

    Nothing unless two pairwise audits are compared.
    """
    changes = choices_of(comparison)
    if not changes:
        return
    (runs,) = comparison.runs
    before, after = BEFORE_AND_AFTER
    points_of: dict[str, list[Point]] = {f"{before}: {runs.old}": [], f"{after}: {runs.new}": []}
    for index, change in enumerate(changes.values()):
        for points, ratio in zip(points_of.values(), ratios(change), strict=True):
            points.append(Point(x=index, value=ratio.value, low=ratio.low, high=ratio.high))
    protected, unprotected = comparison.spec["protected"], comparison.spec["unprotected"]
    highest = _highest(chain.from_iterable(points_of.values()))
    drawing = lines(
        points_of,
        x="",
        y=f"{protected} / {unprotected}",
        dodge=_DODGE,
        domain=(0.0, 1.1 * highest),  # with some room above the highest interval
        tick_names={float(index): f"{kind} pairs" for index, kind in enumerate(changes)},
    )
    yield Figure(
        title=f"Choices of {protected} over {unprotected} documents before and after",
        description="Ratio of both groups' shares; 1 is neutral. "
        "Bars: 95 % intervals over queries.",
        drawing=drawing,
        layout="wang-fig4",
    )


def _highest(points: Iterable[Point]) -> float:
    """Return the highest finite end of an interval, at least 1, which is neutral."""
    highest = 1.0
    for point in points:
        ends = (point.value, point.low, point.high)
        highest = max([highest, *(end for end in ends if isfinite(end))])
    return highest
