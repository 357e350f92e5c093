"""The sections of an audit's page, from the forest plot to how it was made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ranktilt.auditing.breakdown import RankShares, rank_shares
from ranktilt.auditing.result import Audit
from ranktilt.reporting.document import Block, Cell, Column, Figure, Row, Section, Table, named
from ranktilt.reporting.explorer.section import BUDGET, explorer
from ranktilt.reporting.figures.audit import (
    MOST_PAIRS,
    card_figure,
    control_figure,
    drawn_pairs,
    effectiveness_figure,
    tilt_figure,
)
from ranktilt.reporting.figures.charts import curves
from ranktilt.reporting.numbers import decimal, number, percent
from ranktilt.reporting.reload import LoadedAudit
from ranktilt.reporting.views.audit_tables import (
    card_table,
    conflict_sentences,
    confound_table,
    control_sentences,
    control_table,
    group_table,
)
from ranktilt.reporting.views.provenance import provenance

Floats = npt.NDArray[np.float64]
_DEPTH = 100
_MOST_LINES = 8
_MOST_DRAWN = 3
_RANKS = (1, 3, 5, 10, 20, 50, 100)


def audit_sections(opened: LoadedAudit, *, budget: int = BUDGET) -> list[Section]:
    """Lay out what was asked of an audit. Text shows the tables only."""
    audit = opened.audit
    found = [
        _tilt(audit),
        Section("table", "The table", (), (group_table(audit),)) if audit.measures else None,
        _effectiveness(audit),
        _card(audit),
        ranks_section(opened) if audit.pairs else None,
        _queries(opened, budget),
        _confounds(audit),
        _controls(audit),
        provenance(audit.spec, audit.notes),
    ]
    return [section for section in found if section is not None]


def _tilt(audit: Audit) -> Section | None:
    title = "How far each ranker tilts"
    if audit.tilted_pairs:
        pairs = drawn_pairs(audit)
        more = f"Drawn for the {len(pairs)} of {len(audit.tilted_pairs)} pairs of groups that tilt most clearly."
        lead: tuple[str, ...] = (
            "An interval that holds 0 does not show a tilt; only a short one close to 0 shows that there is hardly any."
            if all(t.twins for t in audit.tilts)
            else "Groups that hold different documents are level where labels dealt out at random stand, not at 0.",
            *([more] if len(pairs) < len(audit.tilted_pairs) else []),
        )
        return Section("tilt", title, lead, tuple(tilt_figure(audit, pair) for pair in pairs))
    figures = tuple(filter(None, (card_figure(audit, pair) for pair in audit.pairs[:MOST_PAIRS])))
    lead = ("Nothing is judged, so the card's questions are asked instead.",)
    return Section("tilt", title, lead, figures) if figures else None


def _effectiveness(audit: Audit) -> Section | None:
    if not audit.tilted_pairs:
        return None
    figures = tuple(effectiveness_figure(audit, pair) for pair in drawn_pairs(audit))
    lead = (
        "A ranker that tilts is not a poor one, and a level one is not a good one: both are to be looked at together."
    )
    return Section("effectiveness", "Effectiveness beside tilt", (lead,), figures)


def _card(audit: Audit) -> Section | None:
    if not audit.estimates:
        return None
    lead = (
        "“Does it favour one side?” can be asked in several ways, and the answers need not agree: a ranker can put one "
        "side's right answers higher and yet fill the page with the other's."
    )
    return Section("card", "Five questions, one run", (lead, *conflict_sentences(audit)), (card_table(audit),))


def _queries(opened: LoadedAudit, budget: int) -> Section:
    found = explorer(opened, budget=budget) if budget else None
    if found is not None:
        lead = "Which queries make the tilt, what was found for each, and what the two texts look like side by side."
        if opened.audit.tilts and not any(tilt.twins for tilt in opened.audit.tilts):
            lead = "Which queries make the difference, what was found for each, and what the texts say."
        if not opened.audit.pairs:
            lead = "How well each query is answered, and what was found for it."
        return Section("queries", "Queries", (lead, *opened.notes), (found,))
    if not budget:
        return Section("queries", "Queries", ("Queries, ranked lists and texts are left out, as was asked for.",))
    why = opened.notes or ("The audit was not opened together with its collection and runs.",)
    return Section("queries", "Queries", ("Queries, ranked lists and texts are left out.", *why))


def _confounds(audit: Audit) -> Section | None:
    if not audit.confounds:
        return None
    lead = "Who wrote a text is not all in which the sides differ. A ranker may respond to any of these."
    return Section("confounds", "What else differs", (lead,), (confound_table(audit),))


def _controls(audit: Audit) -> Section | None:
    if not audit.controls:
        return None
    lead = "The same audit once more with what else differs between twins taken away: does the tilt stay?"
    found = [f"{one}." for one in control_sentences(audit)] or ["No control changes a verdict on the primary measure."]
    figures: list[Block] = [control_figure(audit, pair) for pair in drawn_pairs(audit)]
    return Section("controls", "Raw and controlled", (lead, *found), (*figures, control_table(audit)))


def ranks_section(opened: LoadedAudit) -> Section:
    """Show which groups fill the first ranks, and how soon the relevant documents of each are found."""
    title = "Who stands at which rank"
    if opened.collection is None or not opened.runs:
        why = opened.notes or ("The audit was not opened together with its collection and runs.",)
        return Section("ranks", title, ("Left out here: it needs the collection and the runs.", *why))
    found = [rank_shares(opened.collection, run, opened.audit, depth=_DEPTH) for run in opened.runs]
    judged = any(np.isfinite(one.found).any() for one in found)
    sooner = " And of the relevant documents of each group, how many?" if judged else ""
    lead = (
        f"Relevant or not, which documents does a searcher meet down to a rank?{sooner} Tied documents are spread "
        "evenly over the ranks that they share.",
    )
    groups = found[0].groups
    ahead = [groups.index(name) for name in (opened.audit.pairs or [()])[0]]
    order = [*ahead, *(g for g in range(len(groups)) if g not in ahead)]
    figures = _rank_figures(found[:_MOST_LINES], order[:_MOST_DRAWN], judged=judged)
    drawn = f"Drawn for the first {_MOST_LINES} of {len(found)} rankers; the tables hold all."
    more = (drawn,) if len(found) > _MOST_LINES else ()
    tables = [_rank_table([_filled(one) for one in found], found, "Documents of each group down to a rank, in %")]
    if judged:
        values = [one.found for one in found]
        tables.append(_rank_table(values, found, "Relevant documents of each group found down to a rank, in %"))
    return Section("ranks", title, (*lead, *more), (*figures, *tables))


def _filled(one: RankShares) -> Floats:
    """Share of each group among all documents down to each rank, over all queries; NaN below the longest list."""
    held = np.cumsum(np.where(one.queries > 0, np.nan_to_num(one.at) * one.queries, 0.0), axis=1)
    of = np.cumsum(one.queries)
    return np.where(one.queries > 0, held / np.maximum(of, 1), np.nan)


def _reach(found: Sequence[RankShares]) -> int:
    return max(1, *(int((one.queries > 0).sum()) for one in found))


def _rank_figures(found: Sequence[RankShares], order: Sequence[int], *, judged: bool) -> Iterator[Figure]:
    """What each group holds, and how much sooner the first one's relevant documents are found; a line a ranker."""
    reach, names = _reach(found), found[0].groups
    first, *others = order
    for g in order if len(others) > 1 else [first]:
        level = 100 * float(found[0].level[g])
        filled = {one.run: 100 * _filled(one)[g][:reach] for one in found}
        yield Figure(
            f"Who fills the first ranks: {names[g]}",
            f"Dotted: {names[g]} in the whole collection, {decimal(level)} %.",
            curves(filled, x="down to rank", y=f"{names[g]}, % of results", levels=[level]),
            half=judged or len(others) > 1,
        )
    for g in others if judged else ():
        sooner = {one.run: 100 * (one.found[first] - one.found[g])[:reach] for one in found}
        yield Figure(
            f"Whose right answers are found sooner: {names[first]} less {names[g]}",
            f"Share of the relevant documents found down to a rank, {names[first]} less {names[g]}: above 0 those of "
            f"{names[first]} are found sooner, below 0 those of {names[g]}.",
            curves(sooner, x="down to rank", y="difference, points", zeroed=True),
            half=True,
        )


def _rank_table(values: Sequence[Floats], found: Sequence[RankShares], caption: str) -> Table:
    ranks = [rank for rank in _RANKS if rank <= _reach(found)]
    rows = (
        Row((Cell(group), *(number(float(of[rank - 1]), percent) for rank in ranks)), (one.run,))
        for one, shares in zip(found, values, strict=True)
        for group, of in zip(one.groups, shares, strict=True)
    )
    columns = (named("group"), *(Column(f"rank {rank}") for rank in ranks))
    return Table(caption, columns, tuple(rows), folded=True, only="page")
