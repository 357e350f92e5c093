"""Any engine, asked through a function that you write: ``engine:MODULE:FUNCTION``.

`base.LiveEngine` does the asking; this file only finds the function.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ranktilt.data.collection import Collection
from ranktilt.data.files import sha256
from ranktilt.errors import UserError, shorten
from ranktilt.rankers.engines.base import Ask, LiveEngine
from ranktilt.rankers.engines.calls import error_summary

FORM = "engine:MODULE:FUNCTION"
"""Form in which users type an engine, for errors."""


@dataclass(frozen=True)
class Engine(LiveEngine):
    """Ranks by a Python function ``search(query: str, k: int) -> list[(doc_id, score)]``.

    It returns the best document first. `function` is ``module:function``; the module is a file of
    the current folder, or is installed. Several threads call the function at the same time.
    """

    name: ClassVar[str] = "engine"
    argument: ClassVar[str | None] = "function"

    function: str
    """Module and function, with a colon between them."""

    def __post_init__(self) -> None:
        super().__post_init__()
        module, _, function = self.function.partition(":")
        if not (module and function.isidentifier()):
            raise UserError(
                f"engine: expected {FORM}, such as engine:my_engine:search, got {self.function!r}"
            )

    def check(self) -> None:
        """Refuse a function that cannot be imported or called, before anything is ranked."""
        self._search_function()

    @contextmanager
    def connected(self, collection: Collection, depth: int) -> Iterator[tuple[Ask, dict[str, Any]]]:
        """Import the function; the spec has the hash of its file, if it comes from one."""
        search = self._search_function()
        module = sys.modules[self.function.partition(":")[0]]
        path = Path(getattr(module, "__file__", None) or "")
        spec = {}
        if path.is_file():
            spec["function"] = {"file": path.name, "sha256": sha256(path)}
        yield search, spec

    def _search_function(self) -> Ask:
        """Import the function; refuse what cannot be imported or called."""
        folder = os.getcwd()
        if folder not in sys.path and "" not in sys.path:
            # The folder stays there: a function may import its neighbours when it is called.
            sys.path.insert(0, folder)
        importlib.invalidate_caches()
        try:
            search: Ask = pkgutil.resolve_name(self.function)
        except Exception as error:
            raise UserError(
                f"{self!r}: nothing to import in {folder} or among installed packages: "
                f"{error_summary(error)}"
            ) from error
        if not callable(search):
            raise UserError(
                f"{self!r}: expected a function search(query, k), got {shorten(search)}"
            )
        return search
