"""Tables and figures of Wang et al."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import polars as pl

from ranktilt.auditing.comparison.compare import Comparison
from ranktilt.auditing.groups import ALL
from ranktilt.auditing.pairwise.result import PairwiseAudit
from ranktilt.auditing.result import Audit
from ranktilt.errors import UserError
from ranktilt.rankers.spec import Stage, parse_stages
from ranktilt.reporting.layouts.layout import Layout
from ranktilt.reporting.layouts.names import system_names
from ranktilt.reporting.layouts.selection import Column, Selection, part_of
from ranktilt.reporting.views.compare import BEFORE_AND_AFTER, choices_of, ratios

Rows = Callable[[Audit], pl.DataFrame]

SOURCE = "Wang et al., NAACL 2024"
EXPOSURE = "ExposureRatio"
_PROMPT = ("attribute", "prompt", "query_template")
"""Options of a stage that say what it is asked for: conditions of one system."""
_LISTWISE, _WINDOWS = "listwise", ("window", "step")
_BY_GROUP = pl.col("by").is_not_null() & (pl.col("by") != "source")


def means_by_prompt(audit: Audit) -> pl.DataFrame:
    """Return the means of all documents by ``system`` and ``condition``: what each ranker was asked for."""
    return _by_condition(part_of(audit, "means"), windows=False)


def ratios_by_prompt(audit: Audit) -> pl.DataFrame:
    """Return the exposure ratios of the first pair by ``system`` and ``condition``."""
    return _by_condition(part_of(audit, "card"), windows=False)


def means_by_window(audit: Audit) -> pl.DataFrame:
    """Return the means of all documents by ``system`` and ``condition``: window and step of listwise rankers."""
    return _by_condition(part_of(audit, "means"), windows=True)


def ratios_by_window(audit: Audit) -> pl.DataFrame:
    """Return the exposure ratios of the first pair by ``system`` and ``condition``: window and step."""
    return _by_condition(part_of(audit, "card"), windows=True)


def _by_condition(rows: pl.DataFrame, *, windows: bool) -> pl.DataFrame:
    """Replace the ``system`` of each row by the bare ranker, and add the ``condition``; null where it has none."""
    if not rows.height:
        return rows
    conditions = {run: _condition(run, windows=windows) for run in rows["run"].unique()}
    systems = system_names(
        dict.fromkeys(conditions[run][0] for run in rows["run"] if conditions[run][1])
    )
    told = [conditions[run] for run in rows["run"]]
    return rows.with_columns(
        system=pl.Series([systems.get(bare) for bare, _ in told], dtype=pl.String),
        condition=pl.Series([condition or None for _, condition in told], dtype=pl.String),
    )


def _condition(run: str, *, windows: bool) -> tuple[str, str]:
    """Split a ranker's text into the ranker and what it is asked for; empty where a table is not about it.

    Candidates that all rankers order alike are no part of one's name.
    """
    try:
        stages = parse_stages(run)
    except UserError:  # a run of someone else's is called what its file says
        stages = []
    attributes = [stage.options["attribute"] for stage in stages if "attribute" in stage.options]
    condition = attributes[0] if attributes else "neutral"
    dropped = set(_PROMPT)
    if windows:
        listwise = [stage for stage in stages if stage.name == _LISTWISE]
        condition = " ".join([condition, *_window(listwise[-1])]) if listwise else ""
        dropped |= set(_WINDOWS)
    kept = [_without(stage, dropped) for stage in stages]
    if len(kept) > 1 and kept[0].name == "replay":
        kept = kept[1:]
    return ">>".join(map(str, kept)) or run, condition


def _without(stage: Stage, dropped: set[str]) -> Stage:
    options = {name: value for name, value in stage.options.items() if name not in dropped}
    return replace(stage, options=options)


def _window(stage: Stage) -> Iterator[str]:
    """Window and step of a listwise ranker, such as ``window=20``, the defaults where its text names none."""
    from ranktilt.rankers.llm.listwise import Listwise

    for name in _WINDOWS:
        yield f"{name}={stage.options.get(name, Listwise.__dataclass_fields__[name].default)}"


def preferences(comparison: Comparison) -> pl.DataFrame:
    """Return the ratio of each kind of pairs before and after: ``system``, ``kind``, ``when``, ``value``."""
    rows = [
        {"system": comparison.runs[0].old, "kind": kind, "when": when, "value": ratio.value}
        for kind, change in choices_of(comparison).items()
        for when, ratio in zip(BEFORE_AND_AFTER, ratios(change), strict=True)
    ]
    return pl.DataFrame(rows)


def _lists(means: Rows, card: Rows, *, home: pl.Expr) -> tuple[Selection, ...]:
    """Means of all documents, and the exposure ratio of the first pair, whatever its cutoff."""
    keys: dict[str, Column] = {"dataset": "dataset", "system": "system", "condition": "condition"}
    is_first_pair = (pl.col("a") == pl.col("a").first()) & (pl.col("b") == pl.col("b").first())
    name = pl.col("estimand").str.replace(r"@\d+$", "")
    of_means = Selection(
        result=Audit,
        part=means,
        keys={**keys, "measure": "measure"},
        value="mean",
        where=_BY_GROUP & (pl.col("group") == ALL),
        home=home,
    )
    of_ratios = Selection(
        result=Audit,
        part=card,
        keys={**keys, "measure": name},
        where=_BY_GROUP & (pl.col("kind") == EXPOSURE) & is_first_pair,
        home=home,
        first=True,
    )
    return of_means, of_ratios


WANG_1 = Layout(
    name="wang-1",
    source=SOURCE,
    title="Listwise evaluation: effectiveness, and exposure of the protected over that of the unprotected group",
    cells=_lists(means_by_prompt, ratios_by_prompt, home=pl.lit(True)),
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
    command="ranktilt audit DIR -r bm25 -m P@20 -m ExposureRatio --by gender --protected female --json FILE",
)


def _share(measure: str, column: str) -> Selection:
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


WANG_3 = Layout(
    name="wang-3",
    source=SOURCE,
    title="Pairwise evaluation: share of pairs in which the document of the unprotected and of the protected group is "
    "preferred, and the ratio of protected to unprotected",
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
WANG_FIG4 = Layout(
    name="wang-fig4",
    source=SOURCE,
    title="Pairwise evaluation before and after fine-tuning: ratio of the protected to the unprotected share",
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
LAYOUTS = (
    WANG_1,
    replace(
        WANG_1,
        name="wang-2",
        title="Listwise evaluation at several window and step sizes",
        cells=_lists(means_by_window, ratios_by_window, home=pl.lit(False)),
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
        command="ranktilt audit DIR -r 'bm25@200>>listwise:openai:MODEL(window=10,step=5)' -m P@20 -m ExposureRatio "
        "--by gender --protected female --json FILE",
    ),
    WANG_3,
    WANG_FIG4,
)
