"""The places by name where work can be done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ranktilt.errors import UserError, shorten
from ranktilt.executing.executor import LocalExecutor, working_on

LOCAL, RAY = "local", "ray"


@contextmanager
def run_on(where: str = LOCAL) -> Iterator[None]:
    """Let what is computed inside the ``with`` block be computed elsewhere, with the same results.

    Parameters
    ----------
    where : {"local", "ray", "ray:ADDRESS"}
        ``local``: in this process. ``ray``: on a Ray cluster of this machine alone, one worker a processor (and GPU),
        which is started here and ended with the block. ``ray:ADDRESS``: on a cluster that is up, from one of its
        machines; ``ray:auto`` finds it. Models are read on each machine from the folders that they are in here, and
        what is computed comes back to this process, which alone writes it.

    Raises
    ------
    MissingExtra
        If it is Ray and Ray is not installed.
    UserError
        If there is no such place, or no cluster answers there.
    """
    kind, colon, address = where.partition(":")
    if kind not in (LOCAL, RAY) or (colon and (kind == LOCAL or not address.strip())):
        raise UserError(
            f"cannot run on {shorten(where)}: expected local, ray or ray:ADDRESS, such as ray:10.0.0.1:6379"
        )
    if kind == LOCAL:
        with working_on(LocalExecutor()):
            yield
        return
    from ranktilt.executing.ray_executor import ray_executor

    with ray_executor(address.strip() or None) as found, working_on(found):
        yield
