"""The audits that a gate judges: a single audit, or one for each of several sources."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ranktilt.auditing.gate.requirements import Requirements
from ranktilt.auditing.groups import Pair
from ranktilt.auditing.result import Audit
from ranktilt.auditing.source_audits import SourceAudits
from ranktilt.errors import UserError, unknown_name
from ranktilt.measures.base import Estimand


@dataclass(frozen=True, kw_only=True, eq=False)
class GatedAudit:
    """An audit, the answers that must pass, and the baseline."""

    audit: Audit
    """The audit to gate."""
    requirements: Requirements
    """Answers that must pass."""
    baseline: Audit | None
    """An earlier audit to compare with; None if there is none."""


def gated_audits(
    audit: Audit | SourceAudits,
    baseline: Audit | SourceAudits | None,
    *,
    measures: Iterable[str | Estimand] | None,
    runs: Iterable[str] | None,
    pairs: Iterable[Pair] | None,
    needs_judgments: bool,
) -> list[GatedAudit]:
    """Return the audits to gate; several sources are judged separately.

    Parameters
    ----------
    audit : Audit or SourceAudits
        The audit to gate.
    baseline : Audit, SourceAudits or None
        An earlier audit of the same kind.
    measures, runs, pairs : iterable or None
        What must pass; None for the primary question, all runs and all pairs of groups.
    needs_judgments : bool
        Whether effectiveness is judged too.

    Raises
    ------
    UserError
        If something is named that the audit lacks, the baseline is of another kind, or judgments
        are needed and there are none.
    """
    if baseline is not None and type(baseline) is not type(audit):
        raise UserError(
            "audit and baseline differ in kind: one covers several sources, the other "
            "is a single audit"
        )
    if isinstance(audit, Audit):
        audits = {"": audit}  # a single audit has no source
    else:
        audits = _audits_by_source(audit, pairs)
        pairs = None
    gated = []
    for source, audited in audits.items():
        earlier = baseline.audit_of(source) if isinstance(baseline, SourceAudits) else baseline
        if needs_judgments and not audited.measures:
            raise UserError("--max-loss needs effectiveness, and this audit has no judgments")
        requirements = Requirements.from_names(audited, measures=measures, runs=runs, pairs=pairs)
        gated.append(GatedAudit(audit=audited, requirements=requirements, baseline=earlier))
    return gated


def _audits_by_source(audits: SourceAudits, pairs: Iterable[Pair] | None) -> dict[str, Audit]:
    """Return the audits of all sources, or of those that `pairs` compare with the reference."""
    source_of_pair: dict[frozenset[str], str] = {}
    for compared in audits.sources:
        source_of_pair[frozenset((audits.reference, compared.source))] = compared.source
    if pairs is None:
        return {source: audits.audit_of(source) for source in source_of_pair.values()}
    by_source = {}
    for pair in pairs:
        source = source_of_pair.get(frozenset(pair))
        if source is None:
            names = [f"{audits.reference},{known}" for known in source_of_pair.values()]
            raise unknown_name("pair of groups", ",".join(pair), names)
        by_source[source] = audits.audit_of(source)
    return by_source
