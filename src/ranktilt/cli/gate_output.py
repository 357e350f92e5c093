"""Where the decision of ``ranktilt gate`` goes besides the terminal: JUnit XML, and a summary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ranktilt.cli.output import PageOutput, check_paths, text_of, with_command

if TYPE_CHECKING:
    from ranktilt.auditing.gate.result import Gate


@dataclass(frozen=True, kw_only=True)
class GateFiles:
    """The files of a decision, and how it is printed."""

    output: PageOutput
    junit: Path | None
    markdown: str | None

    def check(self, inputs: Sequence[Path]) -> None:
        """Refuse files that cannot be written, or that are read too."""
        check_paths(
            {"--junit": self.junit, "--markdown": self.markdown, **self.output.paths},
            stdout=("--markdown", "--json"),
            inputs=inputs,
        )
        self.output.check_page()

    def deliver(self, decision: Gate) -> int:
        """Print the decision, write its files, and return its exit code."""
        from ranktilt.reporting.render.junit import junit

        result = with_command(decision)
        output = self.output
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
