"""What ``ranktilt mitigate`` reads: the ranker or run to correct, and collections of queries."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, resolve_types
from ranktilt.cli.audit.inputs import InputOptions
from ranktilt.cli.output import collection_files
from ranktilt.cli.rankers import read_rankers
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.rankers.base import Ranker


@resolve_types
@Parameter(name="*", group=INPUT)
@dataclass(frozen=True, kw_only=True)
class MitigateInputs(InputOptions):
    """The inputs of an audit with one ranker or run, and a collection to fit corrections on."""

    fit: Annotated[
        Path | None,
        Parameter(
            help="Fit corrections on this other collection, and use DIR only to choose "
            "strengths and test.",
            metavar="OTHER",
        ),
    ] = None
    text: options.Text = None
    max_failures: options.MaxFailures = None

    @property
    def files(self) -> list[Path]:
        """Files that are read."""
        return [*super().files, *collection_files(self.fit)]

    @property
    def baseline_name(self) -> str | None:
        """Name that the user gave the ranker or run; None for its own."""
        names = [baseline.name for baseline in (*self.ranker_texts, *self.run_files)]
        return names[0] if names else None

    @property
    def is_saved_run(self) -> bool:
        """Whether the baseline is a saved run, and not a ranker.

        ``replay:FILE`` is a saved run too, unless another stage ranks its lists again (``>>``).
        """
        return bool(self.run) or any(
            ranker.text.startswith("replay:") and ">>" not in ranker.text
            for ranker in self.ranker_texts
        )

    @property
    def rank_words(self) -> list[str]:
        """Words that name the collection in a command that ranks it."""
        words = [str(self.folder)]
        for option, value in {"--split": self.split, "--qrels": self.qrels}.items():
            if value is not None:
                words += [option, str(value)]
        if self.ignore_unknown:
            words.append("--ignore-unknown")
        return words

    def check_baseline(self) -> None:
        """Refuse several rankers, runs or pairs of groups, and a run with ``--fit``."""
        self.check()
        baselines = [*(self.ranker or ()), *(self.run or ())]
        if len(baselines) > 1:
            raise UserError(f"mitigate takes one ranker or run; got {len(baselines)}")
        if self.fit is not None and self.run:
            raise UserError("--fit needs a ranker (-r): a saved run cannot rank another collection")
        if len(self.pairs or ()) > 1:
            raise UserError(f"mitigate takes one pair of groups; got {len(self.pairs or ())}")

    def read_rankers(self) -> list[Ranker]:
        """Return the ranker in a list, which is empty where labels and a run alone are read."""
        return read_rankers(
            self.specs,
            text=self.text,
            max_failures=self.max_failures,
            score_order=self.score_order,
            queries=self.queries,
        )

    def pair_to_correct(self, collection: Collection) -> tuple[str, str] | None:
        """Return the two groups, the reference first; None where the collection has but two."""
        pairs = self.pairs
        if self.reference:
            # More than two groups make several pairs: none is passed on, and the library asks.
            pairs = self.reference_first(collection, self.column, pairs)
            pairs = pairs if pairs and len(pairs) == 1 else self.pairs
        return pairs[0] if pairs else None
