"""Fetch the drawing library of pages from npm's packages, and check it.

``python scripts/vendor_js.py [--check]``.

Vega and Vega-Lite are BSD-3-Clause; their licence lies beside them. What is kept is what the
packages hold.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

FOLDER = (
    Path(__file__).resolve().parents[1] / "src" / "ranktilt" / "reporting" / "templates" / "vega"
)
PINNED = {
    "vega": ("5.33.1", "463f3db6a40b20e9747b4ed38f37ed0add508838f9141b1cf8366784b07b30c8"),
    "vega-lite": ("5.23.0", "58c27358e26f2d319cf62f45bc17a4c8362f08645001df2ec8d341eee4097c7f"),
    "vega-interpreter": (
        "1.2.1",
        "ee191cf04168e0c043214cea7c4e5ef80e908daa0e757c19c8061df5f898cf89",
    ),
}
"""Version and SHA-256 of each package's ``build/NAME.min.js``."""


def fetched(name: str, version: str) -> bytes:
    """Read a library out of its package."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            ["npm", "pack", "--silent", f"{name}@{version}"],
            cwd=folder,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        (archive,) = Path(folder).glob("*.tgz")
        with tarfile.open(archive) as files:
            member = files.extractfile(f"package/build/{name}.min.js")
            return b"" if member is None else member.read()


def main() -> int:
    """Write the libraries, or only check those that are there.

    The exit status is 1 if one is not what it should be.
    """
    wrong = []
    for name, (version, digest) in PINNED.items():
        file = FOLDER / f"{name}.min.js"
        if "--check" not in sys.argv:
            file.write_bytes(fetched(name, version))
        if hashlib.sha256(file.read_bytes()).hexdigest() != digest:
            wrong.append(f"{file.name} is not {name} {version}")
    print(
        "\n".join(wrong) or f"{len(PINNED)} libraries are what they should be",
        file=sys.stderr if wrong else sys.stdout,
    )
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
