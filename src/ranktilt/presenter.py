"""Who shows results: reporting lies above what makes them, and the package names it here."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import polars as pl


class Presenter(Protocol):
    """What a result asks of whoever shows it."""

    def notebook(self, result: Any) -> str:
        """Return HTML for a notebook's cell."""

    def table(self, result: Any) -> str:
        """Return what the command line prints."""

    def frame(self, result: Any, part: str) -> pl.DataFrame:
        """Return the rows of one part, or of all where it is empty."""

    def result_figure(self, result: Any, name: str) -> Any:
        """Return the figure of this name, or the first one where it is empty."""

    def headline(self, result: Any) -> str:
        """Return what a result says first, in one sentence."""

    def sentences(self, result: Any) -> str:
        """Return a result's verdicts in words, one a line."""

    def sentence(self, record: Any) -> str:
        """Return a verdict in words."""

    def derived(self, record: Any) -> dict[str, Any]:
        """Return what a file says in words of a result, or of a part of one; nothing of most."""


_modules: list[str] = []


def name_presenter(module: str) -> None:
    """Name the module that shows results; it is imported when the first one is shown."""
    _modules[:] = [module]


def presenter() -> Presenter:
    """Return the module that shows results."""
    module: Any = import_module(_modules[0])
    return module  # type: ignore[no-any-return]
