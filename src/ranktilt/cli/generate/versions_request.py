"""What ``ranktilt generate versions`` asks two models: a writer, and a judge of changed facts.

A version with a changed fact may not answer its query any more, so the judge grades it again.
"""

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
    """Versions to write, and the models that are asked."""

    collection: Collection
    """Documents, queries and judgments."""
    factors: Sequence[Factor]
    """Factors to vary."""
    crossing: Crossing
    """Combinations of factors to write."""
    models: VersionsModels
    """The writer and the judge."""
    grading: Grading
    """Settings of the judge."""

    def make(self) -> tuple[DesignedVersions, Grades | None]:
        """Write the versions, and let the judge grade those whose facts are changed."""
        from ranktilt.generation.versions.make import versions
        from ranktilt.judging.grading.changed_facts import grade_versions, require_gradable

        writer, judge = self.models.writer_client, self.models.judge_client
        if judge is not None:
            # What the judge could not grade is refused before the writer is paid for.
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
        """Return the price of each prompt.

        `price` holds the prices of a million input tokens and of a million output tokens.
        """
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
