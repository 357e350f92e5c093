"""Where the files that an audit names lie now, and whether they are what they were."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePath

from ranktilt.auditing.options import files_of_runs
from ranktilt.auditing.result import Audit
from ranktilt.errors import UserError
from ranktilt.io.files import sha256

NAMED = ("hub:", "irds:")
"""How a collection begins that a library keeps."""
_LONGEST = 120


def there(path: Path) -> bool:
    """Whether a path leads to anything; a name that no file can have leads to nothing."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


@dataclass(frozen=True)
class Places:
    """Where the files that an audit names may lie now."""

    audit: Audit
    file: Path | None
    base: Path = Path()
    """What relative names of the collection's files are relative to."""

    @classmethod
    def of(cls, audit: Audit, file: Path | None) -> Places:
        """Find the folder that all of the collection's files are unchanged in; `UserError` names one that is not."""
        places = cls(audit, file)
        names = [name for name in places.hashes if name not in places._run_files and not places._fetched(name)]
        return replace(places, base=places.found(names))

    @cached_property
    def hashes(self) -> dict[str, str]:
        """SHA-256 of each file that was read, by the name that it had."""
        return {str(one["path"]): str(one["sha256"]) for one in self.audit.spec.get("inputs", ())}

    @cached_property
    def _run_files(self) -> set[str]:
        return set(files_of_runs(self.audit.spec.get("runs", ())))

    def _fetched(self, name: str) -> bool:
        """Whether a file is the hub's own: its commit says what is in it, and its cache may lie elsewhere."""
        spec = self.audit.spec.get("collection", {})
        return (
            str(spec.get("path", "")).startswith(NAMED)
            and "revision" in spec
            and name not in (spec.get("split"), spec.get("labels"))
        )

    def found(self, names: Sequence[str]) -> Path:
        """Find the folder from which all of these files are what they were."""
        faults = []
        for base in self._bases():
            fault = next(filter(None, (self._fault(base, name) for name in names)), "")
            if not fault:
                return base
            faults.append((sum(there(base / name) for name in names), fault))
        # Further up, another file of the same name says nothing about this one.
        raise UserError(max(faults[:2], key=lambda one: one[0])[1])

    def existing(self, name: str) -> Path:
        """Find a model's folder, which has no hash: the first of that name, or what it was called."""
        return next((base / name for base in self._bases() if there(base / name)), Path(name))

    def hashed(self, name: str) -> Path:
        """Find one file that the audit has the hash of; without one it could be any file of this machine."""
        if name not in self.hashes:
            raise UserError(f"the audit does not say what was in {self.shown(name)} (it has no hash of it)")
        return self.found([name]) / name

    def _bases(self) -> Iterator[Path]:
        yield Path()
        if self.file is not None:
            yield from self.file.absolute().parents

    def _fault(self, base: Path, name: str) -> str:
        path = base / name
        try:
            if not there(path):
                return f"{self.shown(name)} is not there any more"
            if not path.is_file():
                return f"{self.shown(name)} is no file any more"
            return "" if sha256(path) == self.hashes[name] else f"{self.shown(name)} has changed since the audit"
        except OSError as error:
            return f"{self.shown(name)} cannot be read: {error.strerror or error}"

    def shown(self, name: str) -> str:
        """Shorten a name to what it is within the collection, or to its last part."""
        path, folder = PurePath(name), self.audit.spec.get("collection", {}).get("path")
        inside = folder is not None and path.is_relative_to(str(folder))
        text = str(path.relative_to(str(folder))) if inside else path.name
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
