"""Ids that are meant to be one and are written in two ways: http and https, a slash at the end, Unicode forms."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from ranktilt.errors import counted

_MOST = 200_000
"""Ids that are compared; of more, the first ones."""
_SCHEME = r"^[A-Za-z][A-Za-z0-9+.-]*://"


@dataclass(frozen=True, kw_only=True)
class IdForm:
    """A way in which the same id is written differently."""

    words: str
    """What the ids are without."""
    plain: Callable[[pl.Series], pl.Series]
    """Returns ids of which the difference is taken away."""


def _composed(ids: pl.Series) -> pl.Series:
    if not ids.str.contains(r"[^\x00-\x7f]").any():
        return ids
    composed = [unicodedata.normalize("NFC", name) for name in ids]
    return pl.Series(composed, dtype=pl.String)


def _without_scheme(ids: pl.Series) -> pl.Series:
    return ids.str.replace(_SCHEME, "")


def _without_slash(ids: pl.Series) -> pl.Series:
    return ids.str.strip_chars_end("/")


def _of_address(ids: pl.Series) -> pl.Series:
    plain = _without_slash(_without_scheme(_composed(ids)))
    return plain.str.replace("^www\\.", "")


_SAME = (
    IdForm(words="in one Unicode form (NFC)", plain=_composed),
    IdForm(words="without the scheme (http://, https://)", plain=_without_scheme),
    IdForm(words="without the slash at the end", plain=_without_slash),
    IdForm(words="as addresses without scheme, www and the slash at the end", plain=_of_address),
)
"""Forms of one id; in this order, of several that match as many ids the first is named."""
_ALIKE = (
    *_SAME,
    IdForm(words="without blanks around them", plain=lambda ids: ids.str.strip_chars()),
    IdForm(words="in lower case", plain=lambda ids: ids.str.to_lowercase()),
    IdForm(
        words="without the extension of a file",
        plain=lambda ids: ids.str.replace(r"\.[A-Za-z]{2,5}$", ""),
    ),
    IdForm(words="without zeros in front", plain=lambda ids: ids.str.replace("^0+", "")),
)
"""Forms that may also be of different ids; they are named where nothing matches."""


def near_matches(ids: pl.Series, known: pl.Series, *, all_forms: bool = False) -> str:
    """Say how many ids that are not known would be, written in another way; empty where none would.

    With `all_forms` ways are tried, too, in which different ids may become one.
    """
    if not len(ids) or not len(known):
        return ""
    strange = ids.unique(maintain_order=True).head(_MOST)
    strange = strange.filter(~strange.is_in(known.implode()))
    if not len(strange):
        return ""
    others = known.unique(maintain_order=True).head(_MOST)
    best, most = "", 0
    example = ("", "")
    for form in _ALIKE if all_forms else _SAME:
        plain = pl.DataFrame({"id": strange, "plain": form.plain(strange)})
        table = pl.DataFrame({"known": others, "plain": form.plain(others)}).unique("plain")
        matches = plain.join(table, on="plain", maintain_order="left")
        if matches.height > most:
            best, most = form.words, matches.height
            example = (matches["id"][0], matches["known"][0])
    if not most:
        return ""
    documents = counted(most, "id", "ids")
    return f"{documents} of {len(strange):,} would match {best}: {example[0]!r} and {example[1]!r}"
