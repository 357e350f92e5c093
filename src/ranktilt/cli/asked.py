"""What an audit is asked to read: a collection or labels, rankers, and runs that exist."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranktilt.cli.places import collection_files
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.collection import Collection
    from ranktilt.rankers.base import Ranker
    from ranktilt.run import Run


@dataclass(frozen=True)
class Asked:
    """What an audit is to read."""

    folder: Path | None
    rankers: tuple[str, ...]
    runs: tuple[Path, ...]
    groups: Path | None
    qrels: str | None
    card: bool = field(default=False, kw_only=True)
    page: int | None = field(default=None, kw_only=True)
    """Ranks that make the card's page, where they are named."""

    @property
    def specs(self) -> list[str]:
        """Texts of the rankers; saved runs need one only where there is a collection."""
        return [*self.rankers, *(_replay(r) for r in self.runs if self.folder is not None)]

    @property
    def files(self) -> list[Path]:
        """Files that are read."""
        named = [self.groups, None if self.qrels is None else Path(self.qrels)]
        return [*collection_files(self.folder), *self.runs, *(file for file in named if file is not None)]

    def check(self, *, controls: bool, near: float | None, by: str, score_order: str | None) -> None:
        """Refuse what cannot be audited together, and options that nothing would read, before anything is read."""
        if not self.rankers and not self.runs:
            raise UserError("nothing to audit: name a ranker, such as -r bm25, or a run, such as --run FILE")
        if self.folder is None and self.groups is None:
            raise UserError("which document is of which source? Name a collection DIR, or a label file: --groups FILE")
        if self.folder is None and self.rankers:
            raise UserError(f"ranker {self.rankers[0]!r} needs texts: name a collection DIR")
        if self.folder is None and controls:
            raise UserError("--controls rank texts again: name a collection DIR and rankers (-r)")
        if by == "none" and self.card:
            raise UserError("the card needs a column to group by; leave --by none out")
        if near is not None and not controls:
            raise UserError("--near is about a control; ask for them: --controls")
        if score_order is not None and not self.runs and not any("replay:" in spec for spec in self.rankers):
            raise UserError("--score-order is about a run that exists; name one: --run FILE")

    def check_page(self, collection: Collection) -> None:
        """Refuse ``--page`` where no card is asked for; without judgments there is one anyway."""
        if self.page is not None and not self.card and collection.qrels.height:
            raise UserError("--page is about the card; ask for it: --card")

    def ready(
        self, rankers: Sequence[Ranker], column: str | None, pairs: Any,
        *, split: str | None, ignore_unknown: bool, score_order: str,
    ) -> tuple[Collection, list[Run]]:  # fmt: skip
        """Read collection and runs; what cannot be compared need not be ranked."""
        from ranktilt.auditing.groups import grouped_pairs

        if self.folder is None:
            return self._labelled(column or "source", split, score_order)
        from ranktilt.datasets.labels import with_labels
        from ranktilt.datasets.load import load

        collection = load(self.folder, split=split, qrels=self.qrels, ignore_unknown=ignore_unknown)
        self.check_page(collection)
        if self.groups is not None:
            collection = with_labels(collection, self.groups, by=column or "source")
        grouped_pairs(collection, column, pairs)
        return collection, ranked(rankers, collection)

    def _labelled(self, column: str, split: str | None, score_order: str) -> tuple[Collection, list[Run]]:
        from ranktilt.datasets.labels import labelled
        from ranktilt.datasets.load import NO_QRELS
        from ranktilt.run import Run

        if split is not None:
            raise UserError("--split names judgments of a collection DIR; name a file instead: --qrels FILE")
        runs = [Run.load(path, score_order=score_order) for path in self.runs]
        for number, (run, path) in enumerate(zip(runs, self.runs, strict=True)):
            made = {"ranker": _replay(path, score_order), "made_by": run.spec.get("ranker")}
            runs[number] = replace(run, spec={**run.spec, **made})
        qrels = None if self.qrels == NO_QRELS else self.qrels
        collection = labelled(self.groups or "", runs, by=column, qrels=qrels)
        self.check_page(collection)
        return collection, runs


def ranked(rankers: Sequence[Ranker], collection: Collection) -> list[Run]:
    """Rank with each, once all are known to be able to; what one gives that is no run is refused."""
    from ranktilt.rankers.candidates import check_reranked

    for one in rankers:
        one.check()
    return [check_reranked(one.rank(collection), None, one) for one in rankers]


def _replay(path: Path, score_order: str = "score") -> str:
    from ranktilt.rankers.spec import Stage

    return str(Stage("replay", str(path), {} if score_order == "score" else {"score_order": score_order}))
