"""Print how large each room is, against the size it is to have: ``python scripts/house.py``.

Fails where the house is larger than a total that it has once been below.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
AIMS = {
    "reporting": 6_500, "auditing": 6_500, "rankers": 4_500, "cli": 3_000, "experiments": 2_500, "mitigation": 1_000,
    "generation": 2_600, "io": 1_600, "datasets": 2_300, "training": 1_400, "probes": 2_200, "llm": 1_500,
    "measures": 2_500, "models": 1_300,
}  # fmt: skip
"""Lines of source that a room is to have; all others have `OTHERS` together."""
OTHERS = 3_000
ALL_AIMS = {"source": 45_000, "tests": 42_000}
REACHED = {"source": 65_000, "tests": 55_000}
"""Totals that are never exceeded again."""
TEST = re.compile(r"^ *(?:async )?def test_", re.MULTILINE)


def texts(folder: Path) -> list[str]:
    """Read the Python files below a folder."""
    return [path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.py"))]


def lines(files: list[str]) -> int:
    """Count their lines."""
    return sum(len(text.splitlines()) for text in files)


def main() -> int:
    """Print the table; 1 if a total is larger than it was allowed to be."""
    source, tests = ROOT / "src" / "ranktilt", ROOT / "tests"
    rooms = sorted(path.name for path in source.iterdir() if any(path.glob("*.py")))
    print(f"{'room':12} {'files':>6} {'lines':>7} {'aim':>7} {'lines of tests':>15} {'tests':>6}")
    for room in rooms:
        files, checks = texts(source / room), texts(tests / room)
        aim = f"{AIMS[room]:,}" if room in AIMS else ""
        count = sum(len(TEST.findall(text)) for text in checks)
        print(f"{room:12} {len(files):6,} {lines(files):7,} {aim:>7} {lines(checks):15,} {count:6,}")
    others = lines(texts(source)) - sum(lines(texts(source / room)) for room in rooms if room in AIMS)
    print(f"{'all others':12} {'':6} {others:7,} {OTHERS:7,}")
    totals = {"source": lines(texts(source)), "tests": lines(texts(tests))}
    for what, total in totals.items():
        print(f"{what:12} {'':6} {total:7,} {ALL_AIMS[what]:7,}")
    grown = [what for what, most in REACHED.items() if totals[what] > most]
    for what in grown:
        print(f"{what}: {totals[what]:,} lines, at most {REACHED[what]:,}", file=sys.stderr)
    return bool(grown)


if __name__ == "__main__":
    sys.exit(main())
