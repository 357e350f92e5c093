"""Which groups of pages an audit of citations compares."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from ranktilt.citing.prepare import CitationInputs
from ranktilt.data.labels.group_names import name_among
from ranktilt.errors import UserError, unknown_name

_HUMAN = "human"
"""Name of the group that all others are compared with by default, if there is one."""


def compared_pairs(
    inputs: CitationInputs, pairs: Sequence[tuple[str, str]] | None, reference: str | None
) -> list[tuple[str, str]]:
    """Return the pairs of groups to compare: a, and the group b that it is compared with.

    The user names the pairs, or the reference that each other group is compared with. Without
    either the reference is ``human``, if there is such a group; otherwise every group is compared
    with every other, the less cited one first.

    Raises
    ------
    UserError
        If pairs and a reference are named, a group is unknown, or a pair has one group twice.
    """
    if reference is not None and pairs is not None:
        raise UserError("name either pairs or a reference, which each other group is compared with")
    if pairs is None and reference is None and _HUMAN in inputs.groups:
        reference = _HUMAN
    if reference is not None:
        reference = _group(inputs, reference)
        return [(group, reference) for group in inputs.groups if group != reference]
    if pairs is None:
        return list(combinations(reversed(inputs.groups), 2))
    pairs = [(_group(inputs, a), _group(inputs, b)) for a, b in pairs]
    for a, b in pairs:
        if a == b:
            raise UserError(f"expected two different groups, got {a!r} twice")
    return pairs


def _group(inputs: CitationInputs, name: str) -> str:
    """Return the group of a name; a bare label counts too, such as 1 for ``source 1``."""
    group = name_among(name, inputs.groups, inputs.spec["by"])
    if group is None:
        raise unknown_name("group", name, inputs.groups)
    return group
