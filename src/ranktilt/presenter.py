"""The module that shows results: its functions, and how results reach it.

Results may not import the room `reporting`, because it imports them. So the package sets the
function that imports its module here, and results call `presenter`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import polars as pl


class Presenter(Protocol):
    """The functions that results need to show themselves."""

    def notebook(self, result: Any) -> str:
        """Return HTML for a notebook's cell."""

    def table(self, result: Any) -> str:
        """Return the text that the command line prints."""

    def frame(self, result: Any, part: str) -> pl.DataFrame:
        """Return the rows of one part of a result, or of all parts if the name is empty."""

    def result_figure(self, result: Any, name: str) -> Any:
        """Return the figure with this name, or the first figure if the name is empty."""

    def headline(self, result: Any) -> str:
        """Return the main finding of a result in one sentence."""

    def sentences(self, result: Any) -> str:
        """Return a result's verdicts in words, one on each line."""

    def sentence(self, record: Any) -> str:
        """Return a verdict, a note or a mismatch in words."""

    def derived(self, record: Any) -> dict[str, Any]:
        """Return the sentences that the file of a result has about it, or about a part of it.

        They are returned by their keys; most parts have none.
        """


_loaders: list[Callable[[], Presenter]] = []
"""The function that imports the module that shows results, as the only element."""


def set_presenter(load: Callable[[], Presenter]) -> None:
    """Set the function that imports the module that shows results.

    It is called when a result is first shown, so that importing RankTilt stays quick.
    """
    _loaders[:] = [load]


def presenter() -> Presenter:
    """Return the module that shows results."""
    (load,) = _loaders
    return load()
