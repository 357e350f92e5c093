"""One thread for scikit-learn: the same result to the last bit, however many processors there are."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from ranktilt.optional import need


def one_thread() -> AbstractContextManager[Any]:
    """Compute on one thread within the ``with`` block.

    Sums over several threads depend on how many there are, and threads that wait for each other take ten times as
    long while other work shares the processor.

    Returns
    -------
    context manager
        Of threadpoolctl, which comes with scikit-learn.
    """
    limits: AbstractContextManager[Any] = need(
        "threadpoolctl", extra="neural", for_="comparing vectors"
    ).threadpool_limits(1)
    return limits
