"""Compare the choices of two models between pairs of documents, for the same queries.

A *pair* is a document of the protected group, whose treatment is examined, and another document. A
model's *preference* is the share of its choices that take the protected document. It is compared
kind by kind: the *kind* of a pair says whether both documents are relevant to the query, or
neither.
"""

from __future__ import annotations

from ranktilt.auditing.comparison.match import RunPair
from ranktilt.auditing.comparison.match_choices import choice_changes, match_choices
from ranktilt.auditing.comparison.notes import change_notes, warnings_of_both
from ranktilt.auditing.comparison.options import ComparisonOptions
from ranktilt.auditing.comparison.provenance import comparison_spec
from ranktilt.auditing.comparison.result import Comparison
from ranktilt.auditing.pairwise.result import PairwiseAudit
from ranktilt.auditing.result import Audit
from ranktilt.auditing.significance import correct_p_values
from ranktilt.data.notes.comparisons import OtherPairsDrawn
from ranktilt.errors import UserError


def compare_choices(
    new: Audit | PairwiseAudit, old: Audit | PairwiseAudit | None, options: ComparisonOptions
) -> Comparison:
    """Return how the preference of a model differs from that of an older one, for each kind.

    Refuses anything but two pairwise audits.
    """
    if not isinstance(new, PairwiseAudit) or not isinstance(old, PairwiseAudit):
        raise UserError("expected two audits, or two pairwise audits: NEW.json OLD.json")
    matched = match_choices(new, old, max_left_out=options.max_left_out)
    changes = choice_changes(list(matched.tasks), resamples=options.resamples, seed=options.seed)
    rows = correct_p_values(changes, options.correction)
    spec = {
        **comparison_spec(new, old, rows, options),
        **{name: new.spec[name] for name in ("path", "by", "count_rule") if name in new.spec},
        "protected": new.protected,
        "unprotected": new.unprotected,
        "baseline_run": None,
        "queries_left_out": matched.queries_left_out,
    }
    has_same_pairs = new.spec.get("asked") == old.spec.get("asked")
    notes = (
        *warnings_of_both(new.notes, old.notes),
        *matched.notes,
        *([] if has_same_pairs else [OtherPairsDrawn()]),
        *change_notes(rows, (), options.resamples),
    )
    return Comparison(
        spec=spec,
        runs=(RunPair(new=new.model, old=old.model),),
        measures=(),
        pairs=(),
        tilts=(),
        effectiveness=(),
        notes=notes,
        estimates=rows,
    )
