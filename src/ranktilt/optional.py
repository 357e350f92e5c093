"""Optional packages, and whether libraries may fetch models that are not on this machine."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ranktilt.errors import MissingExtra

_FETCHING = ContextVar("fetching", default=True)
"""Whether models may be fetched."""


@contextmanager
def nothing_fetched() -> Iterator[None]:
    """Keep libraries from fetching models and collections, which a stranger's file may name."""
    before = _FETCHING.set(False)
    try:
        yield
    finally:
        _FETCHING.reset(before)


def may_fetch() -> bool:
    """Return whether models and collections that are not on this machine may be fetched."""
    return _FETCHING.get()


def need(module: str, *, extra: str, for_: str) -> Any:
    """Import an optional package, which `extra` of RankTilt brings.

    `MissingExtra` says how to install it. Errors inside an installed package are not caught.
    """
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        raise MissingExtra(package, extra=extra, for_=for_) from error
