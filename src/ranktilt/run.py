"""The run: scored documents per query, saved in TREC format with a JSON sidecar."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt.collection import Collection
from ranktilt.errors import DataError, UserError
from ranktilt.io.files import nth_line, write_files
from ranktilt.io.ranked_lists import MTEB, RunFile, mteb_scores, result_columns
from ranktilt.io.runfile import read_run_file, read_spec, unwritable

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Float = npt.NDArray[np.float64]
_WITHOUT = "queries_without_documents"
_AT_ONCE = 500_000
"""Entries that are written at a time."""
_BEND = 0.05
"""How far, of a step, two steps may differ and still be taken for equal: 1/rank is written with few digits."""
_ENDING = re.compile(r"(\.(trec|run|res|json|txt|tsv))?(\.gz)?$", re.IGNORECASE)
_ESCAPED = "ids_percent_encoded"
_ESCAPES = {sign: f"%{ord(sign):02X}" for sign in "% \t\n\x0b\x0c\r"} | {"\ufeff": "%EF%BB%BF"}
"""Signs that would end a field of a TREC file, or be taken for the mark that begins one; and what stands for them."""


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """Scored documents per query and the spec that made them; immutable.

    Query ``i`` owns the entries ``offsets[i]:offsets[i + 1]`` of `docs` (rows of the id table `ids`, which is shared
    with the collection where one made the run) and of `scores` (higher is better; finite; falling within each query;
    never rounded). In `spec`, ``ranker`` holds the text that made the run; further keys say how. `UserError` if a
    score is NaN or infinite or rises, a query comes twice, or the arrays do not fit together.
    """

    queries: tuple[str, ...]
    offsets: Int64
    docs: Int32
    scores: Float
    ids: pl.Series
    spec: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "queries", tuple(self.queries))
        # Views, so that making them read-only leaves the caller's arrays as they are.
        object.__setattr__(self, "offsets", np.asarray(self.offsets, dtype=np.int64).view())
        object.__setattr__(self, "docs", np.asarray(self.docs, dtype=np.int32).view())
        object.__setattr__(self, "scores", np.asarray(self.scores, dtype=np.float64).view())
        if len(self.offsets) != len(self.queries) + 1 or self.offsets[-1] != len(self.docs):
            raise UserError("a run's offsets must have one entry more than queries and end at its length")
        if len(self.docs) != len(self.scores):
            raise UserError(f"a run needs one score a document, got {len(self.docs)} and {len(self.scores)}")
        if not np.isfinite(self.scores).all():
            raise UserError("a run's scores must be finite, got NaN or infinity")
        if len(set(self.queries)) < len(self.queries):
            raise UserError("a run must name each query once")
        if len(self.docs) and not (self.docs.min() >= 0 and self.docs.max() < len(self.ids)):
            raise UserError(f"a run's documents must be rows of its id table, which has {len(self.ids)}")
        if _rises(self.scores, self.offsets):
            raise UserError("a run's scores must fall within each query")
        for array in (self.offsets, self.docs, self.scores):
            array.setflags(write=False)

    @property
    def name(self) -> str:
        """The text that made the run; of a file its TREC tag, or else its stem."""
        return str(self.spec.get("name", self.spec.get("ranker", "run")))

    @property
    def scored(self) -> bool:
        """Whether its scores say more than an order: they are not read from ranks, nor ranks in another guise.

        Those of an order fall by equal steps in every list of three and more, or their inverses rise so (1/rank).
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
                "query_id": pl.Series(self.queries, dtype=pl.String).gather(self.entry_queries[part]),
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

        Where an id has a blank, which would end a field, blanks and ``%`` are percent-encoded in all ids of the file
        (``%20``, ``%25``), and the sidecar says so (``ids_percent_encoded``), from which `load` gives the ids back.
        """
        ranked = self.ids.gather(np.flatnonzero(np.bincount(self.docs)))
        escaped = False
        for noun, names in (("query", pl.Series(self.queries, dtype=pl.String)), ("document", ranked)):
            if (names == "").any():
                raise UserError(f"a {noun} id is empty, which the TREC format cannot hold")
            escaped = escaped or len(beyond_trec(names)) > 0
        line = pl.format("{} Q0 {} {} {} ranktilt\n", "query_id", "doc_id", "rank", pl.col("score").cast(pl.String))
        text = list[bytes]()
        for start in range(0, len(self.docs), _AT_ONCE):  # as text it needs ten times the memory
            part = self._entries(slice(start, start + _AT_ONCE))
            part = _with_ids(part, list(_ESCAPES), list(_ESCAPES.values())) if escaped else part
            text.append(part.select(line.alias("line"))["line"].str.join("").item().encode())
        # A line of the TREC format names a document, so a query for which none was found is named beside it.
        without = [query for query, n in zip(self.queries, np.diff(self.offsets), strict=True) if not n]
        told = {**self.spec, **({_WITHOUT: without} if without else {}), **({_ESCAPED: True} if escaped else {})}
        if fault := unwritable(told):
            raise UserError(f"run {self.name!r}: its spec: {fault}")
        spec = json.dumps(told, indent=1, default=str) + "\n"
        return {path: b"".join(text), sidecar(path): spec.encode()}

    @classmethod
    def load(cls, path: str | Path, *, score_order: str = "score", queries: Sequence[str] | None = None) -> Run:
        """Read a run: TREC lines of 6 fields, or 5 without the tag, JSON ``{query: {document: score}}``, or lists.

        Lists are responses to ``_msearch``, JSON ``{query: [document, …]}`` of ids or of records with scores, records
        that name their queries, CSV and TSV with a header; ``spec["read_as"]`` says what was understood. Without scores
        they are ordered by rank or place.

        Entries are sorted by falling score, whatever the file's order. Queries for which nothing was found are there if
        the spec names them, as `save` writes it.

        Parameters
        ----------
        path : str or Path
            The file, plain or gzip; its content tells the format. ``<path>.json`` beside it, if there, gives the spec.
        score_order : {"score", "rank"}, optional
            ``"rank"`` goes by the rank column of a TREC file, for engines whose scores do not say the order:
            scores become −rank, equal ranks are ties, and ``spec["score_order"]`` says so.
        queries : sequence of str, optional
            Ids of the queries of ``_msearch``, whose responses do not name them, in their order.

        Raises
        ------
        DataError
            Naming the line (TREC), or query and document (JSON): another number of fields than in the first
            line, a score that is no finite number, a document that comes twice for a query, another shape.
        """
        path = Path(path)
        found = read_run_file(path, score_order=score_order, queries=queries)
        spec: dict[str, Any] = {"ranker": str(path), "name": found.tag or file_stem(path)}
        beside = read_spec(sidecar(path))
        spec = {**({} if "ranker" in beside else spec), **beside, "file": str(path)}
        spec.pop("read_as", None)  # of the file that the sidecar's run was once read from
        spec |= {"read_as": found.read_as} if found.read_as else {}
        if found.score_order != "score":
            spec["score_order"] = found.score_order
        if spec.pop(_ESCAPED, False) is True:
            frame = _with_ids(found.frame, list(_ESCAPES.values()), list(_ESCAPES))
            found = replace(found, frame=frame, queries=frame["query_id"].unique(maintain_order=True))
        every = list(dict.fromkeys([*found.queries, *spec.pop(_WITHOUT, ())]))
        run = cls.from_frame(found.frame, queries=every, spec=spec)
        _refuse_duplicates(path, run, found)
        return run

    @classmethod
    def from_frame(
        cls, frame: pl.DataFrame, *, queries: Iterable[str] | None = None, spec: Mapping[str, Any] | None = None
    ) -> Run:
        """Make a run from a table.

        The frame has columns ``query_id``, ``doc_id`` and ``score``; `queries` names all queries of the run in order,
        each once, those without an entry too (by default those of the frame), and `spec` says how it was made.
        """
        given = frame["query_id"].unique(maintain_order=True) if queries is None else queries
        names = pl.Series("query_id", given, dtype=pl.String)
        ids = frame["doc_id"].unique(maintain_order=True)
        query = codes(frame["query_id"], names)
        if len(query) and query.min() < 0:
            raise UserError(
                f"a run's queries must name all of its table, got no {frame['query_id'][int(query.argmin())]!r}"
            )
        scores = frame["score"].cast(pl.Float64).to_numpy()
        if not np.isfinite(scores).all():
            raise UserError("a run's scores must be finite, got NaN or infinity")
        order = np.lexsort((-scores, query))
        offsets = np.concatenate([[0], np.cumsum(np.bincount(query, minlength=len(names)))])
        docs = codes(frame["doc_id"], ids)
        return cls(tuple(names), offsets, docs[order].astype(np.int32), scores[order], ids, spec or {})

    @classmethod
    def from_pandas(cls, frame: Any, *, name: str = "run") -> Run:
        """Make a run from a pandas frame of results, such as PyTerrier's.

        Columns are called as in files: ``qid`` or ``query_id``, ``docno`` or ``doc_id``, and ``score``.
        """
        named = {column: field for field, column in result_columns(frame.columns).items()}
        missing = next((field for field in ("query_id", "doc_id", "score") if field not in named.values()), None)
        if missing:
            raise UserError(f"expected a column for {missing}, got {', '.join(map(str, frame.columns))}")
        held = pl.from_pandas(frame[list(named)]).rename(named).cast({"query_id": pl.String, "doc_id": pl.String})
        return cls.from_frame(held, spec={"ranker": name})

    @classmethod
    def from_dict(cls, scores: Mapping[str, Mapping[str, float]], *, name: str = "run") -> Run:
        """Make a run from ``{query: {document: score}}``, as BEIR, pytrec_eval and ranx hold it."""
        rows = [(query, doc, float(score)) for query, found in scores.items() for doc, score in found.items()]
        schema = {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}
        return cls.from_frame(pl.DataFrame(rows, schema, orient="row"), queries=list(scores), spec={"ranker": name})

    @classmethod
    def from_ranx(cls, run: Any) -> Run:
        """Make a run from a ``ranx.Run``."""
        return cls.from_dict(run.to_dict(), name=run.name or "run")

    @classmethod
    def from_mteb(cls, predictions: Mapping[str, Any], *, subset: str = "", split: str = "") -> Run:
        """Make a run from the content of mteb's ``{task}_predictions.json``.

        A subset and a split may be named; by default they are the only ones, or the split ``test``.
        """
        scores = mteb_scores("predictions", predictions, subset, split)
        return cls.from_dict(scores, name=str(predictions.get(MTEB, {}).get("model_name") or "run"))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Run):
            return NotImplemented
        return self.frame().equals(other.frame())

    def __hash__(self) -> int:
        return hash((self.queries, len(self.docs)))

    def __repr__(self) -> str:
        return f"Run({self.name!r}: {len(self.queries)} queries, {len(self.docs)} entries)"


def file_stem(path: str | Path) -> str:
    """Name a run's file without its folder and the endings of runs."""
    return _ENDING.sub("", Path(path).name) or str(path)


def replayed_name(run: Run) -> str:
    """What a run that was read from a file is called: by its tag where nothing beside the file says what made it."""
    file = str(run.spec["file"])
    return run.name if run.spec.get("ranker") == file else file_stem(file)


def named_apart(runs: Iterable[Run]) -> list[Run]:
    """Call files' runs that share a name by their stems, and where these are one too by the texts that made them."""
    found = list(runs)
    for other in (lambda spec: file_stem(spec["file"]), lambda spec: spec["ranker"]):
        names = [run.name if isinstance(run, Run) else "" for run in found]  # what is no run is refused elsewhere
        for number, (run, name) in enumerate(zip(found, names, strict=True)):
            if name and names.count(name) > 1 and {"name", "file"} <= run.spec.keys():
                found[number] = replace(run, spec={**run.spec, "name": other(run.spec)})
    return found


def _even_steps(scores: Float, inner: npt.NDArray[np.bool_]) -> bool:
    """Whether scores fall by one step each within a list, wherever three of them stand in one."""
    steps = np.diff(scores)
    bends = np.abs(np.diff(steps))[inner]
    return bool((steps[:-1][inner] < 0).all() and (bends <= _BEND * np.abs(steps[:-1][inner])).all())


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


def sidecar(path: Path) -> Path:
    """Where a run's spec lies: ``<path>.json``."""
    return path.with_name(path.name + ".json")


def codes(names: pl.Series, table: pl.Series) -> Int64:
    """Row of each name in a table of unique names; -1 where it is not there."""
    right = pl.DataFrame({"name": table, "row": np.arange(len(table))})
    joined = names.alias("name").to_frame().join(right, on="name", how="left", maintain_order="left")
    return joined["row"].fill_null(-1).to_numpy().astype(np.int64)


def collection_rows(run: Run, collection: Collection) -> Int64:
    """Row in the collection of each id of a run's table, -1 where it is not there.

    A table that is shared with the collection needs no join. `DataError` if an id is the bare id of documents of
    several sources: it could be any of them.
    """
    if run.ids is collection.ids:
        return np.arange(len(run.ids))
    rows = codes(run.ids, collection.ids)
    strange = run.ids.filter(pl.Series(rows < 0))
    if not len(strange):
        return rows
    bare = collection.bare_ids()
    shared = collection.docs.select("id", bare=bare).filter((bare != collection.ids) & bare.is_duplicated())
    vague = strange.filter(strange.is_in(shared["bare"].implode()))
    if len(vague):
        both = shared.filter(pl.col("bare") == vague[0])["id"].to_list()
        raise DataError(
            run.spec.get("file", run.name),
            f"document id {vague[0]!r} is shared by several sources: "
            f"{' and '.join(map(repr, both))}; the run must say which one it means",
        )
    return rows


def _refuse_duplicates(path: Path, run: Run, found: RunFile) -> None:
    keys = np.sort(run.entry_queries * max(len(run.ids), 1) + run.docs)
    if (np.diff(keys) > 0).all():
        return
    repeated = found.frame.select(pl.struct("query_id", "doc_id").is_first_distinct().not_()).to_series()
    row = int(repeated.arg_max() or 0)
    query, doc = found.frame.select("query_id", "doc_id").row(row)
    line = nth_line(path, row) if found.has_lines and path.is_file() else None
    raise DataError(path, f"document {doc!r} occurs twice for query {query!r}", line=line)


def stage_facts(spec: Any, fact: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Return what a run's spec tells of each stage that says something of it, by the stage's text, the last first."""
    found = list[tuple[str, Mapping[str, Any]]]()
    while isinstance(spec, Mapping):
        said = spec.get(fact)
        if isinstance(said, Mapping):
            found.append((str(spec.get("name", spec.get("ranker", "run"))), said))
        spec = spec.get("candidates", ())
    return found
