"""Tables and figures of Wang et al.: rankings of lists, choices between pairs, and fine-tuning.

A `Layout` is a table of numbers, which its `Selection`s take from results: the rows for which
`where` is true, and one column as the value. Several tables can show the same rows. If all tables
of the paper are printed together, a table shows only the rows for which `home` is true. The
*source* of documents is who wrote them. *Neutral* is the prompt that names no group.

A *condition* is the prompt or the window of a ranker, which a table compares. The *exposure ratio*
is the mean attention that items of the protected group get at their ranks, over that of the others.

- Tables 1 and 2 have rankings of lists, by prompt and by window.
- Table 3 has choices between two documents.
- Figure 3 has the ranks of the protected group in each ranker's lists.
- Figure 4 compares a model before and after fine-tuning, by its choices and by its lists.

The layouts are at the end of the file, after the functions that make their rows and figures.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import polars as pl

from ranktilt.auditing.comparison.result import Comparison
from ranktilt.auditing.grouping.labels import grouping
from ranktilt.auditing.groups import ALL
from ranktilt.auditing.pairwise.result import PairwiseAudit
from ranktilt.auditing.result import Audit
from ranktilt.papers.wang.conditions import by_condition
from ranktilt.reporting.document import Figure
from ranktilt.reporting.figures.charts import Point, lines
from ranktilt.reporting.layouts.layout import Layout
from ranktilt.reporting.layouts.selection import Column, Selection, part_of
from ranktilt.reporting.reload import LoadedAudit
from ranktilt.reporting.views.compare.compare import BEFORE_AND_AFTER, choices_of, ratios

SOURCE = "Wang et al., NAACL 2024"
"""The paper, as tables and figures print it."""
_BY_GROUP = pl.col("by").is_not_null() & (pl.col("by") != "source")
"""Rows of an audit by a column other than the source."""
_SYSTEM_NAME = (
    pl.when(pl.col("condition") == "neutral")
    .then(pl.col("system"))
    .otherwise(pl.format("{}, {}", "system", "condition"))
)
"""Name of a ranker with its prompt's condition, which the neutral prompt has none of."""
EXPOSURE = "ExposureRatio"
"""Name of the measure, without its cutoff."""
BINS = 10
"""Number of parts of equal length into which a list is cut.

The paper's lists have 200 items, so the first part is the 20 ranks that P@20 reads.
"""


# ---- lists and pairs (tables 1 to 3) -------------------------------------------------------------


def _rows_by_condition(audit: Audit, *, part: str, windows: bool) -> pl.DataFrame:
    """Return a part of an audit by ``system`` and ``condition``: the prompt, or also the window."""
    return by_condition(part_of(audit, part), windows=windows)


def _lists(*, windows: bool, home: pl.Expr) -> tuple[Selection, ...]:
    """Select the means of all documents, and the exposure ratio of the first pair at any cutoff.

    With `windows`, the condition of a ranker includes window and step.
    """
    keys: dict[str, Column] = {"dataset": "dataset", "system": "system", "condition": "condition"}
    is_first_pair = (pl.col("a") == pl.col("a").first()) & (pl.col("b") == pl.col("b").first())
    name = pl.col("estimand").str.replace(r"@\d+$", "")
    of_means = Selection(
        result=Audit,
        part=partial(_rows_by_condition, part="means", windows=windows),
        keys={**keys, "measure": "measure"},
        value="mean",
        where=_BY_GROUP & (pl.col("group") == ALL),
        home=home,
    )
    of_ratios = Selection(
        result=Audit,
        part=partial(_rows_by_condition, part="card", windows=windows),
        keys={**keys, "measure": name},
        where=_BY_GROUP & (pl.col("kind") == EXPOSURE) & is_first_pair,
        home=home,
        first=True,
    )
    return of_means, of_ratios


def _share(measure: str, column: str) -> Selection:
    """Select a column of a pairwise audit's outcomes; `measure` is its name in the table."""
    return Selection(
        result=PairwiseAudit,
        part="outcomes",
        keys={
            "dataset": "dataset",
            "system": "model",
            "condition": "kind",
            "measure": pl.lit(measure),
        },
        value=column,
        where=pl.col(column).is_not_null(),
    )


# ---- ranks of the protected group (figure 3) -----------------------------------------------------


def ranks_of_protected(loaded: LoadedAudit) -> pl.DataFrame:
    """Return the share of the protected group's items in each part of the lists, in percent.

    The protected group is the first of the audit's first pair. A row is one part of the lists of
    one ranker: ``system`` (its name and condition), ``ranks`` (such as ``1–20``), ``middle`` (the
    middle rank), ``share`` and ``group``. There are no rows if the collection or the lists could
    not be read again, or if the audit compares sources.
    """
    audit, collection = loaded.audit, loaded.collection
    by = _group_column(loaded)
    if collection is None or not loaded.runs or not audit.pairs or by is None:
        return pl.DataFrame()
    pair = audit.pairs[0]
    protected, _ = pair
    groups = grouping(collection, by, pair)
    members = collection.docs.filter(groups.code == groups.index(protected))["id"]
    ranked = pl.concat(
        run.frame().select("doc_id", "rank").with_columns(run=pl.lit(name))
        for name, run in zip(audit.runs, loaded.runs, strict=True)
    )
    if not ranked.height:
        return pl.DataFrame()
    width = math.ceil(ranked.select(pl.col("rank").max()).item() / BINS)
    ranked = ranked.with_columns(part=(pl.col("rank") - 1) // width)
    counts = _item_counts(ranked, members)
    run_order = {run: number for number, run in enumerate(audit.runs)}
    counts = counts.sort(pl.col("run").replace_strict(run_order), "part")
    # The condition of the prompt, which is a part of a run's name, becomes a column.
    counts = by_condition(counts, windows=False)
    before = pl.col("part") * width
    first, middle, last = before + 1, before + (width + 1) / 2, before + width
    items_of_run = pl.col("items").sum().over("run")
    return counts.select(
        system=_SYSTEM_NAME,
        ranks=pl.format("{}–{}", first, last),
        middle=middle,
        share=100 * pl.col("items") / items_of_run,
        group=pl.lit(protected),
    )


def _group_column(loaded: LoadedAudit) -> str | None:
    """Return the column of the audit's groups; None if the groups are sources."""
    by = loaded.audit.spec.get("by")
    return None if by in (None, "source") else str(by)


def _item_counts(ranked: pl.DataFrame, members: pl.Series) -> pl.DataFrame:
    """Return the number of the group's items in each part of each run's lists.

    `members` are the ids of the group's documents.
    """
    of_group = ranked.filter(pl.col("doc_id").is_in(members.implode()))
    counts = of_group.group_by("run", "part", maintain_order=True).agg(items=pl.len())
    # A part of the list without a member gets a row with 0, so that the drawn line has no gap.
    every_part = ranked.select("run", "part").unique()
    every_part = every_part.filter(pl.col("run").is_in(counts["run"].implode()))
    counts = every_part.join(counts, on=["run", "part"], how="left")
    return counts.with_columns(pl.col("items").fill_null(0))


def draw_ranks(loaded: LoadedAudit) -> tuple[Figure, ...]:
    """Draw the distribution of each ranker; no figure if the lists cannot be read."""
    rows = ranks_of_protected(loaded)
    if not rows.height:
        return ()
    points: dict[str, list[Point]] = {}
    for system, middle, share in rows.select("system", "middle", "share").iter_rows():
        point = Point(x=middle, value=share, low=share, high=share)
        points.setdefault(system, []).append(point)
    group = rows["group"][0]
    bins = rows.select("middle", "ranks").unique(maintain_order=True)
    figure = Figure(
        title=f"Ranks of {group} in the lists of each ranker",
        description=f"Share of the items of {group} in each part of the lists; "
        "a ranker that favours neither side has the same height everywhere.",
        drawing=lines(
            points,
            x="rank",
            y=f"share of the items of {group}, %",
            domain=(0.0, max(rows["share"].to_list()) * 1.1),
            tick_names=dict(bins.iter_rows()),
        ),
    )
    return (figure,)


# ---- before and after fine-tuning (figure 4) -----------------------------------------------------


def preferences(comparison: Comparison) -> pl.DataFrame:
    """Return how often the protected group is preferred over the other, before and after.

    There is a ratio for each kind of pairs, relevant and irrelevant ones. The columns are
    ``system``, ``kind``, ``when`` and ``value``.
    """
    system = comparison.runs[0].old
    rows = []
    for kind, change in choices_of(comparison).items():
        for when, ratio in zip(BEFORE_AND_AFTER, ratios(change), strict=True):
            rows.append({"system": system, "kind": kind, "when": when, "value": ratio.value})
    return pl.DataFrame(rows)


def exposures(comparison: Comparison) -> pl.DataFrame:
    """Return the exposure ratio of each ranker before and after.

    It is that of the first pair of groups, at the first cutoff. The columns are ``system`` (the
    ranker's name and condition), ``when`` and ``ratio``.
    """
    rows = part_of(comparison, "estimates")
    if not rows.height or "old_run" not in rows.columns:
        return pl.DataFrame()
    rows = rows.filter(pl.col("kind") == EXPOSURE)
    columns = pl.col("a", "b", "estimand")
    rows = rows.filter(pl.all_horizontal(columns == columns.first()))
    rows = rows.filter(pl.all_horizontal(pl.col("old", "new").cast(pl.Float64).is_finite()))
    if not rows.height:
        return pl.DataFrame()
    rows = by_condition(rows.with_columns(run=pl.col("old_run")), windows=False)
    before, after = BEFORE_AND_AFTER
    return pl.concat(
        [
            rows.select(system=_SYSTEM_NAME, when=pl.lit(before), ratio=pl.col("old")),
            rows.select(system=_SYSTEM_NAME, when=pl.lit(after), ratio=pl.col("new")),
        ]
    )


def draw_exposures(comparison: Comparison) -> tuple[Figure, ...]:
    """Draw the exposure ratios of each ranker before and after; no figure if there are none."""
    rows = exposures(comparison)
    if not rows.height:
        return ()
    systems = rows["system"].unique(maintain_order=True).to_list()
    points: dict[str, list[Point]] = {when: [] for when in BEFORE_AND_AFTER}
    for system, when, ratio in rows.select("system", "when", "ratio").iter_rows():
        point = Point(x=systems.index(system), value=ratio, low=ratio, high=ratio)
        points[when].append(point)
    highest = max(rows["ratio"].to_list())
    figure = Figure(
        title="Exposure of the protected group over that of the unprotected one, before and after",
        description="Ratio of both groups' exposure; 1 is level.",
        drawing=lines(
            points,
            x="",
            y="exposure ratio",
            dodge=0.02,
            domain=(0.0, highest * 1.1),
            tick_names={float(number): system for number, system in enumerate(systems)},
        ),
    )
    return (figure,)


# ---- layouts -------------------------------------------------------------------------------------

WANG_1 = Layout(
    name="wang-1",
    source=SOURCE,
    title="Listwise evaluation: effectiveness, and exposure of the protected over the "
    "unprotected group",
    cells=_lists(windows=False, home=pl.lit(True)),
    rows=("system",),
    columns=("condition", "measure"),
    panels=("dataset",),
    measures=("P@20", EXPOSURE),
    digits=4,
    labels={
        EXPOSURE: "Exposure ratio",
        "neutral": "Neutral",
        "male": "Male",
        "female": "Female",
        "european": "European",
        "non-european": "Non-European",
    },
    shows="documents of several groups ranked by relevance (an audit by group)",
    command="ranktilt audit DIR -r bm25 -m P@20 -m ExposureRatio --by gender --protected female "
    "--json FILE",
)
WANG_2 = replace(
    WANG_1,
    name="wang-2",
    title="Listwise evaluation at several window and step sizes",
    cells=_lists(windows=True, home=pl.lit(False)),
    rows=("condition",),
    columns=("measure",),
    panels=("dataset", "system"),
    titles={"condition": "Window and step"},
    labels={
        EXPOSURE: "Exposure ratio",
        "neutral window=5 step=1": "window 5, step 1",
        "neutral window=10 step=5": "window 10, step 5",
        "neutral window=10 step=3": "window 10, step 3",
        "neutral window=20 step=10": "window 20, step 10",
    },
    shows="listwise rankings at several window and step sizes (an audit by group)",
    command="ranktilt audit DIR -r 'bm25@200>>listwise:openai:MODEL(window=10,step=5)' -m P@20 "
    "-m ExposureRatio --by gender --protected female --json FILE",
)
WANG_3 = Layout(
    name="wang-3",
    source=SOURCE,
    title="Pairwise evaluation: share of pairs in which the document of the unprotected and of the "
    "protected group is preferred, and the ratio of protected to unprotected",
    cells=(
        _share("unprotected share", "unprotected"),
        _share("protected share", "protected"),
        _share("PairwiseRatio", "ratio"),
    ),
    rows=("system",),
    columns=("condition", "measure"),
    panels=("dataset",),
    measures=("unprotected share", "protected share", "PairwiseRatio"),
    digits=4,
    derived="ratio",
    labels={
        "unprotected share": "Unprotected",
        "protected share": "Protected",
        "PairwiseRatio": "Ratio",
        "relevant": "Relevant pairs",
        "irrelevant": "Irrelevant pairs",
    },
    shows="pairs of documents, one of each group, judged by a language model (a pairwise audit)",
    command="ranktilt pairwise DIR --llm openai:MODEL --by gender --json FILE",
)
WANG_FIG3 = Layout(
    name="wang-fig3",
    source=SOURCE,
    title="Ranks of the protected group: share of its items in each part of the lists, in percent "
    "(our reading)",
    cells=(
        Selection(
            result=LoadedAudit,
            part=ranks_of_protected,
            keys={
                "dataset": "dataset",
                "system": "system",
                "condition": "ranks",
                "target": "group",
                "measure": pl.lit("share of items"),
            },
            value="share",
        ),
    ),
    draw=draw_ranks,
    reads_collection=True,
    rows=("condition",),
    columns=("system",),
    panels=("dataset",),
    digits=1,
    titles={"condition": "Ranks"},
    shows="the lists of rankers by group (an audit by group, with its collection)",
    command="ranktilt audit DIR -r bm25 --by gender --protected female --json FILE",
)
WANG_FIG4 = Layout(
    name="wang-fig4",
    source=SOURCE,
    title="Pairwise evaluation before and after fine-tuning: ratio of the protected to the "
    "unprotected share",
    cells=(
        Selection(
            result=Comparison,
            part=preferences,
            keys={
                "dataset": "dataset",
                "system": "system",
                "condition": "kind",
                "target": "when",
                "measure": pl.lit("PairwiseRatio"),
            },
            where=pl.col("value").is_finite(),
        ),
    ),
    rows=("target",),
    columns=("condition",),
    panels=("dataset",),
    measures=("PairwiseRatio",),
    digits=4,
    titles={"target": "Model"},
    labels={
        "PairwiseRatio": "ratio",
        "before": "Before",
        "after": "After",
        "relevant": "Relevant pairs",
        "irrelevant": "Irrelevant pairs",
    },
    shows="choices of two models between the same groups (a comparison of two pairwise audits)",
    command="ranktilt compare AFTER.json BEFORE.json --json FILE",
)
WANG_FIG4A = replace(
    WANG_FIG4,
    name="wang-fig4a",
    title="Listwise evaluation before and after fine-tuning: exposure ratio (our reading)",
    cells=(
        Selection(
            result=Comparison,
            part=exposures,
            keys={
                "dataset": "dataset",
                "system": "system",
                "target": "when",
                "measure": pl.lit(EXPOSURE),
            },
            value="ratio",
            home=pl.lit(False),
        ),
    ),
    draw=draw_exposures,
    columns=("measure",),
    measures=(EXPOSURE,),
    labels={EXPOSURE: "Exposure ratio", "before": "Before", "after": "After"},
    shows="rankings of the same lists by two models (a comparison of two audits with exposure "
    "ratios)",
    command="ranktilt compare AFTER.json BEFORE.json --json FILE",
)
LAYOUTS = (
    WANG_1,
    WANG_2,
    WANG_3,
    WANG_FIG3,
    WANG_FIG4,
    WANG_FIG4A,
)
"""Every table and figure, in the order of the paper."""
