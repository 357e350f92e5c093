"""What results ask of reporting: see `ranktilt.presenter`."""

from __future__ import annotations

from ranktilt.reporting.frames import frame
from ranktilt.reporting.layouts.figures import result_figure
from ranktilt.reporting.output import notebook, table
from ranktilt.reporting.sentences.derived import derived, sentence

__all__ = ["derived", "frame", "notebook", "result_figure", "sentence", "table"]
