"""What a fit learned from, and whether that is what is ranked: names of two collections may be the same words."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import polars as pl

from ranktilt.data.collection import Collection

_SHARED = 0.05
"""Share of the names in common that must mean one text for all of them to mean the same: versions may lack some."""


def text_key(text: str) -> str:
    """Return 16 digits that stand for a text; nothing for a blank one, which says nothing."""
    bare = text.strip().encode(errors="surrogatepass")
    return hashlib.blake2b(bare, digest_size=8).hexdigest() if bare else ""


def named_keys(names: Iterable[str], keys: Iterable[str]) -> pl.DataFrame:
    """Columns ``name`` and ``key``, a row a text; a name may come several times, as that of an origin does."""
    return pl.DataFrame(
        {"name": list(names), "key": list(keys)}, schema={"name": pl.String, "key": pl.String}
    )


def same_names(learned: pl.DataFrame, held: pl.DataFrame) -> set[str]:
    """Names of `held` that mean what a name of `learned` does: names where these mean the same, else those of one key.

    Names of both mean the same unless next to none of them has a key in common. Where that cannot
    be told, for lack of keys or of such names, either makes two the same.
    """
    known, ours = (frame.filter(pl.col("key") != "") for frame in (learned, held))
    common = ours.join(known, on="name", how="semi")["name"].n_unique()
    agreeing = ours.join(known, on=["name", "key"], how="semi")["name"].n_unique()
    alike = common > 0 and agreeing >= _SHARED * common
    by_key = set() if alike else set(ours.join(known, on="key", how="semi")["name"])
    by_name = (
        set(held.join(learned, on="name", how="semi")["name"]) if alike or not common else set()
    )
    return by_key | by_name


def query_keys(collection: Collection, names: Sequence[str]) -> list[str]:
    """Return the `text_key` of each query; empty for one that the collection does not hold."""
    held = _keys_of_queries(collection)
    found = dict(zip(held["name"], held["key"], strict=True))
    return [found.get(name, "") for name in names]


def learned_queries(names: Sequence[str], keys: Sequence[str], collection: Collection) -> list[str]:
    """Ids, in this collection, of the queries that a fit learned from.

    Those that the collection does not hold count by their ids, unless its ids evidently mean other
    queries.
    """
    held = _keys_of_queries(collection)
    same, ours = same_names(named_keys(names, keys or [""] * len(names)), held), set(held["name"])
    strange = same.isdisjoint(names) and not ours.isdisjoint(names)
    found = [name for name in names if name in same or not (strange or name in ours)]
    return [*found, *sorted(same.difference(found))]


def _keys_of_queries(collection: Collection) -> pl.DataFrame:
    queries = collection.queries
    return collection.memo(
        "query keys", lambda: named_keys(queries["id"], map(text_key, queries["text"]))
    )
