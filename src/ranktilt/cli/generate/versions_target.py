"""Where a designed collection is written, and what ``ranktilt generate versions`` prints."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ranktilt.cli.generate.requests import note_side
from ranktilt.cli.generate.summaries import INCOMPLETE, generation_notes
from ranktilt.cli.judge.grader import note_grades
from ranktilt.cli.notes import note
from ranktilt.cli.output import Output
from ranktilt.errors import counted

if TYPE_CHECKING:
    from ranktilt.cli.generate.versions_request import VersionsRequest
    from ranktilt.generation.versions.make import DesignedVersions
    from ranktilt.judging.grading.grading import Grades


@dataclass(frozen=True, kw_only=True)
class VersionsTarget:
    """The folder of a designed collection, and the output of the checks of its factors."""

    folder: Path | None
    """Folder to write; None where nothing is written."""
    output: Output
    """How the checks are printed and saved."""

    def fill(self, request: VersionsRequest) -> int:
        """Ask the models, write the versions, and return the exit code.

        No other command may write into the folder meanwhile.
        """
        from ranktilt.generation.output_folder import one_writer

        with one_writer(str(self.folder)):
            designed, grades = request.make()
            note_side(request.collection, request.crossing.of)
            return self.write(designed, grades)

    def write(self, designed: DesignedVersions, grades: Grades | None = None) -> int:
        """Write the collection, print what its factors did to the texts, and name the next command.

        `grades` are those of the judge, if a judge was asked. The exit code is returned.
        """
        from ranktilt.generation.versions.save import save_versions

        saved = save_versions(designed, str(self.folder))
        self.output.deliver(designed.checks)
        if designed.summaries:
            for line in generation_notes(designed, saved, "rewritten"):
                note(line)
        else:
            note(f"{saved.folder}: {designed.collection!r}")
        if grades is not None:
            note_grades(grades)
        if designed.unanswered:
            texts = counted(designed.unanswered, "text", "texts")
            note(f"{texts} got no answer; run the command again to ask only for these")
        if designed.unanswered or (grades is not None and grades.unanswered):
            return INCOMPLETE
        command = ["ranktilt", "explain", str(saved.folder), "-r", "bm25", "--by-factor"]
        note(f"Next: {shlex.join(command)}")
        return 0
