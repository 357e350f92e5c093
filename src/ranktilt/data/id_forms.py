"""Find ids that are the same but written differently: http and https, a slash at the end, …."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from ranktilt.errors import counted

_MOST = 200_000
"""Most ids to compare; the first ones of a longer list."""
_SCHEME = r"^[A-Za-z][A-Za-z0-9+.-]*://"
"""Beginning of a web address."""


@dataclass(frozen=True, kw_only=True)
class IdForm:
    """A way in which ids that are the same may differ."""

    words: str
    """Description of ids without this difference, such as ``in lower case``."""
    plain: Callable[[pl.Series], pl.Series]
    """Function that removes the difference from ids."""


def _composed(ids: pl.Series) -> pl.Series:
    """Return ids in Unicode's composed form."""
    if not ids.str.contains(r"[^\x00-\x7f]").any():
        return ids
    composed = [unicodedata.normalize("NFC", name) for name in ids]
    return pl.Series(composed, dtype=pl.String)


def _without_scheme(ids: pl.Series) -> pl.Series:
    """Return ids without ``http://`` or ``https://``."""
    return ids.str.replace(_SCHEME, "")


def _without_slash(ids: pl.Series) -> pl.Series:
    """Return ids without a slash at the end."""
    return ids.str.strip_chars_end("/")


def _bare_address(ids: pl.Series) -> pl.Series:
    """Return addresses without scheme, ``www.`` and slash."""
    plain = _without_slash(_without_scheme(_composed(ids)))
    return plain.str.replace("^www\\.", "")


def _without_blanks(ids: pl.Series) -> pl.Series:
    """Return ids without blanks around them."""
    return ids.str.strip_chars()


def _lower_case(ids: pl.Series) -> pl.Series:
    """Return ids in lower case."""
    return ids.str.to_lowercase()


def _without_extension(ids: pl.Series) -> pl.Series:
    """Return ids without a file's ending."""
    return ids.str.replace(r"\.[A-Za-z]{2,5}$", "")


def _without_leading_zeros(ids: pl.Series) -> pl.Series:
    """Return ids without zeros at the beginning."""
    return ids.str.replace("^0+", "")


_SAME = (
    IdForm(words="in one Unicode form (NFC)", plain=_composed),
    IdForm(words="without the scheme (http://, https://)", plain=_without_scheme),
    IdForm(words="without the final slash", plain=_without_slash),
    IdForm(words="as addresses without scheme, www and final slash", plain=_bare_address),
)
"""Forms in which different ids stay different; of those that match most ids, the first is named."""
_ALIKE = (
    *_SAME,
    IdForm(words="without surrounding blanks", plain=_without_blanks),
    IdForm(words="in lower case", plain=_lower_case),
    IdForm(words="without the file extension", plain=_without_extension),
    IdForm(words="without leading zeros", plain=_without_leading_zeros),
)
"""All forms. In the additional ones different ids may become equal; they explain missing matches.
"""


def near_matches(ids: pl.Series, known: pl.Series, *, all_forms: bool = False) -> str:
    """Say how many unknown ids would be known in another form; empty if none would.

    With `all_forms` also forms in which different ids may become the same.
    """
    if not len(ids) or not len(known):
        return ""
    strange = ids.unique(maintain_order=True).head(_MOST)
    strange = strange.filter(~strange.is_in(known.implode()))
    if not len(strange):
        return ""
    known = known.unique(maintain_order=True).head(_MOST)
    best_words, best = "", pl.DataFrame()
    for form in _ALIKE if all_forms else _SAME:
        plain = pl.DataFrame({"id": strange, "plain": form.plain(strange)})
        table = pl.DataFrame({"known": known, "plain": form.plain(known)}).unique("plain")
        matches = plain.join(table, on="plain", maintain_order="left")
        if matches.height > best.height:
            best_words, best = form.words, matches
    if not best.height:
        return ""
    example = f"{best['id'][0]!r} and {best['known'][0]!r}"
    count = counted(best.height, "id", "ids")
    return f"{count} of {len(strange):,} would match {best_words}: {example}"
