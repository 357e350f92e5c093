"""A collection whose rewrites exclaim, and a package that brings a probe for it."""

from pathlib import Path

from ranktilt.collection import Collection
from tests.toy import collection_of, write

CODE = '''
"""A probe of another package: one class."""

import ranktilt as rt


class Marks(rt.TextProbe):
    name = "marks"
    question = "Do rewrites exclaim more than people?"
    what = "exclamation marks"

    def measure(self, collection, reference, ranker):
        return collection.docs["text"].str.count_matches("!", literal=True).to_numpy().astype(float)


class Broken:
    name = "broken"
'''


POINTS = (
    "marks = exclaiming:Marks",
    "broken = exclaiming:Broken",
    "lost = exclaiming:Lost",
    "overlap = exclaiming:Marks",
)


def bed(pairs: int = 12) -> Collection:
    """Rewrites that exclaim: text n has n words and n % 3 marks, its rewrite two words and two marks more."""
    docs = [
        {"id": f"d{n}-{name}", "text": " ".join(["word", f"w{n}"] * n + ["more", name] * extra) + "!" * (n % 3 + extra),
         "source": name, "origin": f"d{n}"}
        for n in range(1, pairs + 1)
        for name, extra in (("human", 0), ("llm", 2))
    ]  # fmt: skip
    return collection_of(docs, {"q": "word"}, {"q": {"d1-human": 1, "d1-llm": 1}})


def install(site: Path) -> Path:
    """Leave the package as pip does: its module, and a dist-info with its entry points."""
    write(site / "exclaiming.py", CODE)
    info = site / "exclaiming-1.0.dist-info"
    write(info / "METADATA", "Metadata-Version: 2.1\nName: exclaiming\nVersion: 1.0\n")
    write(info / "entry_points.txt", "\n".join(["[ranktilt.probes]", *POINTS, ""]))
    return site
