"""What ``ranktilt mitigate`` says at the end: how to keep a correction, or to apply one anyway."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

from ranktilt.cli.mitigate.save import RANKER_OPTION, RUN_OPTION, forced_words
from ranktilt.cli.notes import note

if TYPE_CHECKING:
    from ranktilt.mitigation.bench_result import Bench


def note_next(bench: Bench, *, is_run: bool) -> None:
    """Say how to keep what was chosen, or how to apply a correction all the same."""
    choice = bench.choose()
    option = [RUN_OPTION, "mitigated.trec"] if is_run else [RANKER_OPTION, "mitigated"]
    if choice.applied is not None:
        target = "run" if is_run else "ranker"
        command = shlex.join(["ranktilt", *sys.argv[1:], *option])
        note(f"Next: Write the corrected {target}: {command}")
        return
    save_words = option if bench.candidates[1:] else []
    purpose = "Apply a correction" if bench.candidates[1:] else "Try corrections"
    note(f"Next: {purpose} all the same: {shlex.join([*forced_words(bench), *save_words])}")
