"""How an option of the command line is declared beside the field or parameter that it fills."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Option:
    """What ``--help`` says of a field, in its ``Annotated`` type; the option is called as the field."""

    help: str
    metavar: str | None = None
    short: str | None = None
    """A second name of one letter, such as ``-r``."""
    flag: str | None = None
    """Its name, where it is not the field's."""
    min: float | None = None
    max: float | None = None
    panel: str | None = None
    """The heading of ``--help`` under which it stands, where it is not its group's."""

    def names(self, field: str) -> list[str]:
        """List what is typed for it."""
        return [self.flag or f"--{field.replace('_', '-')}", *([self.short] if self.short else [])]
