"""Names that measures have elsewhere: in papers, trec_eval (``ndcg_cut_5``), ir_measures, BEIR and ranx."""

from __future__ import annotations

import re
from collections.abc import Collection

from ranktilt.errors import UserError

ALIASES = {"map": "AP", "mrr": "RR", "recip_rank": "RR", "recall": "R", "prec": "P", "precision": "P"}
"""Measures by other names, in small letters. trec_eval's map_cut is AP with a cutoff."""
_CUT = re.compile(r"(?P<name>\w+?)(?:_cut)?[._](?P<cutoff>[0-9]+)")


def canonical(name: str, cutoff: str | None, names: Collection[str]) -> tuple[str, str | None]:
    """Return a measure's name here, of `names`, and its cutoff; an exact name is taken as it is, an unknown one too."""
    if name in names:
        return name, cutoff
    folded = {**ALIASES, **{known.casefold(): known for known in names}}
    cut = _CUT.fullmatch(name)
    if name.casefold() not in folded and cut and cut["name"].casefold() in folded:
        if cutoff is not None:
            raise UserError(f"measure {name}@{cutoff} has two cutoffs; give one of both")
        name, cutoff = cut["name"], cut["cutoff"]
    return folded.get(name.casefold(), name), cutoff


def whole_number(value: str, what: str) -> int:
    """Read a whole number; `what` it is stands in the `UserError`."""
    if not re.fullmatch("-?[0-9]+", value):
        raise UserError(f"{what}: expected a whole number, got {value!r}")
    return int(value)
