"""Options of saved runs: their files, how they are ordered, and the queries of responses.

A *run* is what a ranker returned for each query. *Responses* are answers of a search engine as it
sent them, which need not name their query. The *spec* of a run is a dictionary that records how the
run was made; the *text* of a ranker is what is typed after ``-r``, such as ``replay:bm25.trec``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from ranktilt.cli import options
from ranktilt.cli.app import INPUT, SELDOM, resolve_types
from ranktilt.cli.rankers import NamedText, with_names

if TYPE_CHECKING:
    from ranktilt.data.runs.run import Run


@resolve_types
@Parameter(name="*", group=INPUT)
@dataclass(frozen=True, kw_only=True)
class SavedRunOptions:
    """Files of runs, and how they are read."""

    run: Annotated[
        list[Path] | None,
        options.FILE_OR_STDIN,
        Parameter(
            help="A saved run to use instead of ranking: TREC, CSV, JSON, responses (a file or "
            "folder), - for standard input. Name other columns as "
            "FILE:query=qid,id=url,score=bm25. NAME=FILE names the run.",
            metavar="FILE",
        ),
    ] = None
    score_order: options.ScoreOrder = None
    queries: Annotated[
        Path | None,
        options.FILE_OR_STDIN,
        Parameter(
            help="Queries (id and text), in the order of the responses, or to send to a live "
            "engine.",
            metavar="FILE",
            group=SELDOM,
        ),
    ] = None

    @property
    def run_files(self) -> list[NamedText]:
        """Files of saved runs with their names."""
        return [NamedText.from_text(path) for path in self.run or ()]

    def load_runs(self, max_failures: float | None = None, *, repeats: bool = False) -> list[Run]:
        """Read the saved runs; the spec of each names the ranker that reads it again.

        Parameters
        ----------
        max_failures : float, optional
            Percentage of queries that may have no readable response.
        repeats : bool
            Whether a file may hold several rankings of each query, as `Run.repeats`.
        """
        from ranktilt.data.formats.responses.search_responses import MAX_FAILURES
        from ranktilt.data.queries import query_texts
        from ranktilt.data.runs.run import Run, named_apart, replayed_name

        query_names = None if self.queries is None else query_texts(self.queries)
        runs = []
        for run_file in self.run_files:
            path = Path(run_file.text)
            run = Run.load(
                path,
                score_order=self.score_order,
                queries=query_names,
                max_failures=MAX_FAILURES if max_failures is None else max_failures,
                repeats=repeats,
            )
            # Later commands read the run again by "ranker"; "made_by" is the ranker behind it.
            origin = {
                "ranker": replay_spec(path, self.score_order, self.queries),
                "name": replayed_name(run),
                "made_by": run.spec.get("ranker"),
            }
            runs.append(replace(run, spec={**run.spec, **origin}))
        names = [run_file.name for run_file in self.run_files]
        return with_names(named_apart(runs), names)


def replay_spec(path: Path, score_order: str | None = None, queries: Path | None = None) -> str:
    """Return the text of the ranker that reads a saved run, such as ``replay:bm25.trec``.

    Parameters
    ----------
    path : Path
        The file of the run.
    score_order : str or None
        How its documents are ordered, as ``--score-order`` says.
    queries : Path or None
        File of the queries, for responses that do not name them.
    """
    from ranktilt.spec import Stage

    stage_options = {} if score_order is None else {"score_order": score_order}
    if queries is not None:
        stage_options["queries"] = str(queries)
    return str(Stage(name="replay", argument=str(path), options=stage_options))
