"""What ``ranktilt explain`` reads: a collection or labels, runs, rankers and an encoder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, MODEL, resolve_types
from ranktilt.cli.label_options import LabelOptions
from ranktilt.cli.output import collection_files
from ranktilt.cli.rankers import read_rankers
from ranktilt.cli.saved_runs import SavedRunOptions
from ranktilt.data.formats.notation import file_of
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.data.runs.run import Run
    from ranktilt.rankers.base import Ranker


@resolve_types
@Parameter(name="*", group=INPUT)
@dataclass(frozen=True, kw_only=True)
class ExplainInputs(LabelOptions, SavedRunOptions):
    """Documents to examine, and the rankers and runs whose gap is explained."""

    folder: Annotated[Path | None, Parameter(parse=False)] = None
    """The verb's positional argument."""
    ranker: options.Rankers = None
    split: options.Split = None
    encoder: Annotated[
        str | None,
        Parameter(
            help="Encoder whose vectors to examine, such as dense:minilm.",
            metavar="SPEC",
            group=MODEL,
        ),
    ] = None
    text: options.Text = None

    @property
    def files(self) -> list[Path]:
        """Files that are read."""
        paths = [run_file.text for run_file in self.run_files]
        paths += [self.labels.path] if self.labels else []
        paths += [str(self.queries)] if self.queries is not None else []
        return [*collection_files(self.folder), *map(file_of, paths)]

    def require_folder(self) -> Path:
        """Return the folder of the collection; refuse to go on without one."""
        if self.folder is None:
            raise UserError("name a collection DIR; without one: --groups FILE and --run FILE")
        return self.folder

    def load_texts(self) -> Collection:
        """Load the collection for its texts; it need not have judgments."""
        return options.load_texts(self.require_folder(), self.split)

    def load_documents(self, by: str, runs: list[Run]) -> Collection:
        """Load the documents with the columns of the label file.

        Parameters
        ----------
        by : str
            The column of their groups.
        runs : list of Run
            Runs whose documents are taken where no folder is named; these have no texts.
        """
        from ranktilt.data.labels.labels import labelled, with_labels

        if self.folder is None:
            return labelled(self.labels or "", runs, by=by)
        collection = self.load_texts()
        if self.labels is None:
            return self.labelled(collection, by)
        return with_labels(collection, self.labels, by=by, other_columns=True)

    def read_rankers(self) -> list[Ranker]:
        """Return the rankers of ``-r``."""
        return read_rankers(self.ranker or (), text=self.text)

    def read_encoder(self) -> Ranker | None:
        """Return the encoder whose vectors are examined; None where none is named."""
        return read_rankers([self.encoder], text=self.text)[0] if self.encoder else None

    def words_with_texts(self, by: str) -> list[str]:
        """Return the command that explains the same runs with the texts of a folder DIR.

        `by` is the column of the groups.
        """
        words = ["ranktilt", "explain", "DIR"]
        for path in self.run or ():
            words += ["--run", str(path)]
        words += self.labels.words if self.labels else []
        words += ["--by", by] if by != "source" else []
        words += ["--reference", self.reference] if self.reference is not None else []
        return words
