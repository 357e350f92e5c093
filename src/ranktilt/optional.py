"""The one way to reach an optional package, and whether libraries may fetch what is not on this machine."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ranktilt.errors import MissingExtra

_FETCHING = ContextVar("fetching", default=True)


@contextmanager
def nothing_fetched() -> Iterator[None]:
    """Keep models and collections from being fetched: what is named by somebody else's file is not asked for."""
    before = _FETCHING.set(False)
    try:
        yield
    finally:
        _FETCHING.reset(before)


def may_fetch() -> bool:
    """Whether models and collections that are not on this machine may be fetched."""
    return _FETCHING.get()


def need(module: str, *, extra: str, for_: str) -> Any:
    """Import an optional package, which `extra` of RankTilt brings, or say how to install it (`MissingExtra`).

    Errors inside an installed package come through as they are.
    """
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        raise MissingExtra(package, extra=extra, for_=for_) from error
