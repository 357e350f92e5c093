"""Keep facts about a collection's texts on disk, so that a second look does not read them again.

A *fact* is a number or flag for each text, such as its number of words. Facts depend on the texts
and on our code alone, so that both are hashed in the name of their folder.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib.resources import files as package_files

import polars as pl

from ranktilt.data.cache import cache_folder
from ranktilt.data.collection import Collection
from ranktilt.data.files import write_bytes
from ranktilt.errors import UserError

STORED = 4 << 20
"""Bytes of text from which facts are stored; fewer are examined within some tenths of a second."""
_CODE = (
    "data/collection.py",  # it joins title and text, which are hashed apart
    "data/faults/text_flags.py",
    "data/faults/twin_likeness.py",
    "data/text/features.py",
    "data/text/quality.py",
)
"""Files whose code decides what the facts are; they are found again if one of them changes."""


def stored_facts(
    collection: Collection,
    name: str,
    find: Callable[[], pl.DataFrame],
    *,
    inputs: Iterable[bytes] = (),
) -> pl.DataFrame:
    """Return facts about a collection's texts, from the cache if they are there.

    Where the cache cannot be read or written, the facts are found each time.

    Parameters
    ----------
    collection : Collection
        The collection.
    name : str
        Name of the facts, as part of a file's name.
    find : callable
        Finds the facts, as columns of numbers or flags.
    inputs : iterable of bytes, optional
        Whatever the facts depend on besides the texts, such as the pairs to compare.
    """
    if collection.text_bytes() < STORED:
        return find()
    folder_digest = hashlib.blake2b(pl.__version__.encode(), digest_size=16)
    for file in _CODE:
        folder_digest.update(package_files("ranktilt").joinpath(*file.split("/")).read_bytes())
    folder_digest.update(collection.text_digest("title+text"))
    inputs_digest = hashlib.blake2b(digest_size=16)
    for value in inputs:
        inputs_digest.update(hashlib.blake2b(value).digest())
    # All facts about one collection are in one folder, which is an entry of the cache.
    folder = cache_folder() / "facts" / folder_digest.hexdigest()
    path = folder / f"{name}-{inputs_digest.hexdigest()}.arrow"
    # A file that is not there, or damaged, is written again.
    with suppress(OSError, pl.exceptions.PolarsError):
        return pl.read_ipc(io.BytesIO(path.read_bytes()))
    facts = find()
    stream = io.BytesIO()
    facts.write_ipc(stream)
    with suppress(UserError, OSError):  # the disk is full, or the cache may not be written
        folder.mkdir(parents=True, exist_ok=True)
        write_bytes(path, stream.getvalue())
    return facts
