"""Find ids that are the same but written differently, such as with http and https.

Each difference is an `IdForm`, whose function removes it: ids that are equal afterwards differed
only in this way. Nothing is matched by such forms. They serve to tell a user why documents of a run
or a label file are not in the collection.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from ranktilt.errors import counted

_MOST_IDS = 200_000
"""Most ids to compare; of a longer list, only the first ones are compared: they show the form."""
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


_SAFE_FORMS = (
    IdForm(words="in one Unicode form (NFC)", plain=_composed),
    IdForm(words="without the scheme (http://, https://)", plain=_without_scheme),
    IdForm(words="without the final slash", plain=_without_slash),
    IdForm(words="as addresses without scheme, www and final slash", plain=_bare_address),
)
"""Forms that leave ids of different documents different."""
_ALL_FORMS = (
    *_SAFE_FORMS,
    IdForm(words="without surrounding blanks", plain=_without_blanks),
    IdForm(words="in lower case", plain=_lower_case),
    IdForm(words="without the file extension", plain=_without_extension),
    IdForm(words="without leading zeros", plain=_without_leading_zeros),
)
"""All forms.

In those that are not `_SAFE_FORMS`, ids of different documents may become equal. They serve to
explain why no id matches.
"""


def near_matches(ids: pl.Series, known: pl.Series, *, all_forms: bool = False) -> str:
    """Say how many of the ids that are not known would be known in another form.

    Empty if none would. Of the forms that match most ids, the first is named.

    Parameters
    ----------
    ids : polars.Series
        Ids, some of which may be unknown.
    known : polars.Series
        Ids to find them among.
    all_forms : bool, optional
        Whether to try the forms too in which ids of different documents may become equal.
    """
    if not len(ids) or not len(known):
        return ""
    unknown_ids = ids.unique(maintain_order=True).head(_MOST_IDS)
    unknown_ids = unknown_ids.filter(~unknown_ids.is_in(known.implode()))
    if not len(unknown_ids):
        return ""
    known = known.unique(maintain_order=True).head(_MOST_IDS)
    best_words, best_matches = "", pl.DataFrame()
    for form in _ALL_FORMS if all_forms else _SAFE_FORMS:
        unknown_table = pl.DataFrame({"id": unknown_ids, "plain": form.plain(unknown_ids)})
        known_table = pl.DataFrame({"known": known, "plain": form.plain(known)}).unique("plain")
        matches = unknown_table.join(known_table, on="plain", maintain_order="left")
        if matches.height > best_matches.height:
            best_words, best_matches = form.words, matches
    if not best_matches.height:
        return ""
    example = f"{best_matches['id'][0]!r} and {best_matches['known'][0]!r}"
    count = counted(best_matches.height, "id", "ids")
    return f"{count} of {len(unknown_ids):,} would match {best_words}: {example}"
