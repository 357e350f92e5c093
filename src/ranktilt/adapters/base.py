"""Rankers of Python objects, and the description of such an object in a run's spec.

An object is a model, pipeline or retriever of another library, or a function of the user. The
*spec* of a run says how the run was made.
"""

from __future__ import annotations

import sys
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from typing import Any, ClassVar, Self

from ranktilt.errors import unknown_name
from ranktilt.rankers.base import Ranker

OBJECT_ORDER_HINT = (
    'score_order="ascending" (smaller is better, as with distances) or "rank" (the order of the '
    'results counts) says what they are: rt.ranker(…, score_order="ascending")'
)
"""Advice, at the end of an error, on how to say which scores of an object are better."""


class ObjectRanker(Ranker):
    """A ranker of an object of another library or of the user.

    The object is in memory, so no text that you type, such as ``dense:minilm``, can name it. The
    fields of a ranker are its options, except those in `fixed`. Its first positional field is the
    object, unless a subclass overrides `from_object`.
    """

    fixed: ClassVar[tuple[str, ...]] = ()
    """Fields that a user cannot set: the object, and those whose values the object decides."""

    @classmethod
    def from_object(cls, value: Any, **options: Any) -> Self:
        """Make the ranker of an object; an unknown option is refused."""
        cls.require_options(options)
        return cls(value, **options)  # type: ignore[call-arg]

    @classmethod
    def require_options(cls, options: dict[str, Any]) -> None:
        """Refuse options that a ranker of such an object does not have."""
        names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
        valid = [name for name in names if name not in cls.fixed]
        for name in options:
            if name not in valid:
                raise unknown_name(f"option of {cls.name}", name, valid)


def object_spec(value: Any) -> dict[str, Any]:
    """Return the class of an object, and the name and version of its package.

    For a class that the user wrote, it is the package of the nearest base class. If no base class
    is from a package, the spec has only the class.
    """
    kind = type(value)
    spec: dict[str, Any] = {"object": {"class": f"{kind.__module__}.{kind.__qualname__}"}}
    for base in kind.__mro__:
        package = _package(base.__module__.partition(".")[0])
        if package is not None:
            return {**spec, "packages": {package: version(package)}}
    return spec


def _package(module: str) -> str | None:
    """Return the name of the installed package that a top-level module belongs to.

    None for Python's own modules and for the user's files.
    """
    if module in sys.stdlib_module_names or module == "__main__":
        return None
    try:
        name = module.replace("_", "-")
        version(name)
    except PackageNotFoundError:
        # Only now, because this reads the files of every installed package, in half a second.
        names = packages_distributions().get(module, [])
        return names[0] if names else None
    return name
