"""What ``ranktilt mitigate`` says once a run is saved: how to audit it, and keep it level."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from ranktilt.cli.mitigate.inputs import MitigateInputs
from ranktilt.cli.notes import note

if TYPE_CHECKING:
    from ranktilt.mitigation.bench_result import Bench


def note_gate_commands(bench: Bench, inputs: MitigateInputs, path: Path) -> None:
    """Say how to audit the corrected run at `path`, and how to keep it level with a gate."""
    words = ["ranktilt", "audit", *(inputs.rank_words if inputs.folder else [])]
    words += ["--run", str(path)]
    if inputs.labels is not None:
        words += inputs.labels.words
    if inputs.folder is None and inputs.qrels is not None:
        words += ["--qrels", str(inputs.qrels)]
    words += [] if inputs.column in ("source", None) else ["--by", inputs.by]
    for pair in inputs.pairs or ():
        words += ["--pair", ",".join(pair)]
    if inputs.reference is not None and not inputs.pairs:
        words += ["--reference", inputs.reference]
    words += ["--primary", bench.primary, "--json", "mitigated.json"]
    gate = ["ranktilt", "gate", "mitigated.json", "--max-tilt", f"{bench.spec['margin']:g}"]
    note(f"Next: Keep it this way in CI: {shlex.join(words)} && {shlex.join(gate)}")
