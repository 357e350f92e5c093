"""Whether numba can compile the search of postings on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
COMPILED_FROM = 500_000_000
"""Additions of term weights from which the compiled search is used.

They take numpy about a second. Below, importing numba (and at the first search on a machine,
compiling) would take as long as it saves.
"""

_OLDEST = 0, 60
"""Oldest version of numba that compiles the search, as the extra ``fast`` asks."""


@dataclass(frozen=True, kw_only=True)
class Compiler:
    """The compiled search, or the reason why there is none."""

    search_lists: Callable[..., int] | None
    reason: str
    """Name and version of the compiler, or why it is not used."""


@lru_cache(maxsize=1)
def compiler() -> Compiler:
    """Return the compiled search; the first call imports numba, which takes half a second."""
    if find_spec("numba") is None:
        return Compiler(search_lists=None, reason="numba is not installed")
    try:
        import numba

        if tuple(map(int, numba.__version__.split(".")[:2])) < _OLDEST:
            reason = f"numba {numba.__version__} is too old; pip install 'ranktilt[fast]'"
            return Compiler(search_lists=None, reason=reason)
        from ranktilt.rankers.lexical.compiled_search import search_lists
    except Exception as error:
        return Compiler(search_lists=None, reason=f"numba cannot be used: {error}")
    return Compiler(search_lists=search_lists, reason=f"numba {numba.__version__}")
