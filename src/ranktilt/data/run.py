"""The run: scored documents per query, saved in TREC format with a JSON sidecar."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.data.collection import Collection
from ranktilt.data.files import STDIN, nth_line, require_path, rereadable, sidecar, write_files
from ranktilt.data.formats.base import RunFile
from ranktilt.data.formats.ids import (
    ids_of,
    kind_of,
    pandas_columns,
    ranks_of,
    require_frame,
    require_mapping,
    require_pandas,
    require_text,
    score_series,
    scores_of,
)
from ranktilt.data.formats.notation import RUN_NOUNS, RUN_OPTIONS, NamedFile
from ranktilt.data.formats.result_columns import result_columns
from ranktilt.data.formats.runfile import read_run_file, read_spec, unwritable, warn_of_ranks
from ranktilt.data.formats.score_map import MTEB, mteb_scores
from ranktilt.data.formats.score_order import (
    IN_GIVEN_ORDER,
    SCORE_ORDERS,
    directions,
    given_ranks,
    order_fault,
)
from ranktilt.data.formats.search_responses import MAX_FAILURES
from ranktilt.errors import DataError, DataWarning, UserError, counted, shorten, unknown

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Float = npt.NDArray[np.float64]
RUN_SHAPE = "{query: {document: score}}"
_WITHOUT = "queries_without_documents"
_AT_ONCE = 500_000
"""Entries that are written at a time."""
_BEND = 0.05
"""How far, of a step, two steps may differ and still be taken for equal: 1/rank is written with few digits."""
_ENDING = re.compile(
    r"(\.(trec|run|res|json|jsonl|txt|tsv|csv|parquet))?(\.(gz|bz2|xz|zst|zip))?$", re.IGNORECASE
)
_ESCAPED = "ids_percent_encoded"
_ESCAPES = {sign: f"%{ord(sign):02X}" for sign in "% \t\n\x0b\x0c\r"} | {"\ufeff": "%EF%BB%BF"}
"""Signs that would end a field of a TREC file, or be taken for the mark that begins one; and what stands for them."""


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """Scored documents per query and the spec that made them; immutable.

    Query ``i`` owns the entries ``offsets[i]:offsets[i + 1]`` of `docs` (rows of the id table
    `ids`, which is shared with the collection where one made the run) and of `scores` (higher is
    better; finite; falling within each query; never rounded). In `spec`, ``ranker`` holds the text
    that made the run; further keys say how. `UserError` if a score is NaN or infinite or rises, a
    query comes twice, a document comes twice for a query, or the arrays do not fit together.
    """

    queries: tuple[str, ...]
    offsets: Int64
    docs: Int32
    scores: Float
    ids: pl.Series
    spec: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
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
                f"a run needs one score a document, got {len(self.docs)} and {len(self.scores)}"
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
        if (repeated := _first_repeated(self.entry_queries, self.docs)) is not None:
            doc, query = (
                self.ids[int(self.docs[repeated])],
                self.queries[self.entry_queries[repeated]],
            )
            raise UserError(f"document {doc!r} occurs twice for query {query!r}")
        for array in (self.offsets, self.docs, self.scores):
            array.setflags(write=False)

    @property
    def name(self) -> str:
        """What its user calls the run, or else the text that made it; of a file its tag or stem."""
        for key in ("alias", "name", "ranker"):
            if key in self.spec:
                return str(self.spec[key])
        return "run"

    @property
    def scored(self) -> bool:
        """Whether its scores say more than an order: they are not read from ranks, nor ranks in another guise.

        Those of an order fall by equal steps in every list of three and more, or their inverses
        rise so (1/rank).
        """
        if self.spec.get("score_order") == "rank":
            return False
        inner = self.entry_queries[2:] == self.entry_queries[:-2]
        with np.errstate(divide="ignore", invalid="ignore"):
            found = [_even_steps(scale, inner) for scale in (self.scores, -1 / self.scores)]
        return not (inner.any() and any(found))

    @property
    def entry_queries(self) -> Int64:
        """Query number of each entry."""
        return np.repeat(np.arange(len(self.queries)), np.diff(self.offsets))

    @property
    def truncated(self) -> list[tuple[str, Mapping[str, Any]]]:
        """What stages did not read to its end, the last first: the stage, ``limit`` in tokens, ``share`` by source."""
        return stage_facts(self.spec, "truncated")

    @property
    def llm_answers(self) -> list[tuple[str, Mapping[str, Any]]]:
        """What language models answered to stages, the last first: the stage, and how many answers of each kind."""
        return stage_facts(self.spec, "llm_answers")

    def frame(self) -> pl.DataFrame:
        """Return the run as a table: ``query_id``, ``doc_id``, ``rank`` (from 1), ``score``."""
        return self._entries(slice(None))

    def _entries(self, part: slice) -> pl.DataFrame:
        ranks = np.arange(len(self.docs)) - np.repeat(self.offsets[:-1], np.diff(self.offsets)) + 1
        return pl.DataFrame(
            {
                "query_id": pl.Series(self.queries, dtype=pl.String).gather(
                    self.entry_queries[part]
                ),
                "doc_id": self.ids.gather(self.docs[part]),
                "rank": ranks[part],
                "score": self.scores[part],
            }
        )

    def save(self, path: str | Path) -> Path:
        """Write the run in TREC format (compressed where `path` ends in ``.gz``), and ``<path>.json`` with its spec."""
        write_files(self.contents(Path(path)))
        return Path(path)

    def contents(self, path: Path) -> dict[Path, bytes]:
        """Return what `save` writes: the bytes of the run's file, not compressed, and of its sidecar.

        Where an id has a blank, which would end a field, blanks and ``%`` are percent-encoded in
        all ids of the file (``%20``, ``%25``), and the sidecar says so (``ids_percent_encoded``),
        from which `load` gives the ids back.
        """
        ranked = self.ids.gather(np.flatnonzero(np.bincount(self.docs)))
        escaped = False
        for noun, names in (
            ("query", pl.Series(self.queries, dtype=pl.String)),
            ("document", ranked),
        ):
            if (names == "").any():
                raise UserError(f"a {noun} id is empty, which the TREC format cannot hold")
            escaped = escaped or len(beyond_trec(names)) > 0
        line = pl.format(
            "{} Q0 {} {} {} ranktilt\n",
            "query_id",
            "doc_id",
            "rank",
            pl.col("score").cast(pl.String),
        )
        text = list[bytes]()
        for start in range(0, len(self.docs), _AT_ONCE):  # as text it needs ten times the memory
            part = self._entries(slice(start, start + _AT_ONCE))
            part = _with_ids(part, list(_ESCAPES), list(_ESCAPES.values())) if escaped else part
            text.append(part.select(line.alias("line"))["line"].str.join("").item().encode())
        # A line of the TREC format names a document, so a query for which none was found is named
        # beside it.
        without = [
            query for query, n in zip(self.queries, np.diff(self.offsets), strict=True) if not n
        ]
        told = {
            **self.spec,
            **({_WITHOUT: without} if without else {}),
            **({_ESCAPED: True} if escaped else {}),
        }
        if fault := unwritable(told):
            raise UserError(f"run {self.name!r}: its spec: {fault}")
        spec = json.dumps(told, indent=1, default=str) + "\n"
        return {path: b"".join(text), sidecar(path): spec.encode()}

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        score_order: str | None = None,
        queries: Sequence[str] | Mapping[str, str] | None = None,
        max_failures: float = MAX_FAILURES,
    ) -> Run:
        """Read a run from a file, whose content tells its layout, or from a folder of responses.

        TREC lines, MS MARCO's three columns, CSV and TSV with a header, JSON and JSON lines of
        scores, lists, records and responses of engines, Parquet; plain or packed. ``spec["read_as"]``
        says what was understood of a file that is neither TREC's nor ``{query: {document: score}}``.
        Without scores documents are ordered by rank or place.

        Entries are sorted by falling score, whatever the file's order. Queries for which nothing
        was found are there if the spec names them, as `save` writes it.

        Parameters
        ----------
        path : str or Path
            The file; ``-`` is standard input. ``FILE:query=qid,id=url,score=bm25`` names its columns,
            nested keys by dots; ``hits=KEY`` the key of its lists, and ``keep=first`` keeps the first
            of a document that comes twice for a query. ``<path>.json`` beside it, if there, gives the
            spec.
        score_order : {"score", "ascending", "rank"}, optional
            ``"score"``: larger is better. ``"ascending"``: smaller is better, as with distances;
            scores become −score. ``"rank"``: the order of the file counts, which is its rank column
            where that orders a list; scores become −rank, and equal ranks are ties. By default
            larger is better, and scores that rise along the order of the file are refused.
            ``spec["score_order"]`` names the two others. Scores of minus infinity are an order, too.
        queries : sequence of str, or mapping of id to text, optional
            Ids of the queries of responses that do not name them, in their order. With texts,
            responses that repeat the text of their query have its id.
        max_failures : float, optional
            Share of the responses of an engine that may be errors or partial. They are left out of
            the run, listed in ``spec["failed"]`` and warned of.

        Raises
        ------
        DataError
            Naming file and line: what the file is instead of a run, another number of fields than in
            the first line, a score that is no finite number, a document that comes twice for a query.
            Naming the file: scores that rise along its order, more failures than allowed.
        """
        named = NamedFile.from_text(require_path(path), RUN_NOUNS, RUN_OPTIONS)
        path = named.path
        if score_order is not None and score_order not in SCORE_ORDERS:
            raise unknown("score order", score_order, SCORE_ORDERS)
        with rereadable(path) as file:
            run_file = read_run_file(
                file,
                columns=named.columns,
                score_order=score_order,
                queries=queries,
                max_failures=max_failures,
            )
            return cls._from_file(path, file, run_file, keep=named.options.get("keep"))

    @classmethod
    def _from_file(cls, path: Path, file: Path, run_file: RunFile, *, keep: str | None) -> Run:
        """Make a run of what was read; `file` holds it, and `path` is what its user calls it."""
        spec = _file_spec(path, run_file)
        if spec.pop(_ESCAPED, False) is True:
            frame = _with_ids(run_file.frame, list(_ESCAPES.values()), list(_ESCAPES))
            run_file = replace(
                run_file, frame=frame, queries=frame["query_id"].unique(maintain_order=True)
            )
        if run_file.skipped:
            entries = counted(run_file.skipped, "entry", "entries")
            _warn(f"{path}: {entries} without a query or a document id left out")
        frame = run_file.frame
        if keep is not None:
            frame, dropped = _without_repetitions(frame)
            spec |= {"repeated_documents_dropped": dropped} if dropped else {}
            run_file = replace(run_file, lines=(), has_lines=False) if dropped else run_file
        every = list(dict.fromkeys([*run_file.queries, *spec.pop(_WITHOUT, ())]))
        order = run_file.score_order
        run = cls._from_entries(
            frame,
            every,
            spec,
            score_order=order,
            path=file,
            line_of=_line_of_entry(file, run_file),
        )
        if run_file.failed:
            _warn_of_failures(path, run_file.failed, len(run_file.queries))
        if order is None:
            warn_of_ranks(path, frame)
        return run

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

        The frame has columns ``query_id``, ``doc_id`` and ``score``, and may have ``rank``;
        `queries` names all queries of the run in order, each once, those without an entry too (by
        default those of the frame), and `spec` says how it was made. `score_order` is that of
        `load`: by default larger is better, and scores that rise along the order of the frame are
        refused.
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
        path: Path | None = None,
        line_of: Callable[[int], int] | None = None,
    ) -> Run:
        """Make a run of entries in the order given, as files and objects have them: every door passes here.

        `path` is the file that holds them, and `line_of` tells the line of an entry.
        """
        if score_order is not None and score_order not in SCORE_ORDERS:
            raise unknown("score order", score_order, SCORE_ORDERS)

        def fault(message: str, entry: int | None = None) -> UserError:
            if path is None:
                return UserError(f"run {spec.get('ranker', 'run')!r}: {message}")
            return DataError(
                path, message, line=None if entry is None or line_of is None else line_of(entry)
            )

        try:
            frame = _entry_columns(frame, is_scored=score_order != "rank")
            given = (
                frame["query_id"].unique(maintain_order=True)
                if queries is None
                else ids_of(queries, "queries")
            )
        except UserError as error:
            raise fault(str(error)) from error
        names = given.alias("query_id")
        if (repeated_name := names.is_first_distinct().not_().arg_max()) and names.n_unique() < len(
            names
        ):
            raise fault(f"query {names[repeated_name]!r} comes twice")
        ids = frame["doc_id"].unique(maintain_order=True)
        query = codes(frame["query_id"], names)
        if len(query) and query.min() < 0:
            raise fault(
                f"its queries must name all of its table, got no {frame['query_id'][int(query.argmin())]!r}"
            )
        docs = codes(frame["doc_id"], ids)
        if (repeated := _first_repeated(query, docs)) is not None:
            doc, name = frame["doc_id"][repeated], frame["query_id"][repeated]
            hint = "" if path is None else "; FILE:keep=first keeps the first"
            raise fault(f"document {doc!r} occurs twice for query {name!r}{hint}", repeated)
        column = frame["rank"].to_numpy() if "rank" in frame.columns else None
        ranks = given_ranks(query, column)
        scores = -ranks.astype(np.float64) if score_order == "rank" else scores_of(frame["score"])
        direction = -1 if score_order == "ascending" else 1
        if (direction * scores == -np.inf).any() and not np.isnan(scores).any():
            scores = direction * _order_of_scores(query, direction * scores)
            spec = {**spec, "score_order": "rank"}
        if not (finite := np.isfinite(scores)).all():
            wrong = int(finite.argmin())
            doc, name, score = (
                frame["doc_id"][wrong],
                frame["query_id"][wrong],
                shorten(frame["score"][wrong]),
            )
            message = (
                f"query {name!r}, document {doc!r}: expected a finite number as score, got {score}"
            )
            raise fault(f"{message}; {IN_GIVEN_ORDER}", wrong)
        if score_order in (None, "ascending") and (
            message := order_fault(directions(query, ranks, scores), score_order)
        ):
            raise fault(message)
        scores = -scores if score_order == "ascending" else scores
        order = np.lexsort((-scores, query))
        offsets = np.concatenate([[0], np.cumsum(np.bincount(query, minlength=len(names)))])
        if score_order in ("ascending", "rank") and spec.get("score_order") != "rank":
            spec = {**spec, "score_order": score_order}
        return cls(tuple(names), offsets, docs[order].astype(np.int32), scores[order], ids, spec)

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
        table = pandas_columns(
            frame, {names.index(column): field for field, column in columns.items()}
        )
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

        `score_order` is that of `load`; the order given is that of the documents in the mapping.
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

        A subset and a split may be named; by default they are the only ones, or the split ``test``.
        `score_order` is that of `load`; without it larger scores are better, for mteb's dictionaries
        are in no order.
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


def _file_spec(path: Path, run_file: RunFile) -> dict[str, Any]:
    """Return what made a file's run: as the sidecar says, or the file itself; and how the file was read."""
    spec: dict[str, Any] = {"ranker": str(path), "name": run_file.tag or file_stem(path)}
    beside = read_spec(path)
    spec = {**({} if "ranker" in beside else spec), **beside, "file": str(path)}
    spec.pop("read_as", None)  # of the file that the sidecar's run was once read from
    facts = {
        "read_as": run_file.read_as,
        "failed": dict(run_file.failed),
        "skipped": run_file.skipped,
    }
    return {**spec, **{key: value for key, value in facts.items() if value}}


def _line_of_entry(file: Path, run_file: RunFile) -> Callable[[int], int] | None:
    """Return what tells the line of an entry; None where entries have none."""
    if len(run_file.lines):
        return run_file.lines.__getitem__
    if run_file.has_lines and file.is_file():
        return partial(nth_line, file, first=run_file.first_line)
    return None


def file_stem(path: str | Path) -> str:
    """Name a run's file without its folder and the endings of runs."""
    if str(path) == STDIN:
        return "standard input"
    return _ENDING.sub("", Path(path).name) or str(path)


def replayed_name(run: Run) -> str:
    """What a run that was read from a file is called: by its tag where nothing beside the file says what made it."""
    file = str(run.spec["file"])
    return run.name if run.spec.get("ranker") == file else file_stem(file)


def require_runs(runs: Any) -> list[Run]:
    """Return one run or several as a list; `UserError` for what is none."""
    found = [runs] if isinstance(runs, Run) else _run_list(runs)
    wrong = next((run for run in found if not isinstance(run, Run)), None)
    if wrong is not None or None in found:
        raise UserError(
            f"expected runs, such as Run.load(FILE), got {kind_of(wrong)}: {shorten(wrong)}"
        )
    return found


def _run_list(runs: Any) -> list[Any]:
    if not isinstance(runs, Iterable):
        raise UserError(
            f"expected runs, such as [Run.load(FILE)], got {kind_of(runs)}: {shorten(runs)}"
        )
    return list(runs)


def named_apart(runs: Iterable[Run]) -> list[Run]:
    """Call files' runs that share a name by their stems, and where these are one too by the texts that made them."""
    found = _run_list(runs)
    for other in (lambda spec: file_stem(spec["file"]), lambda spec: spec["ranker"]):
        names = [
            run.name if isinstance(run, Run) else "" for run in found
        ]  # what is no run is refused elsewhere
        for number, (run, name) in enumerate(zip(found, names, strict=True)):
            if name and names.count(name) > 1 and {"name", "file"} <= run.spec.keys():
                found[number] = replace(run, spec={**run.spec, "name": other(run.spec)})
    return found


def _entry_columns(frame: pl.DataFrame, *, is_scored: bool) -> pl.DataFrame:
    """Return the columns of a run's table: ids as strings, and ranks, where there are any, as numbers."""
    needed = ("query_id", "doc_id", *(("score",) if is_scored else ()))
    frame = require_frame(frame, needed, "table").with_columns(
        ids_of(frame[name], f"column {name!r}").alias(name) for name in ("query_id", "doc_id")
    )
    if "rank" not in frame.columns:
        return frame
    return frame.with_columns(rank=ranks_of(frame["rank"], "table"))


def _even_steps(scores: Float, inner: npt.NDArray[np.bool_]) -> bool:
    """Whether scores fall by one step each within a list, wherever three of them stand in one."""
    steps = np.diff(scores)
    bends = np.abs(np.diff(steps))[inner]
    return bool(
        (steps[:-1][inner] < 0).all() and (bends <= _BEND * np.abs(steps[:-1][inner])).all()
    )


def _rises(scores: Float, offsets: Int64) -> bool:
    """Whether a score is above the one before it in the same query."""
    up = np.zeros(len(scores), dtype=bool)
    up[1:] = scores[1:] > scores[:-1]
    up[offsets[:-1][offsets[:-1] < len(scores)]] = False
    return bool(up.any())


def beyond_trec(names: pl.Series) -> pl.Series:
    """Return the ids that a TREC file cannot hold as they are: those with a blank, or with a byte-order mark."""
    return names.filter(names.str.contains(r"[ \t\n\x0b\x0c\r\x{feff}]"))


def _with_ids(frame: pl.DataFrame, signs: list[str], others: list[str]) -> pl.DataFrame:
    return frame.with_columns(pl.col("query_id", "doc_id").str.replace_many(signs, others))


def codes(names: pl.Series, table: pl.Series) -> Int64:
    """Row of each name in a table of unique names; -1 where it is not there."""
    right = pl.DataFrame({"name": table, "row": np.arange(len(table))})
    joined = (
        names.alias("name").to_frame().join(right, on="name", how="left", maintain_order="left")
    )
    return joined["row"].fill_null(-1).to_numpy().astype(np.int64)


def collection_rows(run: Run, collection: Collection) -> Int64:
    """Row in the collection of each id of a run's table, -1 where it is not there.

    A table that is shared with the collection needs no join. `DataError` if an id is the bare id of
    documents of several sources: it could be any of them.
    """
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
            f"document id {vague[0]!r} is shared by several sources: "
            f"{' and '.join(map(repr, both))}; the run must say which one it means",
        )
    return rows


def _order_of_scores(query: Int64, scores: Float) -> Float:
    """Return scores that order as these do where some are minus infinity: −1, −2, … in each query, ties equal."""
    if (scores == np.inf).any():
        return scores
    frame = pl.DataFrame({"query": query, "score": scores})
    place = pl.col("score").rank("dense", descending=True).over("query")
    return -frame.select(place)["score"].to_numpy().astype(np.float64)


def _without_repetitions(frame: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Keep the first entry of each query and document; returns how many others there were."""
    kept = frame.unique(["query_id", "doc_id"], keep="first", maintain_order=True)
    return kept, frame.height - kept.height


def _warn(message: str) -> None:
    warnings.warn(message, DataWarning, stacklevel=5)


def _warn_of_failures(path: Path, failed: Mapping[str, str], answered: int) -> None:
    """Warn that an engine did not answer some queries in full."""
    name, reason = next(iter(failed.items()))
    queries = counted(len(failed) + answered, "query", "queries")
    message = (
        f"{path}: {len(failed):,} of {queries} failed, not in the run (first: {name!r}: {reason})"
    )
    warnings.warn(message, DataWarning, stacklevel=4)


def _first_repeated(query: Int64, docs: Int64 | Int32) -> int | None:
    """Find the first entry whose query and document came before; None where all are distinct."""
    keys = np.asarray(query, dtype=np.int64) * (int(docs.max(initial=0)) + 1) + docs
    if (np.diff(np.sort(keys)) > 0).all():
        return None
    order = np.argsort(keys, kind="stable")
    return int(order[1:][np.diff(keys[order]) == 0].min())


def stage_facts(spec: Any, fact: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Return what a run's spec tells of each stage that says something of it, by the stage's text, the last first."""
    found = list[tuple[str, Mapping[str, Any]]]()
    while isinstance(spec, Mapping):
        said = spec.get(fact)
        if isinstance(said, Mapping):
            found.append((str(spec.get("name", spec.get("ranker", "run"))), said))
        spec = spec.get("candidates", ())
    return found
