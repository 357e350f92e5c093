"""Queries and origins that a fit learned from, to recognise them in another collection.

A *fit* is what a ranker learned from a collection. A *name* is an id of a query or an origin, and a
*key* is a hash of a text. Equal names do not mean equal texts: two collections may both number
their queries 1, 2, 3.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import polars as pl

from ranktilt.data.collection import Collection

_SHARED = 0.05
"""Smallest share of common names with equal texts for equal names to mean the same.

It is small because versions of a collection may lack texts.
"""


def text_key(text: str) -> str:
    """Return 16 hexadecimal digits for a text; nothing for a blank text, which identifies none."""
    bare = text.strip().encode(errors="surrogatepass")
    return hashlib.blake2b(bare, digest_size=8).hexdigest() if bare else ""


def named_keys(names: Iterable[str], keys: Iterable[str]) -> pl.DataFrame:
    """Return a table with the columns ``name`` and ``key``, a row for each text.

    A name may occur several times: an origin has several versions.
    """
    return pl.DataFrame(
        {"name": list(names), "key": list(keys)}, schema={"name": pl.String, "key": pl.String}
    )


def same_names(learned: pl.DataFrame, present: pl.DataFrame) -> set[str]:
    """Return the names in `present` that mean the same as a name in `learned`.

    Both tables are those of `named_keys`. If enough of the names that both have belong to equal
    texts, equal names mean the same. If not, only equal keys do. If there are no common names with
    keys, this is unknown, and an equal name or an equal key is enough.
    """
    keyed_learned = learned.filter(pl.col("key") != "")
    keyed_present = present.filter(pl.col("key") != "")
    common = keyed_present.join(keyed_learned, on="name", how="semi")["name"].n_unique()
    with_equal_text = keyed_present.join(keyed_learned, on=["name", "key"], how="semi")
    agreeing = with_equal_text["name"].n_unique()
    names_mean_the_same = common > 0 and agreeing >= _SHARED * common
    same = set[str]()
    if not names_mean_the_same:
        same.update(keyed_present.join(keyed_learned, on="key", how="semi")["name"])
    if names_mean_the_same or not common:
        same.update(present.join(learned, on="name", how="semi")["name"])
    return same


def query_keys(collection: Collection, names: Sequence[str]) -> list[str]:
    """Return the `text_key` of each query; empty for a query that the collection lacks."""
    table = _keys_of_queries(collection)
    key_of = dict(zip(table["name"], table["key"], strict=True))
    return [key_of.get(name, "") for name in names]


def learned_queries(names: Sequence[str], keys: Sequence[str], collection: Collection) -> list[str]:
    """Return the ids, in this collection, of the queries that a fit learned from.

    A query that the collection lacks is returned with its own id, unless the collection uses the
    fit's ids for other queries.

    Parameters
    ----------
    names, keys : sequence of str
        Ids of the fit's queries, and the `text_key` of each; `keys` may be empty.
    collection : Collection
        The collection in which to recognise them.
    """
    table = _keys_of_queries(collection)
    present = set(table["name"])
    same = same_names(named_keys(names, keys or [""] * len(names)), table)
    ids_mean_others = same.isdisjoint(names) and not present.isdisjoint(names)
    learned = [
        name for name in names if name in same or (name not in present and not ids_mean_others)
    ]
    return [*learned, *sorted(same.difference(learned))]


def _keys_of_queries(collection: Collection) -> pl.DataFrame:
    """Return a table of the queries' names and text keys."""
    queries = collection.queries
    return collection.memo(
        "query keys", lambda: named_keys(queries["id"], map(text_key, queries["text"]))
    )
