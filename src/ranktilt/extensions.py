"""Objects that packages add to RankTilt by name: rankers, measures, probes, readers, presets, ….

Each kind has an `ExtensionTable` with RankTilt's own objects, as ``module:object``. Another package
adds an object by an entry point of the table's group, such as ``ranktilt.builders``. A paper in
RankTilt adds it by an entry of the same group in the mapping ``EXTENSIONS`` of its module. Nothing
is imported before you use its name. Only layouts of tables and readers of folders are all imported
together: an entry point may have several layouts, and a folder does not name its reader.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ranktilt.errors import UserError, unknown_name

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_paper_modules: list[str] = []
"""Modules of the papers in RankTilt, which extend it as packages do."""


def set_paper_modules(*modules: str) -> None:
    """Set the modules of the papers in RankTilt, whose ``EXTENSIONS`` are read for each look-up.

    This file cannot name them, because no room may depend on `papers`; the package does.
    """
    _paper_modules[:] = modules


@dataclass(frozen=True)
class ExtensionTable:
    """The objects of one kind by name: of RankTilt, of its papers, and of installed packages.

    No package can take a name that RankTilt uses.
    """

    noun: str
    """Noun for messages: ``ranker``."""
    group: str
    """Group of entry points, and key of a paper's ``EXTENSIONS``: ``ranktilt.rankers``."""
    bundled: Mapping[str, str]
    """RankTilt's own objects, as ``module:object`` by name."""
    fault: Callable[[Any, str], str] = lambda loaded, name: ""
    """Function from a package's object and its name to its fault; empty if it has no fault."""

    def paths(self) -> dict[str, str]:
        """Return all objects, as ``module:object`` by name, those of RankTilt first."""
        return {**self._known(), **{point.name: point.value for point in self._entry_points()}}

    def names(self) -> list[str]:
        """Return the names of all objects, those of RankTilt first."""
        return list(self.paths())

    def __contains__(self, name: str) -> bool:
        # Entry points take time to read, and RankTilt's own names need none.
        return name in self._known() or any(point.name == name for point in self._entry_points())

    def foreign(self) -> list[tuple[str, str]]:
        """Return name and package of the objects of installed packages.

        Such as ``("shortest", "my-package 1.0")``.
        """
        return sorted({(point.name, _package(point)) for point in self._entry_points()})

    def load(self, name: str) -> Any:
        """Import the object of a name.

        Raises
        ------
        UserError
            If no object has this name, several packages have it, or the object has a fault.
        """
        known = self._known()
        if name in known:
            return load_object(known[name])
        points = [point for point in self._entry_points() if point.name == name]
        if not points:
            raise unknown_name(self.noun, name, self.names())
        if len({point.value for point in points}) > 1:
            packages = " and ".join(sorted({_package(point) for point in points}))
            raise UserError(f"{packages} provide {self.noun} {name!r}; uninstall all but one")
        return self._load_foreign(points[0])

    def _load_foreign(self, point: EntryPoint) -> Any:
        """Load an object of an installed package; `UserError` says what is wrong with it."""
        subject = f"{self.noun} {point.name!r} of {_package(point)} ({point.value})"
        try:
            loaded = point.load()
        except (Exception, SystemExit) as error:  # another package may fail in any way
            first_line = next(iter(str(error).strip().splitlines()), "")
            reason = f"{type(error).__name__}: {first_line}".removesuffix(": ")
            raise UserError(f"{subject} cannot be imported: {reason}") from error
        fault = self.fault(loaded, point.name)
        if fault:
            raise UserError(f"{subject} {fault}")
        return loaded

    def _known(self) -> dict[str, str]:
        """Return the objects of RankTilt and of its papers, as ``module:object`` by name."""
        known = dict(self.bundled)
        for module in _paper_modules:
            known |= import_module(module).EXTENSIONS.get(self.group, {})
        return known

    def _entry_points(self) -> list[EntryPoint]:
        """Return the entry points of installed packages, except those with a name of RankTilt."""
        # Imported here, because it takes time, and most commands need no entry points.
        from importlib.metadata import entry_points

        known = self._known()
        points = _points_of_group(entry_points, self.group, tuple(sys.path))
        return [point for point in points if point.name not in known]


@cache
def _points_of_group(
    read: Callable[..., Iterable[EntryPoint]], group: str, search_path: tuple[str, ...]
) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group in all installed packages, sorted by name.

    `read` is `importlib.metadata.entry_points`. They are read once for each search path of modules:
    that takes 15 ms, and a command asks several times. `read` is an argument so that a test that
    replaces the function does not get the entry points that were kept before.
    """
    return tuple(sorted(read(group=group), key=lambda point: point.name))


def load_object(path: str) -> Any:
    """Import ``module:object``."""
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)


def _package(point: EntryPoint) -> str:
    """Return name and version of the package of an entry point."""
    if point.dist is None:
        return "an unknown package"
    return f"{point.dist.name} {point.dist.version}"
