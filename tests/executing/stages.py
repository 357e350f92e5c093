"""Stages that a test sends to workers: each says who does what, in a folder that all share."""

import os
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ranktilt.errors import DataWarning, UserError
from ranktilt.executing.memory_limits import memory_limit


@dataclass(frozen=True)
class Squares:
    """Squares numbers; `folder` gets an empty file PID-NUMBER before each of them."""

    folder: Path
    seconds: float = 0.0

    def __call__(self, numbers: Iterator[int]) -> Iterator[int]:
        for number in numbers:
            (self.folder / f"{os.getpid()}-{number}").touch()
            time.sleep(self.seconds)
            if number < 0:
                raise UserError(f"no root of {number}")
            yield number * number

    def done_by(self) -> list[tuple[int, int]]:
        """Process and number of each that was begun."""
        return sorted((int(pid), int(number)) for pid, number in (one.name.split("-") for one in self.folder.iterdir()))


def failing(numbers: Iterator[int]) -> Iterator[int]:
    """Warn at 1, refuse 3, and divide by 0 at 5."""
    for number in numbers:
        if number == 1:
            warnings.warn("one is odd", DataWarning, stacklevel=2)
        if number == 3:
            raise UserError("three is too many")
        yield 1 // (5 - number)


def memory_of_a_worker(numbers: Iterator[int]) -> Iterator[int]:
    """Say what a worker may hold."""
    for _ in numbers:
        yield memory_limit()


def deadly(numbers: Iterator[int]) -> Iterator[int]:
    """Die at once."""
    yield from (os.kill(os.getpid(), 9) or number for number in numbers)  # type: ignore[func-returns-value]
