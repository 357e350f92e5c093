"""Provenance of a comparison: how it was made, so that it can be repeated.

It becomes the `spec` of the result: a dictionary that is written into its file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ranktilt.auditing.comparison.options import ComparisonOptions
from ranktilt.auditing.effects import Change
from ranktilt.auditing.pairwise.result import PairwiseAudit
from ranktilt.auditing.result import Audit


def comparison_spec(
    new: Audit | PairwiseAudit,
    old: Audit | PairwiseAudit,
    rows: Sequence[Change],
    options: ComparisonOptions,
) -> dict[str, Any]:
    """Return the options, the number of tests, and the commands behind both audits.

    `rows` are the changes whose p are corrected together.
    """
    return {
        "correction": options.correction,
        "resamples": options.resamples,
        "seed": options.seed,
        "family_size": sum(not np.isnan(row.p) for row in rows),
        "new": audit_spec(new),
        "old": audit_spec(old),
    }


def audit_spec(audit: Audit | PairwiseAudit) -> dict[str, Any]:
    """Return what a comparison records about an audit.

    These are its file, if it was loaded from one, its command, the version of RankTilt (key
    ``ranktilt``) and its collection. The names of runs with repeats, which are several rankings by
    one ranker, are under ``repeated``.
    """
    names = ("command", "ranktilt", "collection")
    spec = {name: audit.spec[name] for name in names if name in audit.spec}
    if isinstance(audit, Audit):
        repeated = [run for run in audit.runs if audit.repeat_count(run) > 1]
        spec |= {"repeated": repeated} if repeated else {}
    return {"file": audit.loaded_from, **spec} if audit.loaded_from else spec
