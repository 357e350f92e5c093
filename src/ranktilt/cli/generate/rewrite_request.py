"""What ``ranktilt generate rewrite`` asks a model: which documents to rewrite, and how."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.generation.batched_requests import GenerationInputs
    from ranktilt.generation.generated import Generated
    from ranktilt.generation.output_folder import SavedFolder
    from ranktilt.generation.pooling import Pool
    from ranktilt.generation.settings import Rewriting
    from ranktilt.llm.base import LLM


@dataclass(frozen=True, kw_only=True)
class RewriteRequest:
    """Documents to rewrite, and the model that rewrites them."""

    collection: Collection
    """The documents."""
    client: LLM
    """The connection to the model."""
    rewriting: Rewriting
    """Settings of the prompt, and the source to rewrite."""
    pool: Pool | None
    """The documents to rewrite; None for all documents of the source."""

    def prepare(self) -> GenerationInputs:
        """Return the requests that are still to be sent."""
        from ranktilt.generation.rewrite.prepare import prepare_rewrites

        return prepare_rewrites(self.collection, self.client, self.rewriting, only=self.pool)

    def write(self, folder: Path, *, rows_per_file: int | None) -> tuple[Generated, SavedFolder]:
        """Ask the model, and write the collection with its rewrites into a folder."""
        from ranktilt.generation.output_folder import one_writer
        from ranktilt.generation.rewrite.rewrite import rewrite
        from ranktilt.generation.rewrite.save import save_rewritten

        with one_writer(folder):
            rewritten = rewrite(self.collection, self.client, self.rewriting, only=self.pool)
            return rewritten, save_rewritten(rewritten, folder, rows_per_file=rows_per_file)
