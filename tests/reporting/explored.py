"""Audits with their collection and runs, and what an explorer carries of them, unpacked."""

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ranktilt import Collection, Run, audit
from ranktilt.reporting.document import Explorer
from ranktilt.reporting.explorer.section import explorer
from ranktilt.reporting.reload import LoadedAudit
from tests.reporting.audits import FIRST, SECOND
from tests.toy import run_of, toy


def opened(
    collection: Collection | None = None,
    scores: Sequence[Mapping[str, Mapping[str, float]]] = (FIRST, SECOND),
    *,
    runs: Sequence[Run] | None = None,
    measures: Sequence[str] | None = ("nDCG@1", "AP@3"),
    **options: Any,
) -> LoadedAudit:
    """Audit some runs, named first, second, … where only scores are given; by default the toy's two."""
    collection = toy() if collection is None else collection
    if runs is None:
        runs = [
            run_of(collection, one, ranker=name)
            for one, name in zip(scores, ("first", "second", "third"), strict=False)
        ]
    found = audit(collection, list(runs), measures, **{"resamples": 100, "confounds": False, **options})
    return LoadedAudit(found, collection, tuple(runs))


@dataclass(frozen=True)
class Explored:
    """An explorer's block and its content."""

    block: Explorer
    lists: Any
    texts: Any

    def docs(self, run: int, query: str, column: int | None = None) -> list[Any]:
        """Ids of one list's documents in order, or one of the numbers beside them."""
        entries = self.list(run, query)["entries"]
        return [self.lists["docs"]["id"][e[0]] if column is None else e[column] for e in entries]

    def list(self, run: int, query: str) -> Any:
        """One list."""
        return self.lists["lists"][run][[q["id"] for q in self.lists["queries"]].index(query)]

    def text(self, doc: str) -> Any:
        """What is carried of a document's text."""
        return self.texts[self.lists["docs"]["id"].index(doc)]


def unpacked(text: str) -> Any:
    """Read what a page carries: base64, gzip, JSON without NaN."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    data = gzip.decompress(base64.b64decode(text, validate=True))
    return json.loads(data.decode("utf-8"), parse_constant=refuse)


def explored(given: LoadedAudit | None = None, **options: Any) -> Explored:
    """Make an explorer and unpack it."""
    block = explorer(opened() if given is None else given, **options)
    assert block is not None
    return Explored(block, unpacked(block.lists), unpacked(block.texts) if block.texts else None)
