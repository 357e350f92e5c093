"""A re-ranker without a model: it counts the query's words in its candidates."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ranktilt import Collection, Ranker, Run, UserError
from ranktilt.rankers.base import cut


@dataclass(frozen=True, kw_only=True)
class Counting(Ranker):
    """Scores a candidate by how many of its words the query has."""

    name: ClassVar[str] = "counting"
    k: int | None = None

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        """Score the candidates; see `Ranker.rank`."""
        if run is None:
            raise UserError(f"{self!r} re-ranks candidates; put a first stage before it, such as bm25@100>>{self!r}")
        asked = dict(collection.queries.select("id", "text").iter_rows())
        texts = collection.texts().str.to_lowercase().str.split(" ").to_list()
        found = []
        for number, query in enumerate(run.queries):
            words, docs = set(asked[query].split()), run.docs[run.offsets[number] : run.offsets[number + 1]]
            scores = [float(sum(word in words for word in texts[doc])) for doc in docs]
            found.append((docs.astype(np.int64), np.array(scores)))
        return Run(run.queries, *cut(found, collection.tie_keys(), self.k), run.ids, {"ranker": repr(self)})
