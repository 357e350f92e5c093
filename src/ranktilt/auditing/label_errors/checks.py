"""Check that an audit's questions and documents allow a correction for label errors.

An answer can be corrected if it is *linear in labels*: a sum of what each document adds, in which a
document of the second group counts the negative of one of the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ranktilt.auditing.groups import Groups, Pair
from ranktilt.auditing.label_errors.model import OPTION, LabelModel, label_model
from ranktilt.auditing.null_distributions.twins import all_paired, signs_of
from ranktilt.auditing.options import AuditOptions
from ranktilt.data.collection import Collection
from ranktilt.data.labels.label_errors import LabelErrors
from ranktilt.errors import UserError
from ranktilt.measures.base import Estimand, GroupEstimand, Measure
from ranktilt.measures.ranking import Ints


def is_correctable(estimand: Estimand) -> bool:
    """Return whether an answer is linear in labels, so that their errors can be corrected."""
    if not isinstance(estimand, GroupEstimand):
        return False
    # Any other estimand is linear only if it says what each label adds, by a method of its own.
    has_coefficients = type(estimand).label_coefficients is not GroupEstimand.label_coefficients
    return estimand.is_difference_of_sums or has_coefficients


def check_correctable(
    estimands: Sequence[Estimand], options: AuditOptions, *, has_property: bool
) -> None:
    """Refuse questions that cannot be corrected for label errors, if the options name rates.

    `has_property` says that the audit is about a column of numbers instead of labels.
    """
    if options.label_errors is None:
        return
    if has_property:
        raise UserError(
            f"{OPTION} needs labels, and {options.by} is a column of numbers, such as a detector's "
            f"probabilities: cut it (--by {options.by}:.5) and give the rates of that cut"
        )
    if options.by is None:
        raise UserError(f"{OPTION} needs a column to group by; omit --by none")
    refuse_uncorrectable(estimands)


def refuse_uncorrectable(estimands: Iterable[Estimand]) -> None:
    """Refuse questions whose answers are not linear in labels."""
    for question in estimands:
        if is_correctable(question):
            continue
        name = f"Relative Δ of {question!r}" if isinstance(question, Measure) else repr(question)
        depth = question.cutoff or 10
        raise UserError(
            f"{name} cannot be corrected for label errors, because it is no sum of labels; ask "
            f"who has the first ranks instead: -m Share@{depth} (or NDSR@{depth}) without other "
            "measures"
        )


def audited_label_model(
    errors: LabelErrors | None,
    collection: Collection,
    groups: Groups,
    twins: Mapping[Pair, Ints],
    questions: Sequence[Estimand],
) -> LabelModel | None:
    """Return the error rates of an audit's labels; None if `errors` is None and labels are true.

    Refuses twins, whose labels cannot be wrong, and questions that these groups do not allow.
    `twins` has the rows of the twins of each pair of groups, two documents in each row.
    """
    if errors is None:
        return None
    for pair, rows in twins.items():
        if all_paired(signs_of(groups, pair), rows):
            raise UserError(
                f"the documents of {pair[0]} and {pair[1]} are twins: each is known to be a "
                f"version of another, so no label can be wrong; omit {OPTION}"
            )
    model = label_model(errors, collection, groups)
    for question in questions:
        is_page = isinstance(question, GroupEstimand) and question.is_difference_of_sums
        if len(groups.names) > 2 and not is_page:
            names = ", ".join(groups.names)
            raise UserError(
                f"{question!r} compares two groups within both, and with {len(groups.names)} "
                f"({names}) labels err in its denominator too: ask NDSR@{question.cutoff or 10}, "
                f"or compare one group with all others (--pair {groups.names[-1]},rest)"
            )
    return model
