"""Check which bundled pairs find their human paragraph in which versions of NumPy and SciPy.

Each argument is a folder that `pip install --no-deps --target FOLDER` filled, or several joined by the
path separator where numpy and scipy lie apart:

    python scripts/check_bundled.py old/numpy:old/scipy new/numpy:new/scipy

Exit status 1 if a pair is missing somewhere.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"
# A fresh interpreter for each, because one process can hold one numpy only.
CODE = """
import json, sys
from ranktilt.data.bundled.reader import _version, pairs, paragraph
found = {pair.id: paragraph(pair.function, pair.sha256) is not None for pair in pairs()}
sys.stdout.write(json.dumps({"versions": [_version("numpy"), _version("scipy")], "found": found}))
"""


def check(folders: str) -> tuple[str, dict[str, bool]]:
    """Return the versions that the folders hold, and for each pair whether its paragraph is there."""
    path = os.pathsep.join([folders, str(SOURCE)])
    command = [sys.executable, "-W", "ignore", "-c", CODE]
    answer = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, check=True, text=True
    )
    seen = json.loads(answer.stdout)
    return "numpy {} scipy {}".format(*seen["versions"]), seen["found"]


def main() -> int:
    """Print one row a pair and one column a set of folders; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+")
    columns = [check(folders) for folders in parser.parse_args().folders]
    names = list(columns[0][1])
    width = max(map(len, names))
    print(" " * width, *(title for title, _ in columns), sep="  ")  # noqa: T201
    for name in names:
        cells = (("yes" if found[name] else "NO").ljust(len(title)) for title, found in columns)
        print(name.ljust(width), *cells, sep="  ")  # noqa: T201
    totals = (f"{sum(found.values())} of {len(names)}".ljust(len(title)) for title, found in columns)
    print("found".ljust(width), *totals, sep="  ")  # noqa: T201
    return int(not all(all(found.values()) for _, found in columns))


if __name__ == "__main__":
    sys.exit(main())
