"""Collections with rewrites at several temperatures, and a ranker that decides each query as it is told."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ranktilt.collection import Collection
from ranktilt.rankers.base import Ranker
from ranktilt.run import Run
from tests.toy import collection_of, run_of

QUERIES = 40
TEMPERATURES = {"llm-tmp1.0": 1.0, "llm-tmp0.2": 0.2, "llm-tmp0.7": 0.7}
"""In the order in which the collection holds them, which is not that of temperature."""
WINS = {"llm-tmp0.2": 10, "llm-tmp0.7": 20, "llm-tmp1.0": 30}
"""Queries of which the human document stands first: Relative Δ(nDCG@1) is −100, 0 and +100 %."""


def documents(sources: Mapping[str, Mapping[str, Any]], count: int = QUERIES) -> list[dict[str, Any]]:
    """Human documents h0, h1, … and their rewrites, with further columns a source."""
    human = [{"id": f"h{n}", "text": f"note {n} by hand", "source": "human", "origin": f"h{n}"} for n in range(count)]
    rewrites = [
        {"id": f"{name}:{n}", "text": f"note {n} from {name}", "source": name, "origin": f"h{n}", **more}
        for name, more in sources.items()
        for n in range(count)
    ]
    return human + rewrites


def studied(
    sources: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    count: int = QUERIES,
    without: Mapping[str, int] | None = None,
) -> Collection:
    """One query a document, of which all versions are relevant; `without` drops a source's last rewrites."""
    rows = documents({name: {} for name in TEMPERATURES} if sources is None else sources, count)
    dropped = {f"{name}:{n}" for name, missing in (without or {}).items() for n in range(count - missing, count)}
    rows = [row for row in rows if row["id"] not in dropped]
    qrels: dict[str, dict[str, int]] = {f"q{n}": {} for n in range(count)}
    for row in rows:
        qrels[f"q{row['origin'][1:]}"][row["id"]] = 1
    return collection_of(rows, dict.fromkeys(qrels, "note"), qrels)


@dataclass(frozen=True)
class Decided(Ranker):
    """Puts the human version first for so many queries, the rewrite for the others."""

    wins: str = ""
    """Sources and numbers, as `decided` writes them."""
    name: ClassVar[str] = "decided"
    seen: ClassVar[list[tuple[str, ...]]] = []
    """Sources of every collection that was ranked."""

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        self.seen.append(collection.sources)
        wins = dict(part.split("=") for part in self.wins.split())
        versions: dict[str, list[tuple[str, str]]] = {}
        for name, source, origin in collection.docs.select("id", "source", "origin").iter_rows():
            versions.setdefault(origin, []).append((name, source))
        scores = {
            query: {
                name: 2.0 if source != "human" else 3.0 if int(query[1:]) < int(wins[self.other(collection)]) else 1.0
                for name, source in versions[f"h{query[1:]}"]
            }
            for query in collection.judged["id"]
        }
        return run_of(collection, scores, ranker=repr(self))

    @staticmethod
    def other(collection: Collection) -> str:
        """The one source that is not human."""
        (name,) = (name for name in collection.sources if name != "human")
        return name


def decided(wins: Mapping[str, int] | None = None) -> Decided:
    """Make the ranker from numbers of queries that human text wins."""
    return Decided(" ".join(f"{name}={number}" for name, number in (wins or WINS).items()))
