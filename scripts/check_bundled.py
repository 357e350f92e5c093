"""Check the bundled collection against other versions of NumPy and SciPy.

Each argument is a folder that `pip install --no-deps --target FOLDER` filled, or several joined by
the path separator where numpy and scipy lie apart:

    python scripts/check_bundled.py old new/numpy:new/scipy

Prints a line for each, and what is missing. Exit status 1 if some versions hold fewer than 200 of
the human paragraphs, or if a query loses all of its relevant documents.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).resolve().parents[1] / "src"
# A fresh interpreter for each, because one process can hold one numpy only.
CODE = """
import json, sys
from importlib.metadata import version
from ranktilt.data.bundled.reader import _qrels, _queries, pairs, paragraph
found = {pair.id: paragraph(pair.function, pair.sha256) is not None for pair in pairs()}
judged = set(_qrels([name for name, there in found.items() if there])["query_id"])
queries = {text: query in judged for query, text in _queries().iter_rows()}
versions = "numpy {} scipy {}".format(version("numpy"), version("scipy"))
sys.stdout.write(json.dumps([versions, found, queries]))
"""


class Seen(NamedTuple):
    """What one set of folders holds: each pair and each query, and whether it is (still) there."""

    versions: str
    pairs: dict[str, bool]
    queries: dict[str, bool]


def look(folders: str) -> Seen:
    """Read the bundled collection with the packages in these folders."""
    path = os.pathsep.join([folders, str(SOURCE)])
    command = [sys.executable, "-W", "ignore", "-c", CODE]
    answer = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return Seen(*json.loads(answer.stdout))


def report(seen: Seen, at_least: int) -> bool:
    """Print what was found and what was not; return whether it is enough."""
    lost = [name for name, there in seen.pairs.items() if not there]
    alone = [query for query, judged in seen.queries.items() if not judged]
    there = len(seen.pairs) - len(lost)
    enough = there >= at_least and not alone
    print(
        f"{'ok' if enough else 'FAILED'}: {seen.versions}: {there} of {len(seen.pairs)} pairs "
        f"(at least {at_least} wanted), {len(alone)} of {len(seen.queries)} queries without a "
        "relevant document"
    )
    for name in lost:
        print(f"  paragraph not found: {name}")
    for query in alone:
        print(f"  no relevant document: {query}")
    return enough


def main() -> int:
    """Check every set of folders; return the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", help="where the packages were installed to")
    parser.add_argument(
        "--at-least",
        type=int,
        default=200,
        metavar="N",
        help="pairs that have to match (default 200)",
    )
    arguments = parser.parse_args()
    results = [report(look(folders), arguments.at_least) for folders in arguments.folders]
    return int(not all(results))


if __name__ == "__main__":
    sys.exit(main())
