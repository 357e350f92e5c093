"""What ``ranktilt generate versions`` asks two models: one that writes, and one that grades."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ranktilt.cli.generate.requests import requests_per_minute
from ranktilt.cli.generate.versions_prices import VersionsPrice

if TYPE_CHECKING:
    from ranktilt.cli.generate.versions_models import VersionsModels
    from ranktilt.data.collection import Collection
    from ranktilt.generation.versions.factors import Factor
    from ranktilt.generation.versions.make import DesignedVersions
    from ranktilt.generation.versions.options import Crossing
    from ranktilt.judging.grading.grading import Grades
    from ranktilt.judging.grading.settings import Grading


@dataclass(frozen=True, kw_only=True)
class VersionsRequest:
    """What is to be written, and which models are asked."""

    collection: Collection
    """The collection."""
    factors: Sequence[Factor]
    """Factors to vary."""
    crossing: Crossing
    """Combinations to write."""
    models: VersionsModels
    """Models that are asked."""
    grading: Grading
    """How changed facts are graded."""

    def make(self) -> tuple[DesignedVersions, Grades | None]:
        """Write the versions, and let the judge grade those whose facts are changed."""
        from ranktilt.generation.versions.make import versions
        from ranktilt.judging.grading.changed_facts import grade_versions, require_gradable

        writer, judge = self.models.writer_client, self.models.judge_client
        if judge is not None:
            # Refused before a model is paid for: what no judge could grade.
            names = [factor.name for factor in self.factors]
            require_gradable(names, self.collection.qrels, self.grading)
            judge.check()
        if writer is not None:
            writer.check()
        designed = versions(self.collection, self.factors, self.crossing, llm=writer)
        if judge is None:
            return designed, None
        graded = grade_versions(designed, judge, self.grading)
        return graded.versions, graded.grades

    def prices(self, price: tuple[float, float] | None) -> VersionsPrice:
        """Return what each prompt would cost, at a price of a million tokens."""
        from ranktilt.generation.versions.prices import price_versions
        from ranktilt.judging.grading.changed_facts import price_grades

        writer, judge = self.models.writer_client, self.models.judge_client
        prompts = []
        if writer is not None:
            prompts = price_versions(
                self.collection,
                self.factors,
                self.crossing,
                writer,
                price=price,
                requests_per_minute=requests_per_minute(writer),
            )
        if judge is None:
            return VersionsPrice(prompts=prompts, judge=None)
        grades = price_grades(
            self.collection,
            self.factors,
            self.crossing,
            judge,
            grading=self.grading,
            price=price,
            requests_per_minute=requests_per_minute(judge),
        )
        return VersionsPrice(prompts=prompts, judge=grades)
