"""The module that shows results.

Results may not import reporting, which lies above them; the package names the module here.
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
        """Return the rows of one part, or of all where it is empty."""

    def result_figure(self, result: Any, name: str) -> Any:
        """Return the figure of this name, or the first one where it is empty."""

    def headline(self, result: Any) -> str:
        """Return the first sentence about a result."""

    def sentences(self, result: Any) -> str:
        """Return a result's verdicts in words, one a line."""

    def sentence(self, record: Any) -> str:
        """Return a verdict, a note or a mismatch in words."""

    def derived(self, record: Any) -> dict[str, Any]:
        """Return a file's sentences about a result, or a part of one; empty for most."""


_loaders: list[Callable[[], Presenter]] = []
"""The function that imports the module that shows results, in a list of one."""


def name_presenter(load: Callable[[], Presenter]) -> None:
    """Name the function that imports the module that shows results, when a result is shown."""
    _loaders[:] = [load]


def presenter() -> Presenter:
    """Return the module that shows results."""
    (load,) = _loaders
    return load()
