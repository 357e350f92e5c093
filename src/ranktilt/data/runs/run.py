"""The run: scored documents for each query, saved in TREC format with a file about it."""

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
    Int64,
    check_score_order,
    entry_columns,
    entry_scores,
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

Int32 = npt.NDArray[np.int32]
"""Whole numbers of 32 bits."""
RUN_SHAPE = "{query: {document: score}}"
"""Nested mapping that runs are converted from."""
_ENTRIES_A_SORT = 16_384
"""Most entries that are searched for repeated documents at a time."""
_QUERIES_A_SORT = 64
"""Most queries that are searched for repeated documents at a time."""
_BEND = 0.05
"""Largest relative difference between two steps of scores that count as equal (`Run.scored`).

Scores such as 1/rank are rounded in files, so that their steps differ a little.
"""
_ENDING = re.compile(
    r"(\.(trec|run|res|json|jsonl|txt|tsv|csv|parquet))?(\.(gz|bz2|xz|zst|zip))?$", re.IGNORECASE
)
"""Endings of run files."""


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """A ranked list of documents with scores for each query; immutable.

    An *entry* is one document in the list of one query. Query ``i`` has the entries from
    ``offsets[i]`` to ``offsets[i + 1] - 1``, the best first.

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
    """Further rankings of the same queries by the same engine; see `data/runs/repeats.py`."""

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
        repeated = _first_repeated(self.entry_queries, self.docs)
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

        Scores such as −rank fall by equal steps in every list. The inverses of scores such as
        1/rank rise by equal steps. Lists of fewer than three documents do not tell.
        """
        if self.spec.get("score_order") == "rank":
            return False
        inner = self.entry_queries[2:] == self.entry_queries[:-2]
        if not inner.any():
            return True
        with np.errstate(divide="ignore", invalid="ignore"):
            inverses = -1 / self.scores
            return not (_even_steps(self.scores, inner) or _even_steps(inverses, inner))

    @property
    def entry_queries(self) -> Int64:
        """Number of each entry's query."""
        return np.repeat(np.arange(len(self.queries)), np.diff(self.offsets))

    @property
    def truncated(self) -> list[tuple[str, Mapping[str, Any]]]:
        """Stages of the ranker that cut long texts, the last stage first.

        Each has a name, and a mapping with the ``limit`` in tokens and the ``share`` of cut texts
        by source.
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

    def _entries(self, part: slice) -> pl.DataFrame:
        """Return some entries as a table."""
        ranks = np.arange(len(self.docs)) - np.repeat(self.offsets[:-1], np.diff(self.offsets)) + 1
        queries = pl.Series(self.queries, dtype=pl.String)
        columns = {
            "query_id": queries.gather(self.entry_queries[part]),
            "doc_id": self.ids.gather(self.docs[part]),
            "rank": ranks[part],
            "score": self.scores[part],
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

        The repeats of a run stand one after the other, with tags that number them. If an id has a
        blank, which would end a field, blanks and ``%`` are percent-encoded in all
        ids of the file (``%20``, ``%25``). The sidecar says so (``ids_percent_encoded``), and
        `load` decodes them.
        """
        runs = (self, *self.repeats)
        # Each is asked, because each refuses an empty id.
        escapes = [run._needs_escapes() for run in runs]
        is_escaped = any(escapes)
        lines = list[bytes]()
        for number, run in enumerate(runs, start=1):
            starts = range(0, len(run.docs), ENTRIES_AT_ONCE)
            parts = (run._entries(slice(start, start + ENTRIES_AT_ONCE)) for start in starts)
            tag = f"{REPEAT}-{number}" if self.repeats else TAG_OF_RUNS
            lines.append(trec_lines(parts, is_escaped=is_escaped, tag=tag))
        spec = self._spec_for_file()
        if self.repeats:
            spec[REPEATS] = [run._spec_for_file() for run in self.repeats]
        if is_escaped:
            spec[ESCAPED] = True
        return {path: b"".join(lines), sidecar(path): sidecar_text(self.name, spec)}

    def _needs_escapes(self) -> bool:
        """Return whether an id has a blank, which would end a field of TREC."""
        ranked = self.ids.gather(np.flatnonzero(np.bincount(self.docs)))
        return needs_escapes(pl.Series(self.queries, dtype=pl.String), ranked)

    def _spec_for_file(self) -> dict[str, Any]:
        """Return the spec, with the queries that no line of a TREC file can name."""
        spec = dict(self.spec)
        queries = pl.Series(self.queries, dtype=pl.String)
        without = queries.filter(pl.Series(np.diff(self.offsets) == 0)).to_list()
        if without:
            spec[WITHOUT_DOCUMENTS] = without
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

        TREC lines, MS MARCO's three columns, CSV and TSV with a header, JSON and JSON lines of
        scores, lists, records and responses of engines, Parquet; plain or packed. The layout is
        recognised by the content, and ``spec["read_as"]`` describes it, unless it is TREC's or
        ``{query: {document: score}}``. Without scores documents are ordered by rank or position.

        Entries are sorted by falling score, whatever the file's order. Queries without a document
        are part of the run if the sidecar names them, as `save` does.

        Parameters
        ----------
        path : str or Path
            The file; ``-`` is standard input. ``FILE:query=qid,id=url,score=bm25`` names its
            columns, nested keys by dots; ``hits=KEY`` the key of its lists, and ``keep=first``
            keeps the first of a document that comes twice for a query. The spec comes from
            ``<path>.json`` if that file exists.
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

        `file` is the file that was read, and `path` its name for the user: a pipe, for one, is
        copied to a file.
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
        dropped = run_file.frame.height - frame.height
        if REPEAT in frame.columns:
            run_file = replace(run_file, lines=(), has_lines=False)
        if dropped:
            spec["repeated_documents_dropped"] = dropped
            run_file = replace(run_file, lines=(), has_lines=False)
        origin = EntryOrigin(path=file, line_of=_line_of_entry(file, run_file))
        specs = _specs_of_repeats(spec)
        if REPEAT in frame.columns:
            parts = frame.partition_by(REPEAT, maintain_order=True, include_key=False)
            run = cls._from_repeats(parts, specs, score_order=run_file.score_order, origin=origin)
            frame = parts[0]
        else:
            run = cls._from_entries(
                frame,
                list(dict.fromkeys([*run_file.queries, *specs[0].pop(WITHOUT_DOCUMENTS, ())])),
                specs[0],
                score_order=run_file.score_order,
                origin=origin,
            )
        if run_file.failed:
            _warn_of_failures(path, run_file.failed, len(run_file.queries))
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
        flat = list(
            chain.from_iterable((run, *run.repeats) for run in require_runs(runs, repeats=True))
        )
        if not flat:
            raise UserError("repeats need at least one run")
        shared_name = flat[0].name if name is None else name
        first, *further = (
            replace(run, spec={**run.spec, "alias": shared_name}, repeats=()) for run in flat
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
        """Make a run of several repeats from the entries of each.

        `specs` are those of the repeats if there are as many, else the first is that of all.
        """
        if len(specs) != len(frames):
            specs = [specs[0]] * len(frames)
        runs = []
        for number, (frame, repeat_spec) in enumerate(zip(frames, specs, strict=True), start=1):
            spec = {**repeat_spec, REPEAT: number}
            names = [*frame["query_id"].unique(maintain_order=True)]
            names += spec.pop(WITHOUT_DOCUMENTS, ())
            runs.append(
                cls._from_entries(frame, names, spec, score_order=score_order, origin=origin)
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
        """Make a run from entries in the order of a file or object; all constructors call this."""
        check_score_order(score_order)
        origin = origin or EntryOrigin(name=spec.get("ranker", "run"))
        try:
            frame = entry_columns(frame, is_scored=score_order != "rank")
            names = frame["query_id"].unique(maintain_order=True)
            if queries is not None:
                names = ids_of(queries, "queries").alias("query_id")
        except UserError as error:
            raise origin.fault(str(error)) from error
        ids = frame["doc_id"].unique(maintain_order=True)
        query = _query_numbers(frame, names, origin)
        docs = codes(frame["doc_id"], ids)
        repeated = _first_repeated(query, docs)
        if repeated is not None:
            doc, name = frame["doc_id"][repeated], frame["query_id"][repeated]
            hint = "" if origin.path is None else "; to keep the first, use FILE:keep=first"
            raise origin.fault(f"document {doc!r} occurs twice for query {name!r}{hint}", repeated)
        scores = entry_scores(frame, query, score_order, origin)
        order = np.lexsort((-scores.values, query))
        offsets = np.concatenate([[0], np.cumsum(np.bincount(query, minlength=len(names)))])
        if scores.order is not None and spec.get("score_order") != "rank":
            spec = {**spec, "score_order": scores.order}
        return cls(
            queries=tuple(names),
            offsets=offsets,
            docs=docs[order].astype(np.int32),
            scores=scores.values[order],
            ids=ids,
            spec=spec,
        )

    @classmethod
    def from_pandas(cls, frame: Any, *, name: str = "run", score_order: str | None = None) -> Run:
        """Make a run from a pandas frame of results, such as PyTerrier's.

        Columns are called as in files: ``qid`` or ``query_id``, ``docno`` or ``doc_id``, ``score``,
        and ``rank`` if it has one. `score_order` is that of `load`.
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
        noun = f"run {require_text(name, 'name')!r}"
        for query, documents in require_mapping(scores, RUN_SHAPE, noun).items():
            require_mapping(documents, "{document: score}", f"{noun}, query {shorten(query)}")
        values = list(chain.from_iterable(documents.values() for documents in scores.values()))
        lengths = [len(documents) for documents in scores.values()]
        queries = ids_of(scores.keys(), f"{noun}: query")
        frame = pl.DataFrame(
            {
                "query_id": queries.gather(np.repeat(np.arange(len(lengths)), lengths)),
                "doc_id": ids_of(chain.from_iterable(scores.values()), f"{noun}: document"),
                "score": score_series(values),
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

        `subset` and `split` are by default the only ones, or the split ``test``. `score_order` is
        that of `load`; by default larger scores are better, because the order of mteb's
        dictionaries says nothing.
        """
        require_mapping(predictions, "{subset: {split: {query: {document: score}}}}", "predictions")
        scores = mteb_scores("predictions", predictions, subset, split)
        meta = predictions.get(MTEB)
        name = meta.get("model_name") if isinstance(meta, Mapping) else None
        order = score_order or "score"
        return cls.from_dict(scores, name=str(name or "run"), score_order=order)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Run):
            return NotImplemented
        return self.frame().equals(other.frame())

    def __hash__(self) -> int:
        return hash((self.queries, len(self.docs)))

    def __repr__(self) -> str:
        return f"Run({self.name!r}: {len(self.queries)} queries, {len(self.docs)} entries)"


def _query_numbers(frame: pl.DataFrame, names: pl.Series, origin: EntryOrigin) -> Int64:
    """Return the number of each entry's query among `names`."""
    if names.n_unique() < len(names):
        repeated = names.is_first_distinct().not_().arg_max() or 0
        raise origin.fault(f"query {names[repeated]!r} occurs twice")
    query = codes(frame["query_id"], names)
    if len(query) and query.min() < 0:
        unnamed = frame["query_id"][int(query.argmin())]
        raise origin.fault(
            f"a run's queries must include all of its table's, {unnamed!r} is missing"
        )
    return query


def _file_spec(path: Path, run_file: RunFile) -> dict[str, Any]:
    """Return the spec of a file's run, with how the file was read.

    The spec is that of the sidecar, the file ``<path>.json``, if there is one.
    """
    spec: dict[str, Any] = {"ranker": str(path), "name": run_file.tag or file_stem(path)}
    stored_spec = read_spec(path)
    if "ranker" in stored_spec:
        spec = {}
    spec = {**spec, **stored_spec, "file": str(path)}
    # The sidecar may describe another file, which its run was once read from.
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
            f"({_origin(repeat)}) has none of those of repeat 1 ({_origin(first)}); if they are "
            "different runs, give them different names"
        )


def _origin(run: Run) -> str:
    """Name the file of a run, or its ranker."""
    return str(run.spec.get("file", run.spec.get("ranker", run.name)))


def _specs_of_repeats(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the spec of a file's first repeat and those of the others, as a sidecar has them."""
    others = spec.pop(REPEATS, ())
    if not isinstance(others, list):
        return [spec]
    shared = {key: spec[key] for key in ("file", "read_as") if key in spec}
    return [spec, *({**repeat, **shared} for repeat in others if isinstance(repeat, Mapping))]


def _line_of_entry(file: Path, run_file: RunFile) -> Callable[[int], int] | None:
    """Return a function from an entry's number to its line; None if entries have no lines."""
    if len(run_file.lines):
        return run_file.lines.__getitem__
    if run_file.has_lines and file.is_file():
        return partial(nth_line, file, first=run_file.first_line)
    return None


def file_stem(path: str | Path) -> str:
    """Return a run file's name without its folder and the endings of runs."""
    if str(path) == STDIN:
        return "standard input"
    return _ENDING.sub("", Path(path).name) or str(path)


def replayed_name(run: Run) -> str:
    """Return the name of a file's run: its tag, or the file's stem if it has a sidecar."""
    file = str(run.spec["file"])
    return run.name if run.spec.get("ranker") == file else file_stem(file)


def require_runs(runs: Any, *, repeats: bool = False) -> list[Run]:
    """Return a run, or several, as a list; `UserError` for anything else.

    Runs with repeats are refused unless the caller reads `repeats`.
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
    """Rename runs of files that share a name.

    They get the names of their files without ending. If these are the same too, they get the texts
    of their rankers.
    """
    apart = _with_unshared_names(_run_list(runs), lambda spec: file_stem(spec["file"]))
    return _with_unshared_names(apart, itemgetter("ranker"))


def _with_unshared_names(runs: list[Run], name_of: Callable[[Mapping[str, Any]], str]) -> list[Run]:
    """Rename runs that share a name; `name_of` returns another name from a run's spec."""
    # A value that is no run is refused elsewhere.
    names = [run.name if isinstance(run, Run) else "" for run in runs]
    renamed = list(runs)
    for index, (run, name) in enumerate(zip(runs, names, strict=True)):
        if name and names.count(name) > 1 and {"name", "file"} <= run.spec.keys():
            renamed[index] = replace(run, spec={**run.spec, "name": name_of(run.spec)})
    return renamed


def _even_steps(scores: Float, inner: npt.NDArray[np.bool_]) -> bool:
    """Return whether scores fall by equal steps in every list.

    `inner` says for each entry whether the next two entries are in the same list.
    """
    steps = np.diff(scores)
    bends = np.abs(np.diff(steps))[inner]
    first_steps = steps[:-1][inner]
    return bool((first_steps < 0).all() and (bends <= _BEND * np.abs(first_steps)).all())


def _rises(scores: Float, offsets: Int64) -> bool:
    """Return whether a score is larger than the score before it in the same query."""
    is_larger = np.zeros(len(scores), dtype=bool)
    is_larger[1:] = scores[1:] > scores[:-1]
    # The first score of a query follows one of another query.
    is_larger[offsets[:-1][offsets[:-1] < len(scores)]] = False
    return bool(is_larger.any())


def codes(names: pl.Series, table: pl.Series) -> Int64:
    """Return the row of each name in a table of unique names; −1 for a name that is missing."""
    rows = pl.DataFrame({"name": table, "row": np.arange(len(table))})
    left = names.alias("name").to_frame()
    joined = left.join(rows, on="name", how="left", maintain_order="left")
    return joined["row"].fill_null(-1).to_numpy().astype(np.int64)


def collection_rows(run: Run, collection: Collection) -> Int64:
    """Return the row in the collection of each id of a run's table; −1 for an unknown document.

    `DataError` if an id is the bare id of documents of several sources: it could be any of them.
    """
    # A table that is shared with the collection needs no join.
    if run.ids is collection.ids:
        return np.arange(len(run.ids))
    rows = codes(run.ids, collection.ids)
    strange = run.ids.filter(pl.Series(rows < 0))
    if not len(strange):
        return rows
    bare = collection.bare_ids()
    shared = collection.docs.select("id", bare=bare).filter(
        (bare != collection.ids) & bare.is_duplicated()
    )
    vague = strange.filter(strange.is_in(shared["bare"].implode()))
    if len(vague):
        both = shared.filter(pl.col("bare") == vague[0])["id"].to_list()
        raise DataError(
            run.spec.get("file", run.name),
            f"several sources share document id {vague[0]!r}: {' and '.join(map(repr, both))}; "
            "the run must say which one it means",
        )
    return rows


def _warn(message: str) -> None:
    """Warn of a run's data, at the line of the caller's code."""
    warnings.warn(message, DataWarning, stacklevel=5)


def _warn_of_failures(path: Path, failed: Mapping[str, str], answered: int) -> None:
    """Warn of queries that an engine did not fully answer."""
    name, reason = next(iter(failed.items()))
    queries = counted(len(failed) + answered, "query", "queries")
    message = (
        f"{path}: {len(failed):,} of {queries} failed and are not in the run (first: {name!r}: "
        f"{reason})"
    )
    warnings.warn(message, DataWarning, stacklevel=4)


def _first_repeated(query: Int64, docs: Int64 | Int32) -> int | None:
    """Return the first entry whose query and document occurred before; None if there is none."""
    query = np.asarray(query, dtype=np.int64)
    if not _has_repeated(query, docs):
        return None
    keys = query * (int(docs.max(initial=0)) + 1) + docs
    order = np.argsort(keys, kind="stable")
    repeated = order[1:][np.diff(keys[order]) == 0]
    return int(repeated.min()) if len(repeated) else None


def _has_repeated(query: Int64, docs: Int64 | Int32) -> bool:
    """Tell whether a query may have a document twice.

    Queries are checked some at a time: short arrays of small numbers sort four times as fast.
    """
    if (np.diff(query) < 0).any():
        return True
    document_count = int(docs.max(initial=0)) + 1
    low = 0
    while low < len(docs):
        high = min(low + _ENTRIES_A_SORT, int(np.searchsorted(query, query[low] + _QUERIES_A_SORT)))
        if high < len(docs):  # all entries of the first query, and no part of another one
            high = int(np.searchsorted(query, query[high]))
            if high <= low:
                high = int(np.searchsorted(query, query[low], side="right"))
        keys = (query[low:high] - query[low]) * document_count + docs[low:high]
        if document_count * _QUERIES_A_SORT <= 1 << 32:
            keys = keys.astype(np.uint32)
        keys.sort()
        if (keys[1:] == keys[:-1]).any():
            return True
        low = high
    return False


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
