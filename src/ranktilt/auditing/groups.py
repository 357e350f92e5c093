"""The groups of a collection's documents.

A document's *label* is its value in the column that makes the groups: for the column ``gender``,
the label ``female`` puts it in the group ``female``. A document may have several labels. Then it is
in no single group, but in a *combination* of groups. A *property* is a column of numbers, such as
popularity. It makes two groups, its two ends: the documents above the mean and those below.

`Groups` is the record that audits pass around; `auditing.grouping` makes it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ranktilt.data.labels.group_names import name_among
from ranktilt.data.notes.inputs import LabelNote
from ranktilt.errors import nearest, unknown_name

ALL = "all"
"""Name of all documents together, in results that hold values of groups."""
MOST_SUGGESTED = 12
"""Most labels in ``rest`` that a message suggests instead of an unknown name of a group.

There may be thousands of such labels, so only the nearest ones are suggested.
"""
Pair = tuple[str, str]
"""Names of two groups that are compared; a positive difference favours the first."""


@dataclass(frozen=True, kw_only=True)
class Groups:
    """Groups of a collection's documents, made from one column or from the lengths of the texts.

    A group's index is its position in `names`.
    """

    by: str | None
    """Column of the groups; ``length`` for bins of the number of words; None without groups."""
    names: tuple[str, ...]
    """Names of the groups, in the order of tables."""
    code: npt.NDArray[np.int64]
    """Index of each document's group, by row; -1 for a document of no group or of several."""
    outside: int = 0
    """Number of documents outside the pool.

    The *pool* is the documents that the makers of a data set had rewritten. A document outside it
    has no other version by design, so it cannot be compared, and is in no group of sources.
    """
    merged: tuple[str, ...] = ()
    """Rare labels that have no group of their own.

    Their documents together are the last group, such as ``rest``.
    """
    combinations: tuple[tuple[int, ...], ...] = ()
    """Indexes of groups that occur together in a document, each combination once."""
    combination_of: npt.NDArray[np.int64] | None = None
    """Index in `combinations` of the groups of each document, by row; −1 for one group or none.

    None if no document is in several groups.
    """
    remarks: tuple[LabelNote, ...] = ()
    """Notes on the labels as they are written, such as two spellings of one name."""
    values: npt.NDArray[np.float64] | None = None
    """Value of the property of each document, by row; NaN if unknown.

    None if the groups are not the two ends of a property.
    """

    @property
    def mean_value(self) -> float:
        """Mean of the property over the documents that have a number."""
        return float(np.nanmean(self._known_values))

    @property
    def spread_of_values(self) -> float:
        """Standard deviation of the property over the documents that have a number."""
        return float(np.nanstd(self._known_values))

    @property
    def _known_values(self) -> npt.NDArray[np.float64]:
        """Numbers of all documents; a single NaN if the groups are no ends of a property."""
        return np.array([np.nan]) if self.values is None else self.values

    @property
    def unlabelled(self) -> int:
        """Number of documents in the pool that have no label."""
        if not self.by:
            return 0
        without_group = int((self.code < 0).sum())
        return without_group - self.outside - self.several

    @property
    def several(self) -> int:
        """Number of documents of several groups, which take part in no comparison of two groups."""
        return 0 if self.combination_of is None else int((self.combination_of >= 0).sum())

    def index(self, name: str) -> int:
        """Return the index of the group with a name or label; refuse a name that no group has."""
        known_name = name_among(name, self.names, self.by or "")
        if known_name is None:
            suggestions = nearest(name, self.merged, MOST_SUGGESTED)
            raise unknown_name(self.by or "group", name, [*suggestions, *self.names])
        return self.names.index(known_name)

    @property
    def kind(self) -> npt.NDArray[np.int64]:
        """Kind of each document, by row: its group, its combination of groups, or "no label".

        A kind is one number for all three cases. The first kinds are the groups, the next ones the
        combinations of groups, and the last one is "no label".
        """
        no_label = len(self.names) + len(self.combinations)
        kind = np.where(self.code >= 0, self.code, no_label)
        if self.combination_of is None:
            return kind
        is_combined = self.combination_of >= 0
        return np.where(is_combined, len(self.names) + self.combination_of, kind)

    @property
    def parts(self) -> npt.NDArray[np.float64]:
        """How much of a document of each `kind` is in each group, of shape (n_kinds, n_groups + 1).

        A document of one group is wholly in it: its row has a 1. A document of several groups
        belongs to each of them in equal parts. The last column is for documents without a label.
        """
        group_count = len(self.names)
        shares = np.zeros((group_count + len(self.combinations) + 1, group_count + 1))
        shares[np.arange(group_count), np.arange(group_count)] = 1.0
        shares[-1, -1] = 1.0
        for kind, members in enumerate(self.combinations, start=group_count):
            shares[kind, list(members)] = 1 / len(members)
        return shares
