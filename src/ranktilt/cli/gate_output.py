"""Files that ``ranktilt gate`` may write besides those of every verb: JUnit XML, and a summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli.app import OUTPUT
from ranktilt.cli.output import FILE_OR_STDOUT, PageOutput, check_paths, text_of, with_command

if TYPE_CHECKING:
    from ranktilt.auditing.gate.result import Gate


@Parameter(name="*", group=OUTPUT)
@dataclass(frozen=True, kw_only=True)
class GateFiles:
    """The files of a decision, besides those that every verb can write."""

    junit: Annotated[
        Path | None, FILE_OR_STDOUT, Parameter(help="Save JUnit XML.", metavar="FILE.xml")
    ] = None
    markdown: Annotated[
        str | None,
        FILE_OR_STDOUT,
        Parameter(help="Save a summary for a pull request; - for stdout.", metavar="FILE.md"),
    ] = None

    def check(self, inputs: Sequence[Path], output: PageOutput) -> None:
        """Refuse files that cannot be written, or that are among the `inputs`."""
        check_paths(
            {"--junit": self.junit, "--markdown": self.markdown, **output.paths},
            stdout=("--markdown", "--json"),
            inputs=inputs,
        )
        output.check_page()

    def deliver(self, decision: Gate, output: PageOutput) -> int:
        """Print the decision, write its files, and return its exit code."""
        from ranktilt.reporting.render.junit import junit

        result = with_command(decision)
        if self.markdown == "-":
            output = replace(output, format="markdown")
        output.deliver(
            result,
            {
                self.junit: lambda: junit(result),
                self.markdown: lambda: text_of(result, "markdown").encode(),
            },
        )
        return result.exit_code
