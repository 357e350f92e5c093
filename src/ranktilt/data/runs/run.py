"""The run: scored documents for each query, saved in TREC format.

An *entry* is one document in the list of one query. A run's *spec* says how it was made; it is
saved beside the run in a *sidecar*, ``<path>.json``. The *repeats* of a run are further rankings of
the same queries by an engine that does not always rank alike. In TREC format each line has an entry
and a *tag*, a name for the whole run; in the file of a run with repeats, the tags number the
repeats.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.files import STDIN, nth_line, require_path, rereadable_file, sidecar, write_files
from ranktilt.data.formats.base import RunFile
from ranktilt.data.formats.ids import (
    ids_of,
    kind_of,
    pandas_columns,
    require_mapping,
    require_pandas,
    require_text,
    score_series,
)
from ranktilt.data.formats.notation import RUN_NOUNS, RUN_OPTIONS, NamedFile
from ranktilt.data.formats.responses.search_responses import MAX_FAILURES
from ranktilt.data.formats.runs.repeats import REPEAT
from ranktilt.data.formats.runs.result_columns import result_columns
from ranktilt.data.formats.runs.runfile import read_run_file, read_spec, warn_of_ranks
from ranktilt.data.formats.runs.score_map import MTEB, mteb_scores
from ranktilt.data.runs.run_entries import (
    EntryOrigin,
    Float,
    Int32,
    Int64,
    check_score_order,
    entry_columns,
    entry_scores,
    first_repeated,
)
from ranktilt.data.runs.run_text import (
    ENTRIES_AT_ONCE,
    ESCAPED,
    REPEATS,
    TAG_OF_RUNS,
    WITHOUT_DOCUMENTS,
    needs_escapes,
    sidecar_text,
    trec_lines,
    unescape_ids,
)
from ranktilt.errors import DataError, DataWarning, UserError, counted, shorten

RUN_SHAPE = "{query: {document: score}}"
"""Nested mapping that runs are converted from."""
_STEP_TOLERANCE = 0.05
"""Largest relative difference between two steps of scores that count as equal.

A step is the difference between the scores of two neighbours in a list. Scores such as 1/rank are
rounded in files, so that their steps differ a little.
"""
_FILE_ENDINGS = re.compile(
    r"(\.(trec|run|res|json|jsonl|txt|tsv|csv|parquet))?(\.(gz|bz2|xz|zst|zip))?$", re.IGNORECASE
)
"""Endings of run files, plain and packed."""


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A ranked list of documents with scores for each query; immutable.

    All entries are in one array, query by query: query ``i`` has those from ``offsets[i]`` to
    ``offsets[i + 1] - 1``, the best first.

    Raises
    ------
    UserError
        If a score is NaN or infinite or rises, a query comes twice, a document comes twice for a
        query, or the arrays do not fit together.
    """

    queries: tuple[str, ...]
    """Ids of the queries."""
    offsets: Int64
    """Index of each query's first entry, and at the end the number of entries."""
    docs: Int32
    """Row in `ids` of each entry's document."""
    scores: Float
    """Score of each entry: finite, never rounded, larger is better, falling within each query."""
    ids: pl.Series
    """Ids of documents; a run that was made from a collection shares the collection's ids."""
    spec: Mapping[str, Any] = field(default_factory=dict)
    """How the run was made. The key ``ranker`` has the text of the ranker."""
    repeats: tuple[Run, ...] = ()
    """Further rankings of the same queries by the same engine, which an audit averages."""

    def __post_init__(self) -> None:
        """Check that the arrays fit together, and make them read-only."""
        require_mapping(self.spec, "a mapping", "a run's spec")
        object.__setattr__(self, "queries", tuple(self.queries))
        # Views, so that making them read-only leaves the caller's arrays as they are.
        object.__setattr__(self, "offsets", np.asarray(self.offsets, dtype=np.int64).view())
        object.__setattr__(self, "docs", np.asarray(self.docs, dtype=np.int32).view())
        object.__setattr__(self, "scores", np.asarray(self.scores, dtype=np.float64).view())
        if len(self.offsets) != len(self.queries) + 1 or self.offsets[-1] != len(self.docs):
            raise UserError(
                "a run's offsets must have one entry more than queries and end at its length"
            )
        if len(self.docs) != len(self.scores):
            raise UserError(
                f"a run needs one score per document, got {len(self.scores)} for {len(self.docs)}"
            )
        if not np.isfinite(self.scores).all():
            raise UserError("a run's scores must be finite, got NaN or infinity")
        if len(set(self.queries)) < len(self.queries):
            raise UserError("a run must name each query once")
        if len(self.docs) and not (self.docs.min() >= 0 and self.docs.max() < len(self.ids)):
            raise UserError(
                f"a run's documents must be rows of its id table, which has {len(self.ids)}"
            )
        if _rises(self.scores, self.offsets):
            raise UserError("a run's scores must fall within each query")
        repeated = first_repeated(self.entry_queries, self.docs)
        if repeated is not None:
            doc = self.ids[int(self.docs[repeated])]
            query = self.queries[self.entry_queries[repeated]]
            raise UserError(f"document {doc!r} occurs twice for query {query!r}")
        for array in (self.offsets, self.docs, self.scores):
            array.setflags(write=False)

    @property
    def name(self) -> str:
        """Name in results: the one that the user chose, or else the text of the ranker.

        The run of a file has the tag of its lines, or the file's name without its ending.
        """
        for key in ("alias", "name", "ranker"):
            if key in self.spec:
                return str(self.spec[key])
        return "run"

    @property
    def scored(self) -> bool:
        """Whether the scores say more than an order: they are neither ranks nor made from ranks.

        Engines and converters without scores write −rank or 1/rank in their place. Measures of
        scores, such as the gap between two documents, would then say nothing. Scores such as −rank
        fall by equal steps in every list, and the inverses of scores such as 1/rank rise by equal
        steps. True if all lists are too short to tell: of fewer than three documents.
        """
        if self.spec.get("score_order") == "rank":
            return False
        has_two_followers = self.entry_queries[2:] == self.entry_queries[:-2]
        if not has_two_followers.any():
            return True
        with np.errstate(divide="ignore", invalid="ignore"):
            negative_inverses = -1 / self.scores  # they fall where the inverses rise
            return not (
                _falls_evenly(self.scores, has_two_followers)
                or _falls_evenly(negative_inverses, has_two_followers)
            )

    @property
    def entry_queries(self) -> Int64:
        """Number of each entry's query."""
        return np.repeat(np.arange(len(self.queries)), np.diff(self.offsets))

    @property
    def truncated(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Stages of the ranker that cut long texts, the last stage first.

        A ranker is a pipeline of stages, each of which ranks again what the one before it returned.
        Each stage here has a name, and a mapping with the ``limit`` in tokens and the ``share`` of
        cut texts by source (by who wrote the text).
        """
        return stage_facts(self.spec, "truncated")

    @property
    def llm_answers(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Stages of the ranker that asked language models, the last stage first.

        Each has a name, and a mapping with the number of answers of each kind.
        """
        return stage_facts(self.spec, "llm_answers")

    def frame(self) -> pl.DataFrame:
        """Return the run as a table: ``query_id``, ``doc_id``, ``rank`` (from 1), ``score``."""
        return self._entries(slice(None))

    def _entries(self, rows: slice) -> pl.DataFrame:
        """Return some entries as a table."""
        first_entries = np.repeat(self.offsets[:-1], np.diff(self.offsets))
        ranks = np.arange(len(self.docs)) - first_entries + 1
        queries = pl.Series(self.queries, dtype=pl.String)
        columns = {
            "query_id": queries.gather(self.entry_queries[rows]),
            "doc_id": self.ids.gather(self.docs[rows]),
            "rank": ranks[rows],
            "score": self.scores[rows],
        }
        return pl.DataFrame(columns)

    def save(self, path: str | Path) -> Path:
        """Write the run in TREC format, and its spec to ``<path>.json``.

        A path that ends in ``.gz`` is compressed.
        """
        write_files(self.contents(Path(path)))
        return Path(path)

    def contents(self, path: Path) -> dict[Path, bytes]:
        """Return the content of the files that `save` writes, not compressed, by their paths.

        The repeats of a run follow each other in one file, with tags that number them. If an id has
        a blank, which would end a field, blanks and ``%`` are percent-encoded in all ids of the
        file (``%20``, ``%25``). The sidecar says so (``ids_percent_encoded``), and `load` decodes
        them.
        """
        runs = (self, *self.repeats)
        # A list, because `any` would stop at the first run: each run refuses an empty id here.
        need_escapes = [run._needs_escapes() for run in runs]
        is_escaped = any(need_escapes)
        lines = list[bytes]()
        for number, run in enumerate(runs, start=1):
            starts = range(0, len(run.docs), ENTRIES_AT_ONCE)
            tables = (run._entries(slice(start, start + ENTRIES_AT_ONCE)) for start in starts)
            tag = _tag_of_repeat(number) if self.repeats else TAG_OF_RUNS
            lines.append(trec_lines(tables, is_escaped=is_escaped, tag=tag))
        spec = self._spec_for_file()
        if self.repeats:
            spec[REPEATS] = [run._spec_for_file() for run in self.repeats]
        if is_escaped:
            spec[ESCAPED] = True
        return {path: b"".join(lines), sidecar(path): sidecar_text(self.name, spec)}

    def _needs_escapes(self) -> bool:
        """Return whether an id has a blank, which would end a field of TREC."""
        ranked_ids = self.ids.gather(np.flatnonzero(np.bincount(self.docs)))
        return needs_escapes(pl.Series(self.queries, dtype=pl.String), ranked_ids)

    def _spec_for_file(self) -> dict[str, Any]:
        """Return the spec, with the queries that no line of a TREC file can name."""
        spec = dict(self.spec)
        queries = pl.Series(self.queries, dtype=pl.String)
        has_no_entries = pl.Series(np.diff(self.offsets) == 0)
        queries_without_entries = queries.filter(has_no_entries).to_list()
        if queries_without_entries:
            spec[WITHOUT_DOCUMENTS] = queries_without_entries
        return spec

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        score_order: str | None = None,
        queries: Sequence[str] | Mapping[str, str] | None = None,
        max_failures: float = MAX_FAILURES,
        repeats: bool = False,
    ) -> Run:
        """Read a run from a file of any known layout, or from a folder of responses.

        The file may be TREC lines, MS MARCO's three columns, CSV or TSV with a header, Parquet, or
        JSON or JSON lines of scores, lists, records or responses of engines; plain or packed. The
        layout is recognised by the content, and ``spec["read_as"]`` describes it, unless it is
        TREC's or ``{query: {document: score}}``. Without scores documents are ordered by rank or
        position.

        Entries are sorted by falling score, whatever the file's order. Queries without a document
        are part of the run if the sidecar names them, as it does after `save`.

        Parameters
        ----------
        path : str or Path
            The file; ``-`` is standard input. ``FILE:query=qid,id=url,score=bm25`` names its
            columns, and nested keys with dots. ``hits=KEY`` names the key of its lists of
            documents. ``keep=first`` keeps the first entry of a document that comes twice for a
            query. The spec comes from ``<path>.json`` if that file exists.
        score_order : {"score", "ascending", "rank"}, optional
            ``"score"``: larger is better. ``"ascending"``: smaller is better, as with distances;
            scores become −score. ``"rank"``: the order of the file counts, or its rank column if
            that orders a list; scores become −rank, and equal ranks are ties. By default larger is
            better, and scores that rise along the order of the file are refused.
            ``spec["score_order"]`` has ``"ascending"`` or ``"rank"``; it is ``"rank"`` too if a
            score is minus infinity.
        queries : sequence of str, or mapping of id to text, optional
            Ids of the queries of responses that do not name them, in their order. With texts,
            responses that repeat the text of their query get its id.
        max_failures : float, optional
            Percentage of an engine's responses that may be errors or partial. They are left out of
            the run, listed in ``spec["failed"]``, and a warning counts them.
        repeats : bool, optional
            Whether the file may hold several rankings of each query, by a column ``repeat`` or
            ``run`` or by numbered tags (see `Run.repeats`). An audit averages them; elsewhere such
            a file is refused.

        Raises
        ------
        DataError
            With file and line, if the file is no run, a line has another number of fields than the
            first, a score is no finite number, or a document comes twice for a query. With the
            file, if scores rise along its order, or more responses failed than allowed.
        """
        named_file = NamedFile.from_text(require_path(path), RUN_NOUNS, RUN_OPTIONS)
        path = named_file.path
        check_score_order(score_order)
        with rereadable_file(path) as file:
            run_file = read_run_file(
                file,
                columns=named_file.columns,
                score_order=score_order,
                queries=queries,
                max_failures=max_failures,
            )
            if REPEAT in run_file.frame.columns and not repeats:
                count = run_file.frame[REPEAT].n_unique()
                raise DataError(
                    path,
                    f"{count:,} repeats of each query, which only an audit averages (ranktilt "
                    "audit, Run.load(FILE, repeats=True)); name a file of one repeat",
                )
            return cls._from_file(path, file, run_file, keep=named_file.options.get("keep"))

    @classmethod
    def _from_file(cls, path: Path, file: Path, run_file: RunFile, *, keep: str | None) -> Run:
        """Make a run from a file's entries.

        `file` is the file that was read, and `path` its name for the user. They differ for a pipe,
        which is copied to a file. With ``keep="first"`` repeated documents are dropped.
        """
        spec = _file_spec(path, run_file)
        if spec.pop(ESCAPED, False) is True:
            frame = unescape_ids(run_file.frame)
            queries = frame["query_id"].unique(maintain_order=True)
            run_file = replace(run_file, frame=frame, queries=queries)
        if run_file.skipped:
            entries = counted(run_file.skipped, "entry", "entries")
            _warn(f"{path}: left out {entries} without a query or a document id")
        frame = run_file.frame
        if keep is not None:
            keys = [name for name in ("query_id", "doc_id", REPEAT) if name in frame.columns]
            frame = frame.unique(keys, keep="first", maintain_order=True)
        dropped_count = run_file.frame.height - frame.height
        if dropped_count:
            spec["repeated_documents_dropped"] = dropped_count
        if dropped_count or REPEAT in frame.columns:
            # Rows were dropped, or will be divided among repeats. Their numbers no longer lead to
            # the lines of the file, so errors must not name lines.
            run_file = replace(run_file, lines=(), has_lines=False)
        origin = EntryOrigin(path=file, line_of=_line_of_entry(file, run_file))
        specs = _specs_of_repeats(spec)
        if REPEAT in frame.columns:
            frames = _frames_of_repeats(frame, len(specs))
            run = cls._from_repeats(frames, specs, score_order=run_file.score_order, origin=origin)
            frame = frames[0]
        else:
            queries_without_entries = specs[0].pop(WITHOUT_DOCUMENTS, ())
            run = cls._from_entries(
                frame,
                list(dict.fromkeys([*run_file.queries, *queries_without_entries])),
                specs[0],
                score_order=run_file.score_order,
                origin=origin,
            )
        if run_file.failed:
            warn = _warn_of_failed_repeats if run.repeats else _warn_of_failures
            warn(path, run_file.failed, len(run_file.queries))
        if run_file.score_order is None:
            warn_of_ranks(path, frame)
        return run

    @classmethod
    def from_repeats(cls, runs: Sequence[Run], *, name: str | None = None) -> Run:
        """Make one run of several rankings by the same engine, whose answers are random.

        An audit averages these repeats within each query.

        Parameters
        ----------
        runs : sequence of Run
            Rankings of the same queries; a run that has repeats brings all of them.
        name : str, optional
            Name of the run; by default that of the first.

        Raises
        ------
        UserError
            If there is no run, or one shares no query with the first.
        """
        rankings = list(
            chain.from_iterable((run, *run.repeats) for run in require_runs(runs, repeats=True))
        )
        if not rankings:
            raise UserError("repeats need at least one run")
        shared_name = rankings[0].name if name is None else name
        first, *further = (
            replace(run, spec={**run.spec, "alias": shared_name}, repeats=()) for run in rankings
        )
        for number, repeat in enumerate(further, start=2):
            _require_same_queries(shared_name, first, repeat, number)
        return replace(first, repeats=tuple(further))

    @classmethod
    def _from_repeats(
        cls,
        frames: Sequence[pl.DataFrame],
        specs: Sequence[Mapping[str, Any]],
        *,
        score_order: str | None,
        origin: EntryOrigin,
    ) -> Run:
        """Make a run of several repeats; `frames` has the entries of each.

        `specs` has a spec for each repeat. If their numbers differ, the first spec is that of all
        repeats.
        """
        if len(specs) != len(frames):
            specs = [specs[0]] * len(frames)
        runs = []
        for number, (frame, repeat_spec) in enumerate(zip(frames, specs, strict=True), start=1):
            spec = {**repeat_spec, REPEAT: number}
            query_ids = [*frame["query_id"].unique(maintain_order=True)]
            query_ids += spec.pop(WITHOUT_DOCUMENTS, ())
            runs.append(
                cls._from_entries(frame, query_ids, spec, score_order=score_order, origin=origin)
            )
        return replace(runs[0], repeats=tuple(runs[1:]))

    @classmethod
    def from_frame(
        cls,
        frame: pl.DataFrame,
        *,
        queries: Iterable[str] | None = None,
        spec: Mapping[str, Any] | None = None,
        score_order: str | None = None,
    ) -> Run:
        """Make a run from a table.

        Parameters
        ----------
        frame : polars.DataFrame
            Columns ``query_id``, ``doc_id`` and ``score``, and optionally ``rank``.
        queries : iterable of str, optional
            All queries of the run in order, each once, also those without an entry; by default
            those of the frame.
        spec : mapping, optional
            How the run was made.
        score_order : {"score", "ascending", "rank"}, optional
            As in `load`: by default larger is better, and scores that rise along the order of the
            frame are refused.
        """
        return cls._from_entries(frame, queries, spec or {}, score_order=score_order)

    @classmethod
    def _from_entries(
        cls,
        frame: pl.DataFrame,
        queries: Iterable[str] | None,
        spec: Mapping[str, Any],
        *,
        score_order: str | None,
        origin: EntryOrigin | None = None,
    ) -> Run:
        """Make a run from entries in the order of a file or object; all constructors call this.

        `origin` names the file or object in errors.
        """
        check_score_order(score_order)
        origin = origin or EntryOrigin(name=spec.get("ranker", "run"))
        try:
            frame = entry_columns(frame, is_scored=score_order != "rank")
            query_ids = frame["query_id"].unique(maintain_order=True)
            if queries is not None:
                query_ids = ids_of(queries, "queries").alias("query_id")
        except UserError as error:
            raise origin.fault(str(error)) from error
        ids = frame["doc_id"].unique(maintain_order=True)
        query = _query_numbers(frame, query_ids, origin)
        docs = codes(frame["doc_id"], ids)
        repeated = first_repeated(query, docs)
        if repeated is not None:
            doc, name = frame["doc_id"][repeated], frame["query_id"][repeated]
            hint = "" if origin.path is None else "; to keep the first, use FILE:keep=first"
            raise origin.fault(f"document {doc!r} occurs twice for query {name!r}{hint}", repeated)
        scores = entry_scores(frame, query, score_order, origin)
        # By query, and within a query by falling score; `lexsort` takes the first key last.
        order = np.lexsort((-scores.values, query))
        entry_counts = np.bincount(query, minlength=len(query_ids))
        offsets = np.concatenate([[0], np.cumsum(entry_counts)])
        if scores.order is not None and spec.get("score_order") != "rank":
            spec = {**spec, "score_order": scores.order}
        return cls(
            queries=tuple(query_ids),
            offsets=offsets,
            docs=docs[order].astype(np.int32),
            scores=scores.values[order],
            ids=ids,
            spec=spec,
        )

    @classmethod
    def from_pandas(cls, frame: Any, *, name: str = "run", score_order: str | None = None) -> Run:
        """Make a run from a pandas frame of results, such as PyTerrier's.

        Its columns may have the names that files use: ``qid`` or ``query_id``, ``docno`` or
        ``doc_id``, ``score``, and optionally ``rank``. `score_order` is that of `load`.
        """
        name = require_text(name, "name")
        names = require_pandas(frame, f"run {name!r}")
        columns = result_columns(names)
        needed = ("query_id", "doc_id", *(() if score_order == "rank" else ("score",)))
        missing = next((field for field in needed if field not in columns), None)
        if missing:
            raise UserError(f"expected a column for {missing}, got {', '.join(names) or 'none'}")
        positions = {names.index(column): field for field, column in columns.items()}
        table = pandas_columns(frame, positions)
        return cls.from_frame(table, spec={"ranker": name}, score_order=score_order)

    @classmethod
    def from_dict(
        cls,
        scores: Mapping[str, Mapping[str, float]],
        *,
        name: str = "run",
        score_order: str | None = None,
    ) -> Run:
        """Make a run from ``{query: {document: score}}``, as BEIR, pytrec_eval and ranx hold it.

        `score_order` is that of `load`; ``"rank"`` takes the order of the documents in the mapping.
        """
        subject = f"run {require_text(name, 'name')!r}"
        for query, documents in require_mapping(scores, RUN_SHAPE, subject).items():
            require_mapping(documents, "{document: score}", f"{subject}, query {shorten(query)}")
        score_values = list(
            chain.from_iterable(documents.values() for documents in scores.values())
        )
        lengths = [len(documents) for documents in scores.values()]
        queries = ids_of(scores.keys(), f"{subject}: query")
        frame = pl.DataFrame(
            {
                "query_id": queries.gather(np.repeat(np.arange(len(lengths)), lengths)),
                "doc_id": ids_of(chain.from_iterable(scores.values()), f"{subject}: document"),
                "score": score_series(score_values),
            }
        )
        return cls.from_frame(
            frame, queries=queries, spec={"ranker": name}, score_order=score_order
        )

    @classmethod
    def from_ranx(cls, run: Any, *, score_order: str | None = None) -> Run:
        """Make a run from a ``ranx.Run``; `score_order` is that of `load`."""
        if not hasattr(run, "to_dict") or not hasattr(run, "name"):
            raise UserError(f"expected a ranx.Run, got {kind_of(run)}")
        return cls.from_dict(run.to_dict(), name=run.name or "run", score_order=score_order)

    @classmethod
    def from_mteb(
        cls,
        predictions: Mapping[str, Any],
        *,
        subset: str = "",
        split: str = "",
        score_order: str | None = None,
    ) -> Run:
        """Make a run from the content of mteb's ``{task}_predictions.json``.

        `subset` and `split` choose among its predictions. They may be left out if there is only one
        subset and split, or only one split ``test``. `score_order` is that of `load`; by default
        larger scores are better, because the order of mteb's dictionaries says nothing.
        """
        require_mapping(predictions, "{subset: {split: {query: {document: score}}}}", "predictions")
        scores = mteb_scores("predictions", predictions, subset, split)
        model = predictions.get(MTEB)
        name = model.get("model_name") if isinstance(model, Mapping) else None
        return cls.from_dict(scores, name=str(name or "run"), score_order=score_order or "score")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Run):
            return NotImplemented
        return self.frame().equals(other.frame())

    def __hash__(self) -> int:
        return hash((self.queries, len(self.docs)))

    def __repr__(self) -> str:
        return f"Run({self.name!r}: {len(self.queries)} queries, {len(self.docs)} entries)"


def _query_numbers(frame: pl.DataFrame, query_ids: pl.Series, origin: EntryOrigin) -> Int64:
    """Return the index in `query_ids` of each entry's query."""
    if query_ids.n_unique() < len(query_ids):
        repeated = query_ids.is_first_distinct().not_().arg_max() or 0
        raise origin.fault(f"query {query_ids[repeated]!r} occurs twice")
    query = codes(frame["query_id"], query_ids)
    if len(query) and query.min() < 0:
        missing_id = frame["query_id"][int(query.argmin())]
        raise origin.fault(
            f"a run's queries must include all of its table's, {missing_id!r} is missing"
        )
    return query


def _file_spec(path: Path, run_file: RunFile) -> dict[str, Any]:
    """Return the spec of a file's run, with how the file was read.

    The spec is that of the sidecar, the file ``<path>.json``, if there is one.
    """
    default_spec = {"ranker": str(path), "name": run_file.tag or file_stem(path)}
    stored_spec = read_spec(path)
    if "ranker" in stored_spec:
        default_spec = {}
    spec: dict[str, Any] = {**default_spec, **stored_spec, "file": str(path)}
    # The stored ``read_as`` describes the file that the run was read from before it was saved.
    spec.pop("read_as", None)
    facts = {
        "read_as": run_file.read_as,
        "failed": dict(run_file.failed),
        "skipped": run_file.skipped,
    }
    return {**spec, **{key: value for key, value in facts.items() if value}}


def _require_same_queries(name: str, first: Run, repeat: Run, number: int) -> None:
    """Refuse a repeat that answers other queries than the first."""
    if first.queries and repeat.queries and set(first.queries).isdisjoint(repeat.queries):
        raise UserError(
            f"run {name!r}: repeats must answer the same queries, and repeat {number} "
            f"({_file_or_ranker(repeat)}) has none of those of repeat 1 "
            f"({_file_or_ranker(first)}); if they are different runs, give them different names"
        )


def _file_or_ranker(run: Run) -> str:
    """Return the name of a run's file, or of its ranker if it comes from no file."""
    return str(run.spec.get("file", run.spec.get("ranker", run.name)))


def _specs_of_repeats(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Divide the spec in a sidecar into the specs of the repeats, the first repeat's first.

    The specs of further repeats are a list in the spec of the first, from which they are removed.
    """
    further_specs = spec.pop(REPEATS, ())
    if not isinstance(further_specs, list):
        return [spec]
    shared = {key: spec[key] for key in ("file", "read_as") if key in spec}
    return [
        spec,
        *({**repeat, **shared} for repeat in further_specs if isinstance(repeat, Mapping)),
    ]


def _frames_of_repeats(frame: pl.DataFrame, count: int) -> list[pl.DataFrame]:
    """Return the entries of each repeat, in the order of the file.

    `count` is the number of repeats by the sidecar. In a file that `Run.save` wrote, a repeat
    without any entry has no line, and is put in its place by the tags of the others.
    """
    by_label = frame.partition_by(REPEAT, maintain_order=True, include_key=False, as_dict=True)
    frames = {str(label): entries for (label,), entries in by_label.items()}
    saved_labels = [_tag_of_repeat(number) for number in range(1, count + 1)]
    if len(frames) < count and set(frames) <= set(saved_labels):
        nothing = frame.drop(REPEAT).clear()
        return [frames.get(label, nothing) for label in saved_labels]
    return list(frames.values())


def _tag_of_repeat(number: int) -> str:
    """Return the tag of the lines of a repeat in a file that `Run.save` writes."""
    return f"{REPEAT}-{number}"


def _line_of_entry(file: Path, run_file: RunFile) -> Callable[[int], int] | None:
    """Return a function from an entry's index to its line; None if entries have no lines."""
    if len(run_file.lines):
        return run_file.lines.__getitem__
    if run_file.has_lines and file.is_file():
        return partial(nth_line, file, first=run_file.first_line)
    return None


def file_stem(path: str | Path) -> str:
    """Return a run file's name without its folder and the endings of runs."""
    if str(path) == STDIN:
        return "standard input"
    return _FILE_ENDINGS.sub("", Path(path).name) or str(path)


def replayed_name(run: Run) -> str:
    """Return a name for the ranker that replays a file's run, that is, returns its entries.

    It is the name of the run. If a sidecar names the ranker that made the run, that name belongs to
    the original ranker, and the replay is named after the file instead.
    """
    file = str(run.spec["file"])
    return run.name if run.spec.get("ranker") == file else file_stem(file)


def require_runs(runs: Any, *, repeats: bool = False) -> list[Run]:
    """Return a run, or several, as a list; `UserError` for anything else.

    Runs with repeats are refused, unless `repeats` says that the caller handles them.
    """
    values = [runs] if isinstance(runs, Run) else _run_list(runs)
    for value in values:
        if not isinstance(value, Run):
            raise UserError(
                f"expected runs, such as Run.load(FILE), got {kind_of(value)}: {shorten(value)}"
            )
        if value.repeats and not repeats:
            raise UserError(
                f"run {value.name!r} has {len(value.repeats) + 1} repeats, which only an audit "
                "averages; pass one of them"
            )
    return values


def _run_list(runs: Any) -> list[Any]:
    """Return runs as a list; `UserError` for something that holds none."""
    if not isinstance(runs, Iterable):
        raise UserError(
            f"expected runs, such as [Run.load(FILE)], got {kind_of(runs)}: {shorten(runs)}"
        )
    return list(runs)


def named_apart(runs: Iterable[Run]) -> list[Run]:
    """Return the runs, with other names for those from files that share a name.

    They are named by their files without ending. If these are the same too, they are named by the
    texts of their rankers.
    """
    renamed = _without_shared_names(_run_list(runs), lambda spec: file_stem(spec["file"]))
    return _without_shared_names(renamed, itemgetter("ranker"))


def _without_shared_names(
    runs: list[Run], name_of: Callable[[Mapping[str, Any]], str]
) -> list[Run]:
    """Rename runs from files that share a name; `name_of` returns the new name from a spec."""
    # A value that is no run is refused later, by `require_runs`.
    names = [run.name if isinstance(run, Run) else "" for run in runs]
    renamed = list(runs)
    for index, (run, name) in enumerate(zip(runs, names, strict=True)):
        if name and names.count(name) > 1 and {"name", "file"} <= run.spec.keys():
            renamed[index] = replace(run, spec={**run.spec, "name": name_of(run.spec)})
    return renamed


def _falls_evenly(scores: Float, has_two_followers: npt.NDArray[np.bool_]) -> bool:
    """Return whether scores fall by equal steps in every list.

    `has_two_followers` says for each entry whether the next two entries are in the same list.
    """
    steps = np.diff(scores)
    step_changes = np.abs(np.diff(steps))[has_two_followers]
    first_steps = steps[:-1][has_two_followers]
    are_equal = step_changes <= _STEP_TOLERANCE * np.abs(first_steps)
    return bool((first_steps < 0).all() and are_equal.all())


def _rises(scores: Float, offsets: Int64) -> bool:
    """Return whether a score is larger than the score before it in the same query."""
    is_larger = np.zeros(len(scores), dtype=bool)
    is_larger[1:] = scores[1:] > scores[:-1]
    # The first score of a query follows a score of another query. Queries without entries at the
    # end of the run have offsets beyond the last entry.
    first_entries = offsets[:-1]
    is_larger[first_entries[first_entries < len(scores)]] = False
    return bool(is_larger.any())


def codes(names: pl.Series, table: pl.Series) -> Int64:
    """Return the number of each name: its row in a table of unique names; −1 if it is missing."""
    rows = pl.DataFrame({"name": table, "row": np.arange(len(table))})
    left = names.alias("name").to_frame()
    joined = left.join(rows, on="name", how="left", maintain_order="left")
    return joined["row"].fill_null(-1).to_numpy().astype(np.int64)


def collection_rows(run: Run, collection: Collection) -> Int64:
    """Return the row in the collection of each id of a run's table; −1 for an unknown document.

    Loading adds the source to an id that several sources share, as in ``12-human`` and ``12-llm``
    (see `Collection.bare_ids`). A run may have been made from the files, and name only ``12``. That
    could mean either document, so it is refused with a `DataError`.
    """
    # A table that is shared with the collection needs no join.
    if run.ids is collection.ids:
        return np.arange(len(run.ids))
    rows = codes(run.ids, collection.ids)
    unknown_ids = run.ids.filter(pl.Series(rows < 0))
    if not len(unknown_ids):
        return rows
    bare = collection.bare_ids()
    shared = collection.docs.select("id", bare=bare).filter(
        (bare != collection.ids) & bare.is_duplicated()
    )
    ambiguous_ids = unknown_ids.filter(unknown_ids.is_in(shared["bare"].implode()))
    if len(ambiguous_ids):
        full_ids = shared.filter(pl.col("bare") == ambiguous_ids[0])["id"].to_list()
        listed = " and ".join(map(repr, full_ids))
        raise DataError(
            run.spec.get("file", run.name),
            f"several sources share document id {ambiguous_ids[0]!r}: {listed}; "
            "the run must say which one it means",
        )
    return rows


def _warn(message: str) -> None:
    """Warn of a run's data, at the line of the caller's code."""
    warnings.warn(message, DataWarning, stacklevel=5)


def _warn_of_failures(path: Path, failed: Mapping[str, str], answered_count: int) -> None:
    """Warn of queries that an engine did not fully answer.

    `failed` has the reason for each of them; `answered_count` is the number of all other queries.
    """
    name, reason = next(iter(failed.items()))
    queries = counted(len(failed) + answered_count, "query", "queries")
    message = (
        f"{path}: {len(failed):,} of {queries} failed and are not in the run (first: {name!r}: "
        f"{reason})"
    )
    warnings.warn(message, DataWarning, stacklevel=4)


def _warn_of_failed_repeats(path: Path, failed: Mapping[str, str], answered_count: int) -> None:
    """Warn of queries that an engine did not fully answer in some repeats.

    `failed` has the reason for each of them; `answered_count` is the number of queries that some
    repeat answers.
    """
    name, reason = next(iter(failed.items()))
    queries = counted(answered_count, "query", "queries")
    lists = "list" if len(failed) == 1 else "lists"
    message = (
        f"{path}: {len(failed):,} of {queries} failed in some repeats, which lack the {lists} "
        f"(first: {name!r}: {reason})"
    )
    warnings.warn(message, DataWarning, stacklevel=4)


def stage_facts(spec: Any, fact: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the value of one key, `fact`, for each stage of a ranker, with the stage's name.

    The last stage comes first: a run's spec has the spec of the run that it re-ranked as
    ``candidates``. Stages without the key are left out.
    """
    facts = list[tuple[str, Mapping[str, Any]]]()
    while isinstance(spec, Mapping):
        values = spec.get(fact)
        if isinstance(values, Mapping):
            facts.append((str(spec.get("name", spec.get("ranker", "run"))), values))
        spec = spec.get("candidates", ())
    return facts
