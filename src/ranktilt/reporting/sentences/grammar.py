"""Grammar of sentences: nouns, verbs and pronouns that agree with a number."""

from __future__ import annotations

from ranktilt.errors import counted


def singular_or_plural(number: int, singular: str, plural: str) -> str:
    """Return the words that go with a number: the singular for 1, and the plural for all others.

    `counted` also writes the number, and is for words that follow it directly.
    """
    return singular if number == 1 else plural


def share_of_all(number: int, of_all: int, singular: str, plural: str) -> str:
    """Write how many of all: ``3 of 40 citations``. A verb after it agrees with `number`."""
    return f"{number:,} of {counted(of_all, singular, plural)}"


def first_ranks_words(depth: int) -> str:
    """Name the ranks down to a depth: ``first 10 ranks``, or ``first rank`` for 1."""
    return singular_or_plural(depth, "first rank", f"first {depth} ranks")
