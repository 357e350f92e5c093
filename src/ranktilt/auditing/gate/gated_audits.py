"""The audits that a gate judges: one, or one for each source."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ranktilt.auditing.gate.requirements import Requirements
from ranktilt.auditing.groups import Pair
from ranktilt.auditing.result import Audit
from ranktilt.auditing.source_audits import SourceAudits
from ranktilt.errors import UserError, unknown
from ranktilt.measures.base import Estimand


@dataclass(frozen=True, kw_only=True, eq=False)
class GatedAudit:
    """An audit, the answers that must pass, and an earlier audit."""

    audit: Audit
    """The audit to gate."""
    requirements: Requirements
    """Answers that must pass."""
    baseline: Audit | None
    """An earlier audit; None without one."""


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
        audits = {"": audit}
    else:
        audits = _chosen_sources(audit, pairs)
        pairs = None
    gated = []
    for source, audited in audits.items():
        earlier = baseline.audit_of(source) if isinstance(baseline, SourceAudits) else baseline
        if needs_judgments and not audited.measures:
            raise UserError("--max-loss needs effectiveness, and this audit has no judgments")
        requirements = Requirements.from_names(audited, measures=measures, runs=runs, pairs=pairs)
        gated.append(GatedAudit(audit=audited, requirements=requirements, baseline=earlier))
    return gated


def _chosen_sources(audits: SourceAudits, pairs: Iterable[Pair] | None) -> dict[str, Audit]:
    """Return the audits of all sources, or of those that pairs compare with the reference."""
    known = {compared.source: {audits.reference, compared.source} for compared in audits.sources}
    if pairs is None:
        return {source: audits.audit_of(source) for source in known}
    chosen = {}
    for pair in pairs:
        source = next((source for source, sides in known.items() if set(pair) == sides), None)
        if source is None:
            names = [f"{audits.reference},{source}" for source in known]
            raise unknown("pair of groups", ",".join(pair), names)
        chosen[source] = audits.audit_of(source)
    return chosen
