"""Options of labels: which file has them, how it is read, and which group is the reference.

A *label* says to which group a document belongs, such as ``human`` in the column ``source``. The
*reference* is the group that the others are compared with; it comes first in each pair, and so a
positive tilt is one in its favour.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli.app import INPUT, SELDOM
from ranktilt.cli.notes import note_once
from ranktilt.cli.options import FILE_OR_STDIN, Pairs, Reference
from ranktilt.cli.settings import settings
from ranktilt.errors import UserError, unknown_name

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.data.labels.label_file import LabelFile


@Parameter(name="*", group=INPUT)
@dataclass(frozen=True, kw_only=True)
class LabelOptions:
    """Labels of documents, how their file is read, and the group to compare the others with."""

    groups: Annotated[
        str | None,
        FILE_OR_STDIN,
        Parameter(
            help="Labels of documents, in columns doc_id, source[, origin]. Name other columns "
            "as FILE:id=url,source=is_ai. Or a name from ranktilt.toml.",
            metavar="FILE",
        ),
    ] = None
    rest: Annotated[
        str | None,
        Parameter(
            help="Label for all documents that --groups does not name.",
            metavar="LABEL",
            group=SELDOM,
        ),
    ] = None
    name: Annotated[
        list[str] | None,
        Parameter(help="Names for label values, such as 1=ai,0=human.", metavar="VALUE=NAME"),
    ] = None
    reference: Reference = None

    @property
    def labels(self) -> LabelFile | None:
        """The label file; None where none is named."""
        from ranktilt.data.labels.label_file import LabelFile

        if self.groups is None:
            if self.rest is not None:
                raise UserError("--rest needs a label file: --groups FILE")
            return None
        if self.rest is not None and not self.rest.strip():
            raise UserError(
                "--rest expects a label for all other documents, such as --rest other; got none"
            )
        configured = _configured_labels(self.groups)
        labels = LabelFile.from_text(self.groups) if configured is None else configured
        names = {**labels.names, **self.label_names}
        return replace(labels, names=names, rest=self.rest or labels.rest)

    @property
    def label_names(self) -> dict[str, str]:
        """Names of label values, by value: ``--name 1=ai`` gives ``{"1": "ai"}``."""
        texts: list[str] = []
        for text in self.name or ():
            texts += _several_names(text)
        pairs = [text.partition("=") for text in texts]
        names = {value: name.strip() for value, _, name in pairs}
        if not all(map(str.strip, names)) or not all(names.values()) or len(names) < len(pairs):
            typed = ", ".join(self.name or ())
            raise UserError(f"--name expects a value and its name, such as 1=ai; got {typed}")
        return names

    def labelled(self, collection: Collection, by: str) -> Collection:
        """Return a collection with the labels of the file in the column `by`.

        Without a file, the collection's own labels get the names of ``--name``.
        """
        from ranktilt.data.labels.labels import with_labels, with_names

        if self.labels is not None:
            return with_labels(collection, self.labels, by=by)
        return with_names(collection, self.label_names, by=by) if self.name else collection

    def reference_first(
        self, collection: Collection, by: str | None, pairs: Pairs | None
    ) -> Pairs | None:
        """Return the pairs to compare, the reference group first in each, and refuse bad pairs.

        Parameters
        ----------
        collection : Collection
            The documents with their groups.
        by : str or None
            The column of the groups; None for no groups.
        pairs : list of (str, str) or None
            Pairs that were typed; None for all.

        Returns
        -------
        list of (str, str) or None
            `pairs` unchanged where no reference is typed.
        """
        from ranktilt.auditing.grouping.pairs import grouped_pairs

        # This refuses unknown groups, whether or not a reference is typed.
        groups, compared_pairs = grouped_pairs(collection, by, pairs, fewest=1)
        if self.reference is None:
            return pairs
        name = groups.names[groups.index(self.reference)]
        if pairs and not any(name in pair for pair in compared_pairs):
            raise UserError(
                f"--reference {self.reference}: no pair that you named has this group; omit it"
            )
        return [(b, a) if b == name else (a, b) for a, b in compared_pairs]


def _several_names(text: str) -> list[str]:
    """Split ``0=human,1=ai`` at the comma; a comma within a name, ``1=a, b``, does not split."""
    parts = text.split(",")
    return parts if all("=" in part for part in parts) else [text]


def _configured_labels(name: str) -> LabelFile | None:
    """Return the label file of a section [labels.NAME] of ranktilt.toml; None without a section.

    A file of this name wins over the section, with a note.
    """
    from ranktilt.data.labels.label_file import LabelFile

    configuration = settings().configuration
    section = configuration.labels.get(name)
    if section is None:
        # A text that looks like a path or has columns is a file; any other is a misspelt name.
        is_plain = not os.path.exists(name) and not re.search(r"[./:\\]", name)
        if is_plain and configuration.labels:
            raise unknown_name(
                f"label file, and name in {configuration.path},", name, configuration.labels
            )
        return None
    if os.path.isfile(name):
        note_once(f"--groups {name}: using the file, not [labels.{name}] of {configuration.path}")
        return None
    columns = {"doc_id" if key == "id" else key: column for key, column in section.columns.items()}
    return LabelFile(
        path=section.file, columns=columns, names=dict(section.names), rest=section.rest
    )
