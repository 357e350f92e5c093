"""Provenance of a comparison: how it was made, so that it can be repeated."""

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
    """Return the options, the number of tests in the family, and the commands behind both."""
    return {
        "correction": options.correction,
        "resamples": options.resamples,
        "seed": options.seed,
        "family_size": sum(not np.isnan(row.p) for row in rows),
        "new": _origin(new),
        "old": _origin(old),
    }


def _origin(audit: Audit | PairwiseAudit) -> dict[str, Any]:
    """Return the file of an audit, the command behind it, its version and its collection."""
    names = ("command", "ranktilt", "collection")
    origin = {name: audit.spec[name] for name in names if name in audit.spec}
    return {"file": audit.loaded_from, **origin} if audit.loaded_from else origin
