"""The part of an engine's audit that a comparison needs, and whether two audits can be compared.

An audit of citations compares groups of pages that the engine's answers cite. Pages have labels,
which are their groups; a *unit* is pages that are labelled together, such as those of a domain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from ranktilt.citing.pages.kept_pages import KeptPages
from ranktilt.data.notes.base import Note
from ranktilt.errors import UserError

Pair = tuple[str, str]
"""Two groups that are compared: a, and the group b that it is compared with."""
_SETTINGS = {"by": "--by", "exact_urls": "--exact-urls"}
"""Settings that two audits must share, with the option of each."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditedEngine:
    """The part of an engine's audit that a comparison needs."""

    name: str
    """Name of the engine, or of its file; empty if neither is known."""
    pages: KeptPages
    """The answers and their labelled pages."""
    unit: str
    """Unit at which labels are constant: ``domain``, ``page``, or a column."""
    pairs: tuple[Pair, ...]
    """Pairs of groups that the audit compares."""
    notes: tuple[Note, ...]
    """Notes of the audit."""
    spec: dict[str, Any]
    """Settings and files of the audit, and the ``file`` that it was loaded from."""

    @property
    def origin(self) -> dict[str, Any]:
        """The command that made the audit, and the files of its answers and labels."""
        keys = ("command", "ranktilt", "files", "engine", "labels", "run")
        origin = {key: self.spec[key] for key in keys if key in self.spec}
        return {"file": self.spec["file"], **origin} if self.spec.get("file") else origin


def require_alike(new: AuditedEngine, old: AuditedEngine) -> None:
    """Refuse audits that were not made in the same way.

    Raises
    ------
    UserError
        If an audit is corrected for label errors or keeps no pages, or settings or units differ.
    """
    for engine, side in ((new, "new"), (old, "old")):
        if "label_errors" in engine.spec:
            raise UserError(
                f"the {side} audit is corrected for label errors, which a comparison of two "
                "engines is not; audit both without --label-errors"
            )
        if not engine.pages.answers.height:
            raise UserError(
                f"the {side} audit is too large to keep its pages, so that it cannot be compared; "
                "audit a part of the questions"
            )
    for name, option in _SETTINGS.items():
        new_setting, old_setting = new.spec.get(name), old.spec.get(name)
        if new_setting != old_setting:
            raise UserError(
                f"the audits differ in {name}: {new_setting!r} (new) and {old_setting!r} (old); "
                f"use the same {option} for both"
            )
    if new.unit != old.unit:
        raise UserError(
            f"the labels are constant within {new.unit} (new) and {old.unit} (old); audit both "
            f"with --cluster {new.unit} or --cluster {old.unit}"
        )


def require_same_labels(new: KeptPages, old: KeptPages) -> None:
    """Refuse audits that give one page different labels."""
    new_labels, old_labels = (
        pages.pages.select("page", "label").unique("page").drop_nulls() for pages in (new, old)
    )
    common_pages = new_labels.join(old_labels, on="page", suffix="_old")
    clash = common_pages.filter(pl.col("label") != pl.col("label_old")).sort("page")
    if clash.height:
        page, label, old_label = clash.select("page", "label", "label_old").row(0)
        raise UserError(
            f"page {page!r} is {label!r} in the new audit and {old_label!r} in the old one; use "
            "the same labels for both"
        )


def common_pairs(new: AuditedEngine, old: AuditedEngine) -> list[Pair]:
    """Return the pairs of groups that both audits compare, in the order of the new audit."""
    # The old audit may have them the other way round.
    old_pairs = {*old.pairs, *(pair[::-1] for pair in old.pairs)}
    pairs = [pair for pair in new.pairs if pair in old_pairs]
    if not pairs:
        raise UserError(
            "the audits compare no pair of groups in common: "
            f"{_pair_names(new)} (new), {_pair_names(old)} (old)"
        )
    return pairs


def _pair_names(engine: AuditedEngine) -> str:
    """Return the pairs of an audit for a message, such as ``ai and human, web and human``."""
    return ", ".join(" and ".join(pair) for pair in engine.pairs)
