"""The notation of estimands: ``name[(option=value,…)][@cutoff]``, such as ``AP(rel=2)@5``.

A text is divided into its parts here, without knowing which estimands there are;
`ranktilt.measures.base` makes the object from the parts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ranktilt.errors import UserError, shorten
from ranktilt.sizes import read_whole_number

_ESTIMAND = re.compile(
    r"\s*(?P<name>[A-Za-z_][\w.]*)\s*"
    r"(?:\(\s*(?P<options>[^()]*)\)\s*)?"
    r"(?:@\s*(?P<cutoff>-?\w+)\s*)?"
)
# Relative Δ has the text of a measure in its parentheses, with its own options and cutoff.
_CONTRAST = re.compile(r"(?P<name>RelativeDelta)\((?P<measure>[^=]*(?:\(.*\).*)?)\)")
_GRAMMAR = "expected name[(rel=grade)][@cutoff]"

ALIASES = {
    "map": "AP",
    "mrr": "RR",
    "recip_rank": "RR",
    "recall": "R",
    "prec": "P",
    "precision": "P",
}
"""Names of measures in other tools, in small letters. trec_eval's map_cut is AP with a cutoff."""
# Cutoffs as other tools write them. trec_eval: ndcg_cut.10, ndcg_cut_10, recall.100, P_20; mteb and
# BEIR: ndcg_at_10.
_CUT = re.compile(r"(?P<name>\w+?)(?:_cut|_at)?[._](?P<cutoff>[0-9]+)")


@dataclass(frozen=True, kw_only=True)
class Notation:
    """The parts of an estimand's text, not yet checked against any estimand."""

    text: str
    """The text as it was typed."""
    name: str
    """Name of an estimand, an alias, or a name with a cutoff as other tools write it."""
    option_text: str
    """Text between the parentheses; empty where there is none."""
    cutoff: str | None
    """Text behind the @; None where there is none."""

    @property
    def has_options(self) -> bool:
        """Whether there is anything between the parentheses."""
        return bool(self.option_text.strip())

    def options(self) -> Iterator[tuple[str, str]]:
        """Yield the name and value of each option; refuse an option without a value."""
        if not self.has_options:
            return
        for piece in self.option_text.split(","):
            name, equals, value = (part.strip() for part in piece.partition("="))
            if not equals:
                raise UserError(f"cannot read measure {self.text!r}: {_GRAMMAR}")
            yield name, value


def read_notation(text: str) -> Notation:
    """Divide an estimand's text into its parts; refuse a text that does not have this form."""
    match = _ESTIMAND.fullmatch(text)
    if match is None:
        raise UserError(f"cannot read measure {text!r}: {_GRAMMAR}, such as nDCG@3")
    return Notation(
        text=text,
        name=match["name"],
        option_text=match["options"] or "",
        cutoff=match["cutoff"],
    )


def read_contrast(text: str) -> tuple[str, str] | None:
    """Return the contrast's name and the measure's text of ``RelativeDelta(nDCG@3)``.

    None for any text without such parentheses.
    """
    match = _CONTRAST.fullmatch(text)
    return None if match is None else (match["name"], match["measure"])


def canonical(name: str, cutoff: str | None, names: Collection[str]) -> tuple[str, str | None]:
    """Return our name and the cutoff of a measure that is named as in another tool.

    For ``ndcg_cut_10`` they are ``nDCG`` and ``10``. A name among `names`, the names of all
    estimands, is returned as it is, and so is a name that no tool has.
    """
    if name in names:
        return name, cutoff
    our_names = {**ALIASES, **{known.casefold(): known for known in names}}
    parts = _CUT.fullmatch(name)
    if name.casefold() not in our_names and parts and parts["name"].casefold() in our_names:
        if cutoff is not None:
            raise UserError(f"measure {name}@{cutoff} has two cutoffs; give only one")
        name, cutoff = parts["name"], parts["cutoff"]
    return our_names.get(name.casefold(), name), cutoff


def whole_number(value: str, label: str) -> int:
    """Read a whole number; `label` names it in the refusal of anything else."""
    number = read_whole_number(value)
    if number is None:
        raise UserError(f"{label}: expected a whole number, got {shorten(value)}")
    return number
