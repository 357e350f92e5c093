"""The baseline: the ranker or run that is to be levelled, before any correction.

A ranker may have several *stages*: the first retrieves documents, the others re-rank them. Its
*text* is what a user types for it, such as ``bm25@100``, where 100 is its *depth*: the number of
documents that it returns. A ranker that *replays* reads the lists of a saved run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ranktilt.data.collection import Collection
from ranktilt.data.runs.run import Run, require_runs
from ranktilt.errors import UserError
from ranktilt.mitigation.base import Correction
from ranktilt.mitigation.list_tops import correct_tops
from ranktilt.rankers.base import DEPTH, FirstStage, Pipeline, Ranker, stages_of
from ranktilt.rankers.engines.base import LiveEngine
from ranktilt.rankers.replay import Replay


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """A ranker or an existing run, before any correction.

    Exactly one of `ranker` and `run` is set.
    """

    text: str
    """Text of the ranker or run, such as ``bm25@100``.

    A corrected ranker is this text followed by the correction: ``bm25@100>>offset(…)``.
    """
    ranker: Ranker | None = None
    """The ranker; None for an existing run."""
    run: Run | None = None
    """The existing run; None for a ranker."""
    uncut_replay: Replay | None = None
    """The ranker without a depth, if it replays a saved run and the user typed no depth; else None.

    It returns the complete lists, so that results below the corrected ones are kept.
    """
    depth: int
    """Number of results of each list that are corrected, if `ranker` has no depth of its own."""
    name: str | None = None
    """Name in results; None for the name of its run."""

    @classmethod
    def from_ranker(cls, ranker: Ranker, depth: int, *, name: str | None = None) -> Self:
        """Make a baseline of a ranker, which gets the depth if its text names none.

        Raises
        ------
        UserError
            If the ranker cannot work, because a file or a model is missing.
        """
        uncut_replay = ranker if isinstance(ranker, Replay) and ranker.k is None else None
        ranker = with_depth(ranker, depth)
        ranker.check()
        return cls(
            text=repr(ranker), ranker=ranker, uncut_replay=uncut_replay, depth=depth, name=name
        )

    @classmethod
    def from_run(cls, run: Run, depth: int, *, name: str | None = None) -> Self:
        """Make a baseline of an existing run; the first `depth` results of lists are corrected."""
        (run,) = require_runs(run)
        text = str(run.spec.get("ranker", run.name))
        run = rename_run(run, name or run.spec.get("alias"))
        is_longer = np.diff(run.offsets).max(initial=0) > depth
        return cls(text=f"{text}@{depth}" if is_longer else text, run=run, depth=depth, name=name)

    @property
    def is_saved(self) -> bool:
        """Whether it is an existing run, or replays one, and so cannot search anew."""
        return self.ranker is None or stages_of(self.ranker)[0].name == "replay"

    @property
    def cut_depth(self) -> int:
        """Number of results of each list that are corrected: the ranker's own depth, or `depth`."""
        if self.ranker is None:
            return self.depth
        return getattr(stages_of(self.ranker)[-1], "k", None) or self.depth

    def require_other_collection(self, name: str) -> None:
        """Refuse a baseline that cannot rank another collection."""
        kind = ""
        if self.is_saved:
            kind = "a saved run"
        elif self.ranker is not None and isinstance(stages_of(self.ranker)[0], LiveEngine):
            kind = "a live engine"
        if kind:
            raise UserError(
                f"{self.text} is {kind}, which cannot rank {name}; fit on its own collection"
            )

    def rank(self, collection: Collection) -> Run:
        """Rank the queries of a collection, or return their lists in the existing run.

        Lists of a saved run are not cut.
        """
        if self.run is None:
            ranker: Any = self.uncut_replay or self.ranker
            ranked: Run = ranker.rank(collection)
            return rename_run(ranked, self.name)
        return only_queries(self.run, collection.queries_with_judgments["id"])

    def correct(self, correction: Correction, collection: Collection, run: Run) -> Run:
        """Correct the first `cut_depth` results of each list; the others follow unchanged."""
        return correct_tops(correction, collection, run, depth=self.cut_depth)

    def corrected_text(self, ranker: Ranker) -> str:
        """Return the text of the corrected ranker.

        If `ranker` is a correction, its text follows that of the baseline. Any other ranker takes
        the place of the baseline.
        """
        return f"{self.text}>>{ranker!r}" if isinstance(ranker, Correction) else repr(ranker)


def rename_run(run: Run, name: str | None) -> Run:
    """Return the run with a name, or as it is for None.

    The alias of the run is removed. Corrected runs inherit the spec, and would have it too.
    """
    if name is None:
        return run
    spec = {key: value for key, value in run.spec.items() if key != "alias"}
    return replace(run, spec={**spec, "name": name})


def only_queries(run: Run, query_ids: Iterable[str]) -> Run:
    """Return the run with only the lists of these queries; refuse a run that has none of them."""
    query_ids = set(query_ids)
    numbers = [number for number, query_id in enumerate(run.queries) if query_id in query_ids]
    if not numbers:
        raise UserError(
            f"{run.name} has none of the {len(query_ids)} queries to fit, select or test on"
        )
    lengths = np.diff(run.offsets)[numbers]
    is_of_query = np.isin(run.entry_queries, numbers)
    return replace(
        run,
        queries=tuple(run.queries[number] for number in numbers),
        offsets=np.append(0, np.cumsum(lengths)),
        docs=run.docs[is_of_query],
        scores=run.scores[is_of_query],
    )


def with_depth(ranker: Ranker, depth: int) -> Ranker:
    """Return the ranker with a depth if its last stage has none; else the ranker as it is."""
    *earlier_stages, last = stages_of(ranker)
    k = getattr(last, "k", 0)  # a stage without the field `k` cannot be cut
    # A first stage whose text names no depth has the default, `DEPTH`.
    if k is not None and not (k == DEPTH and isinstance(last, FirstStage)):
        return ranker
    last = replace(last, k=depth)  # type: ignore[type-var]
    return Pipeline((*earlier_stages, last)) if earlier_stages else last
