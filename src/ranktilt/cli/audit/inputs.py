"""Options of what an audit reads: a collection or labels, and rankers or saved runs.

A *collection* has documents with texts and groups, queries, and usually judgments of relevance
(*qrels*). Where only saved runs are audited, a file of *labels*, which gives the group of each
document, is enough: the documents are then those that the runs name.
"""

from __future__ import annotations

from dataclasses import dataclass
from os.path import isdir, isfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, QUESTION, resolve_types
from ranktilt.cli.label_options import LabelOptions
from ranktilt.cli.output import collection_files
from ranktilt.cli.rankers import NamedText, any_has_option
from ranktilt.cli.saved_runs import SavedRunOptions, replay_spec
from ranktilt.data.formats.notation import file_of
from ranktilt.errors import UserError

if TYPE_CHECKING:
    from ranktilt.data.collection import Collection
    from ranktilt.data.runs.run import Run


@resolve_types
@Parameter(name="*", group=INPUT)
@dataclass(frozen=True, kw_only=True)
class InputOptions(SavedRunOptions, LabelOptions):
    """What an audit reads: a collection or labels, and rankers or saved runs."""

    folder: Annotated[Path | None, Parameter(parse=False)] = None
    """The verb's positional argument."""
    ranker: options.Rankers = None
    qrels: options.Qrels = None
    split: options.Split = None
    ignore_unknown: options.IgnoreUnknown = False
    by: Annotated[
        str,
        Parameter(
            help="Column to group documents by, or parts such as length:3; none for no groups.",
            metavar="COLUMN",
            group=QUESTION,
        ),
    ] = "source"
    pair: Annotated[
        list[str] | None,
        Parameter(
            help="Compare only these groups. A,rest compares A with all others; A|B joins two "
            "groups.",
            metavar="A,B",
            group=QUESTION,
        ),
    ] = None
    protected: Annotated[
        str | None,
        Parameter(
            help="Group (A|B, non-A) to compare with all others; short for --pair GROUP,rest.",
            metavar="GROUP",
            group=QUESTION,
        ),
    ] = None

    @property
    def pairs(self) -> list[tuple[str, str]] | None:
        """Pairs of groups to compare; None for all."""
        if self.protected is None:
            return options.read_pairs(self.pair)
        if self.pair:
            raise UserError("--protected GROUP means --pair GROUP,rest; give only one of them")
        if not self.protected.strip():
            raise UserError("--protected expects a group, such as female")
        return [(self.protected.strip(), "rest")]

    @property
    def column(self) -> str | None:
        """The column to group by; None for no groups."""
        return None if self.by == "none" else self.by

    @property
    def ranker_texts(self) -> list[NamedText]:
        """Texts of the rankers with their names."""
        return [NamedText.from_text(text) for text in self.ranker or ()]

    @property
    def specs(self) -> list[str]:
        """Texts of the rankers.

        With a collection, a saved run is read by a ranker too (``replay:FILE``).
        """
        specs = [ranker.text for ranker in self.ranker_texts]
        if self.folder is not None:
            specs += [replay_spec(Path(run_file.text)) for run_file in self.run_files]
        return specs

    @property
    def names(self) -> list[str | None]:
        """Names that the user gave the rankers of `specs`; None for a ranker without one."""
        names = [ranker.name for ranker in self.ranker_texts]
        if self.folder is not None:
            names += [run_file.name for run_file in self.run_files]
        return names

    @property
    def files(self) -> list[Path]:
        """Files that are read."""
        files = list(collection_files(self.folder))
        files += [file_of(run_file.text) for run_file in self.run_files]
        label_file = self.labels.path if self.labels else None
        files += [
            file_of(file) for file in (label_file, self.queries, self.qrels) if file is not None
        ]
        return files

    def check(self, *, controls: bool = False, card: bool = False) -> None:
        """Refuse inputs that do not go together, before anything is read.

        `controls` and `card` say whether ``--controls`` and ``--card`` are typed, which need more.
        """
        if not self.ranker and not self.run:
            self._require_folder()
            raise UserError(
                "nothing to audit: name a ranker, such as -r bm25, or a run, such as --run FILE"
            )
        if self.folder is None:
            self._check_without_folder(controls=controls)
        if self.column is None and card:
            raise UserError("the card needs a column to group by; omit --by none")
        if self.column is None and self.pairs is not None:
            raise UserError("pairs of groups need a column to group by; omit --by none")
        if self.column is None and self.reference is not None:
            raise UserError("--reference needs a column to group by; omit --by none")
        self._check_options_of_runs()

    def _check_without_folder(self, *, controls: bool) -> None:
        """Refuse inputs without labels, and rankers and controls, which need texts."""
        if self.labels is None:
            raise UserError(
                "the sources of the documents are unknown: name a collection DIR, or a label "
                "file (--groups FILE)"
            )
        if self.ranker:
            spec = self.ranker_texts[0].text
            raise UserError(f"ranker {spec!r} needs texts: name a collection DIR")
        self.refuse_options_of_collections()
        if controls:
            raise UserError("--controls rank changed texts: name a collection DIR and rankers (-r)")

    def refuse_options_of_collections(self) -> None:
        """Refuse options of reading a collection where labels stand for it."""
        if self.split is not None:
            raise UserError(
                "--split needs a collection DIR; name a judgment file instead: --qrels FILE"
            )
        if self.ignore_unknown:
            raise UserError("--ignore-unknown needs a collection DIR")

    def _check_options_of_runs(self) -> None:
        """Refuse options of saved runs where none is read."""
        specs = [ranker.text for ranker in self.ranker_texts]
        has_runs = bool(self.run) or any("replay:" in spec for spec in specs)
        if self.queries is not None and not has_runs:
            raise UserError("--queries needs a run: --run FILE")
        if (
            self.score_order is not None
            and not has_runs
            and not any_has_option("score_order", specs)
        ):
            raise UserError("--score-order needs a run, --run FILE, or a live engine")

    def _require_folder(self) -> None:
        """Refuse a folder that does not exist.

        This comes before the advice to name a ranker, which does not help after a typing error.
        """
        folder = self.folder
        if folder is None or str(folder).startswith(("hub:", "irds:")):
            return
        if isfile(folder):
            raise UserError(
                f"{folder}: expected a collection DIR, got a file; if it is a run, type --run "
                f"{folder}"
            )
        if not isdir(folder):
            # An audit's file may stand in place of a folder.
            missing = "file or folder" if folder.suffix == ".json" else "folder"
            raise UserError(f"{folder}: no such {missing}")

    def load(
        self, max_failures: float | None = None, *, repeats: bool = False
    ) -> tuple[Collection, list[Run]]:
        """Load the collection, or make one of labels and of the documents of saved runs.

        Parameters
        ----------
        max_failures : float, optional
            Percentage of queries that may have no readable response in a saved run.
        repeats : bool
            Whether the file of a run may hold several rankings of each query, as `Run.repeats`.

        Returns
        -------
        Collection, list of Run
            The saved runs where they make the collection; otherwise none.
        """
        if self.folder is None:
            return self._labelled(max_failures, repeats=repeats)
        from ranktilt.data.loading.load import load

        collection = load(
            self.folder, split=self.split, qrels=self.qrels, ignore_unknown=self.ignore_unknown
        )
        return self.labelled(collection, self.column or "source"), []

    def pairs_to_compare(
        self, collection: Collection, *, was_ranked_before: bool
    ) -> list[tuple[str, str]] | None:
        """Return the pairs of groups to compare, the reference first; None for all pairs.

        Pairs that cannot be compared are refused here, before rankers run, which may take hours.
        With saved runs (`was_ranked_before`) that can be left to the audit.
        """
        from ranktilt.auditing.grouping.number_bins import is_property

        if self.pairs is None and is_property(collection, self.column):
            if self.reference is not None:
                raise UserError(
                    f"--reference needs groups, but {self.column} is a column of numbers"
                )
            return None
        if self.reference is None and was_ranked_before:
            return self.pairs
        return self.reference_first(collection, self.column, self.pairs)

    def _labelled(
        self, max_failures: float | None, *, repeats: bool
    ) -> tuple[Collection, list[Run]]:
        """Read the saved runs, and make a collection of their documents and the labels."""
        from ranktilt.data.labels.labels import labelled
        from ranktilt.data.loading.load import NO_QRELS

        runs = self.load_runs(max_failures, repeats=repeats)
        qrels = None if self.qrels == NO_QRELS else self.qrels
        return labelled(self.labels or "", runs, by=self.column or "source", qrels=qrels), runs
