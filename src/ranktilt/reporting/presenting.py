"""What results ask of reporting: see `ranktilt.presenter`."""

from __future__ import annotations

from ranktilt.reporting.frames import frame
from ranktilt.reporting.output import notebook, table
from ranktilt.reporting.papers.figures import result_figure

__all__ = ["frame", "notebook", "result_figure", "table"]
