"""What packages add to RankTilt by name: rankers, measures, probes, readers, builders, layouts and presets.

Each kind has one `ExtensionTable`, which says what RankTilt itself brings, as ``module:object``. Another package
adds to it by an entry point of the table's group, such as ``ranktilt.builders``; a paper of RankTilt's own by the
same group and the same form in its ``EXTENSIONS``. Nothing is imported before its name, or all names of its kind, are
asked for: of layouts, because one entry point may hold several, and of readers, because a folder names none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ranktilt.errors import UserError, unknown

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_bundled: list[str] = []


def bundle(*modules: str) -> None:
    """Name the modules of RankTilt's own papers, whose ``EXTENSIONS`` are read when a name is looked up."""
    _bundled[:] = modules


@dataclass(frozen=True)
class ExtensionTable:
    """The objects of one kind by name: RankTilt's own, its papers', and those of installed packages.

    No package can take a name of RankTilt's own.
    """

    noun: str
    """What one of them is, for messages: ``ranker``."""
    group: str
    """The group of entry points, and the key of a paper's ``EXTENSIONS``."""
    own: Mapping[str, str]
    """``module:object`` by name."""
    fault: Callable[[Any, str], str] = lambda loaded, name: ""
    """What is wrong with an object that a package brings under a name; empty where nothing is."""

    def paths(self) -> dict[str, str]:
        """Return ``module:object`` by name; RankTilt's own come first."""
        return {**self._known(), **{point.name: point.value for point in self._announced()}}

    def names(self) -> list[str]:
        """Return the names, RankTilt's own first."""
        return list(self.paths())

    def foreign(self) -> list[tuple[str, str]]:
        """Return name and package of what installed packages bring, such as ``("shortest", "my-package 1.0")``."""
        return sorted({(point.name, _package(point)) for point in self._announced()})

    def load(self, name: str) -> Any:
        """Import the object of a name; `UserError` says which names there are, or what is wrong with it."""
        known = self._known()
        if name in known:
            return load_object(known[name])
        points = [point for point in self._announced() if point.name == name]
        if not points:
            raise unknown(self.noun, name, self.names())
        if len({point.value for point in points}) > 1:
            packages = " and ".join(sorted({_package(point) for point in points}))
            raise UserError(
                f"{self.noun} {name!r} is provided by {packages}; uninstall all but one"
            )
        return self._load_foreign(points[0])

    def _load_foreign(self, point: EntryPoint) -> Any:
        subject = f"{self.noun} {point.name!r} of {_package(point)} ({point.value})"
        try:
            loaded = point.load()
        except (
            Exception,
            SystemExit,
        ) as error:  # a package of someone else's may fail to import in any way
            reason = next(iter(str(error).strip().splitlines()), "")
            message = f"{subject} cannot be imported: {type(error).__name__}: {reason}"
            raise UserError(message.removesuffix(": ")) from error
        fault = self.fault(loaded, point.name)
        if fault:
            raise UserError(f"{subject} {fault}")
        return loaded

    def _known(self) -> dict[str, str]:
        """RankTilt's own, and its papers'."""
        known = dict(self.own)
        for module in _bundled:
            known |= import_module(module).EXTENSIONS.get(self.group, {})
        return known

    def _announced(self) -> list[EntryPoint]:
        from importlib.metadata import entry_points  # takes time, and most commands need none

        known = self._known()
        points = [point for point in entry_points(group=self.group) if point.name not in known]
        return sorted(points, key=lambda point: point.name)


def load_object(path: str) -> Any:
    """Import ``module:object``."""
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)


def _package(point: EntryPoint) -> str:
    """Name and version of the package that has an entry point."""
    if point.dist is None:
        return "an unknown package"
    return f"{point.dist.name} {point.dist.version}"
