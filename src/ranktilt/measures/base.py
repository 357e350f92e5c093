"""Measures as values, in the notation of ir_measures: ``nDCG@3``, ``AP(rel=2)@1000``."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ranktilt.errors import UserError, unknown

NAMES = ("nDCG", "AP", "P", "R", "RR")
_BINARY = ("AP", "P", "R", "RR")
_NEEDS_CUTOFF = ("P", "R")
_TEXT = re.compile(r"\s*(?P<name>[A-Za-z_]\w*)\s*(?:\(\s*(?P<options>[^()]*)\)\s*)?(?:@\s*(?P<cutoff>-?\w+)\s*)?")


@dataclass(frozen=True, repr=False)
class Measure:
    """A relevance measure: what to compute, as a value.

    Parameters
    ----------
    name : {"nDCG", "AP", "P", "R", "RR"}
        nDCG with linear gains (``rel/log2(1 + rank)``, trec_eval's ndcg_cut); average precision (map_cut);
        precision; recall; reciprocal rank. All lie in [0, 1], higher is better.
    cutoff : int, optional
        Ranks that count; all where None. P and R need one.
    rel : int, optional
        Smallest grade that counts as relevant in AP, P, R and RR.

    Raises
    ------
    UserError
        If there is no such measure, or a cutoff or grade that it cannot have.

    Examples
    --------
    >>> nDCG @ 3
    nDCG@3
    >>> AP(rel=2) @ 5
    AP(rel=2)@5
    """

    name: str
    cutoff: int | None = None
    rel: int = 1

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise unknown("measure", self.name, (f"{n}@k" for n in NAMES))
        for what, number in (("cutoff", self.cutoff), ("rel", self.rel)):
            if number is not None and type(number) is not int:
                raise UserError(f"measure {self.name}: expected a whole number as {what}, got {number!r}")
        if self.cutoff is not None and not 1 <= self.cutoff < 1 << 31:
            bound = "at least 1" if self.cutoff < 1 else "at most 2,147,483,647"
            raise UserError(f"measure {self.name}: expected a cutoff of {bound}, got @{self.cutoff}")
        if self.rel < 1:
            raise UserError(f"measure {self.name}: expected rel of at least 1, got rel={self.rel}")
        if self.rel != 1 and not self.binary:
            raise UserError(f"measure {self.name} takes no option rel: it uses the grades themselves")

    @property
    def binary(self) -> bool:
        """Whether the measure only asks if a document is relevant."""
        return self.name in _BINARY

    def __matmul__(self, cutoff: int) -> Measure:
        return replace(self, cutoff=cutoff)

    def __call__(self, *, rel: int = 1) -> Measure:
        """Return the same measure with another smallest relevant grade."""
        return replace(self, rel=rel)

    def __repr__(self) -> str:
        rel = "" if self.rel == 1 else f"(rel={self.rel})"
        return f"{self.name}{rel}{'' if self.cutoff is None else f'@{self.cutoff}'}"


nDCG = Measure("nDCG")  # noqa: N816
AP = Measure("AP")
P = Measure("P")
R = Measure("R")
RR = Measure("RR")


def measure(text: str | Measure) -> Measure:
    """Read a measure's text; the inverse of its ``repr``.

    Parameters
    ----------
    text : str or Measure
        ``name[(rel=grade)][@cutoff]``, such as ``"nDCG@3"``. A measure comes back as it is.

    Returns
    -------
    Measure
        The measure.

    Raises
    ------
    UserError
        If it cannot be read, or there is no such measure or option.
    """
    if isinstance(text, Measure):
        return _complete(text)
    match = _TEXT.fullmatch(text)
    if match is None:
        raise UserError(f"cannot read measure {text!r}: expected name[(rel=grade)][@cutoff], such as nDCG@3")
    options = _options(match["options"] or "", text)
    found = Measure(match["name"], rel=options.get("rel", 1))
    if match["cutoff"] is not None:
        found = found @ _whole(match["cutoff"], f"cutoff of measure {text!r}")
    return _complete(found)


def _options(written: str, text: str) -> dict[str, int]:
    options = {}
    for piece in written.split(",") if written.strip() else []:
        name, equals, value = (part.strip() for part in piece.partition("="))
        if not equals:
            raise UserError(f"cannot read measure {text!r}: expected name[(rel=grade)][@cutoff]")
        if name != "rel":
            raise unknown(f"option of measure {text!r}", name, ["rel"])
        if name in options:
            raise UserError(f"option {name!r} of measure {text!r} is given twice")
        options[name] = _whole(value, f"option rel of measure {text!r}")
    return options


def _whole(value: str, what: str) -> int:
    if not re.fullmatch("-?[0-9]+", value):
        raise UserError(f"{what}: expected a whole number, got {value!r}")
    return int(value)


def _complete(found: Measure) -> Measure:
    if found.name in _NEEDS_CUTOFF and found.cutoff is None:
        raise UserError(f"measure {found.name} needs a cutoff, such as {found.name}@10")
    return found
