"""What results ask of reporting: see `ranktilt.presenter`."""

from __future__ import annotations

from ranktilt.reporting.frames import frame
from ranktilt.reporting.layouts.figures import result_figure
from ranktilt.reporting.output import notebook, table

__all__ = ["frame", "notebook", "result_figure", "table"]
