"""Optional packages, and whether libraries may fetch models that are not on this machine."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ranktilt.errors import MissingExtra

_MAY_FETCH = ContextVar("fetching", default=True)
"""Whether models and collections may be fetched from the network."""


@contextmanager
def forbid_fetching() -> Iterator[None]:
    """Keep libraries from fetching anything within the ``with`` block.

    Used where a file of somebody else may name models or collections.
    """
    token = _MAY_FETCH.set(False)
    try:
        yield
    finally:
        _MAY_FETCH.reset(token)


def may_fetch() -> bool:
    """Return whether models and collections that are not on this machine may be fetched."""
    return _MAY_FETCH.get()


def need(module: str, *, extra: str, for_: str) -> Any:
    """Import a module of an optional package.

    Parameters
    ----------
    module : str
        Dotted name of the module.
    extra : str
        Extra of RankTilt that installs the package.
    for_ : str
        What needs the package, as the user calls it.

    Raises
    ------
    MissingExtra
        If the package is not installed; it says how to install it.
    """
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # An installed package may lack another one, which is its own error.
        if (error.name or "").partition(".")[0] != package:
            raise
        raise MissingExtra(package, extra=extra, for_=for_) from error
