"""What every ranker is: one verb, and a text that makes it again."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, ClassVar, Self, get_type_hints

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt._version import __version__
from ranktilt.data.collection import TEXT_CHOICES, Collection
from ranktilt.data.run import Run
from ranktilt.errors import UserError, unknown
from ranktilt.models.device import BACKENDS
from ranktilt.models.encoder import Encoder
from ranktilt.progress import report
from ranktilt.rankers.candidates import Candidates, check_reranked, reranked_spec, same_entries
from ranktilt.rankers.self_exclusion import exclusion_spec, self_documents
from ranktilt.spec import Stage, read_value

Rows = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]

DEPTH = 1000
QUERY = "{query}"
_SLOT = re.compile(r"\{(\w*)\}")
_EXAMPLE = 'query_template="{attribute} {query}",attribute=female'
_STRIDE, _MARGIN = 16, 16


class Ranker(ABC):
    """Anything that ranks: ``rank(collection, run=None) -> Run``.

    Subclasses are frozen dataclasses: their fields are the options one can type, ``repr`` is the
    text one would type, and `ranktilt.ranker` reads that text back to an equal object.
    """

    name: ClassVar[str]
    argument: ClassVar[str | None] = None
    """Field that takes what stands behind the colon."""
    reranks: ClassVar[bool] = True
    """Whether it can rank the candidates of a run."""
    scores_given: ClassVar[bool] = True
    """Whether, where it re-ranks, a document's score depends on it and the query alone, and asking for it is cheap."""

    def __init_subclass__(cls) -> None:
        # A dataclass would print itself in its own way, and what is printed must be what one types.
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = Ranker.__repr__  # type: ignore[method-assign]

    @abstractmethod
    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        """Rank the collection's documents for each judged query; a re-ranker those of `run`, its candidates.

        Every judged query is in the run, with as many documents as were found (of a saved run:
        those that its file holds).
        """

    def check(self) -> None:  # noqa: B027 - most rankers have nothing to find out
        """Find out, before stages ahead of it take their time, whether it can rank; `UserError` says why not."""

    @classmethod
    def from_stage(cls, stage: Stage) -> Self:
        """Make the ranker that a stage's text describes; unknown options and wrong values are refused."""
        untyped = ("k", cls.argument)
        options = {f.name: f for f in fields(cls) if f.repr and f.name not in untyped}  # type: ignore[arg-type]
        hints = get_type_hints(cls)
        given: dict[str, Any] = {}
        for name, value in stage.options.items():
            if name not in options:
                raise unknown(f"option of {cls.name}", name, list(options))
            given[name] = read_value(value, hints[name], f"option {name!r} of {cls.name}")
        if stage.argument is not None and cls.argument is None:
            raise UserError(f"{cls.name} takes no argument, got {stage.argument!r}")
        if cls.argument is not None:
            if not stage.argument:
                raise UserError(f"{cls.name} needs an argument: {cls.name}:{cls.argument.upper()}")
            given[cls.argument] = stage.argument
        if stage.k is not None:
            given["k"] = stage.k
        return cls(**given)

    def stage(self) -> Stage:
        """Return the text of this ranker in parts: options that have their defaults are left out."""
        options, argument, k = {}, None, None
        for item in fields(self):  # type: ignore[arg-type]
            if not item.repr:  # an object that no text holds, such as a fit in memory
                continue
            value = getattr(self, item.name)
            if item.name == self.argument:
                argument = str(value)
            elif value != (None if item.default is MISSING else item.default):
                if item.name == "k":
                    k = int(value)
                else:
                    options[item.name] = (
                        str(value).lower() if isinstance(value, bool) else str(value)
                    )
        return Stage(self.name, argument, options, k)

    def __repr__(self) -> str:
        return str(self.stage())

    def __rshift__(self, other: Ranker) -> Pipeline:
        return Pipeline((*stages_of(self), *stages_of(other)))


@dataclass(frozen=True, kw_only=True)
class TemplatedQueries(Ranker):
    """A ranker whose queries can be asked about a group, as ``query_template="{attribute} {query}",attribute=female``.

    Wang et al., NAACL 2024, ask rankers that have no prompt in this way. Judgments stay those of
    the query.
    """

    query_template: str = QUERY
    attribute: str | None = None

    def require_template(self) -> None:
        """Refuse a template without a place for the query, and an attribute that the template has no place for."""
        slots = set(_SLOT.findall(self.query_template))
        if "query" not in slots or slots - {"query", "attribute"}:
            expected = (
                f"expected {QUERY}, and {{attribute}} beside it or not, got {self.query_template!r}"
            )
            raise UserError(f"{self.name}: query_template: {expected}")
        if ("attribute" in slots) != bool((self.attribute or "").strip()):
            raise UserError(
                f"{self.name}: attribute goes with the slot {{attribute}}, such as {_EXAMPLE}"
            )

    def read_queries(self, texts: pl.Series) -> pl.Series:
        """Return what is read in place of these queries."""
        if self.query_template == QUERY:
            return texts

        def filled(text: str) -> str:
            words = {"query": text, "attribute": self.attribute or ""}
            return _SLOT.sub(lambda slot: words[slot[1]], self.query_template)

        return pl.Series(texts.name, map(filled, texts), dtype=pl.String)

    def template_spec(self, texts: pl.Series) -> dict[str, Any]:
        """Return what the run's spec says of the queries that were read, given those of the collection."""
        if self.query_template == QUERY:
            return {}
        example = (
            {"query": texts[0], "read_as": self.read_queries(texts.head(1))[0]}
            if len(texts)
            else {}
        )
        return {
            "queries_read": {
                "template": self.query_template,
                "attribute": self.attribute,
                **example,
            }
        }


@dataclass(frozen=True)
class Pipeline(Ranker):
    """Rankers one after the other (at least two), each on the run of the one before.

    ``@k`` cuts what its own stage gives; a re-ranker gives back exactly its candidates.
    """

    stages: tuple[Ranker, ...]
    name: ClassVar[str] = "pipeline"

    def check(self) -> None:
        for stage in self.stages:
            stage.check()

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        self.check()
        for stage in self.stages:
            run = check_reranked(stage.rank(collection, run), run, stage)
        if run is None:
            raise UserError("a pipeline needs at least one stage")
        return replace(run, spec={**run.spec, "ranker": repr(self)})

    def __repr__(self) -> str:
        return ">>".join(map(repr, self.stages))


def stages_of(ranker: Ranker) -> tuple[Ranker, ...]:
    """Return the stages of a pipeline; of any other ranker itself."""
    return ranker.stages if isinstance(ranker, Pipeline) else (ranker,)


def score_documents(ranker: Ranker, collection: Collection, given: Run) -> Run | None:
    """Score a run's documents, all of them, by a ranker's last stage; None where it scores only what it retrieves."""
    last = stages_of(ranker)[-1]
    if not (last.reranks and last.scores_given):
        return None
    if hasattr(last, "k"):
        last = replace(last, k=int(np.diff(given.offsets).max(initial=1)))  # type: ignore[type-var]
    found = last.rank(collection, given)
    if not (isinstance(found, Run) and same_entries(found, given) and found.scored):
        return None
    return replace(found, spec={**found.spec, "ranker": repr(ranker)})


def entries(run: Run, numbers: Iterable[int]) -> Iterator[tuple[Rows, Scores]]:
    """Yield documents and scores of some of a run's queries, given by number."""
    for number in numbers:
        part = slice(run.offsets[number], run.offsets[number + 1])
        yield run.docs[part].astype(np.int64), run.scores[part]


@dataclass(frozen=True, kw_only=True)
class FirstStage(Ranker):
    """A ranker that searches the whole collection, `k` documents deep.

    Documents tied at the cut are chosen by a hash that knows neither source nor id, and versions of
    one text stay together, so a query may get a few more. `exclude_self` drops a query's own
    document, and all its versions, where queries are documents; by default where ids and words of
    queries and documents coincide (see `self_documents`).
    """

    reranks: ClassVar[bool] = False

    k: int = DEPTH
    text: str = "title+text"
    exclude_self: bool | None = None

    def __post_init__(self) -> None:
        require_depth(self.name, self.depth)
        require_choices(self, text=TEXT_CHOICES)

    @property
    def depth(self) -> int:
        """How deep it searches: ``k``, or the usual depth where a stage that can also re-rank leaves it open."""
        return DEPTH if self.k is None else self.k

    def about(self, collection: Collection) -> dict[str, Any]:
        """Return what the run's spec should say of how the ranker reads this collection."""
        return {}

    def provenance(self) -> dict[str, Any]:
        """Return what else the run's spec should say of how it was made."""
        return {}

    @abstractmethod
    def candidates(self, collection: Collection, slack: int) -> Iterator[tuple[Rows, Scores]]:
        """Yield, per judged query, document rows and scores: at least the best ``k + slack`` and all tied."""

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        if run is not None:
            raise UserError(
                f"{self!r} searches the whole collection and cannot re-rank; put it first"
            )
        excluded, queries = (
            self_documents(collection, self.exclude_self),
            collection.queries_with_judgments["id"].to_list(),
        )
        found = exclude(
            self.candidates(collection, max(map(len, excluded.values()), default=0)), excluded
        )
        parts = cut(
            _reported(found, f"{self!r}: ranking", len(queries)), collection.tie_keys(), self.depth
        )
        spec = {
            "ranker": repr(self),
            "ranktilt": __version__,
            "collection": collection.spec.get("path"),
        }
        spec |= {**self.provenance(), **exclusion_spec(excluded)}
        return Run(tuple(queries), *parts, collection.ids, {**spec, **self.about(collection)})


def require_depth(name: str, k: int | None) -> None:
    """Refuse a depth below 1."""
    if k is not None and k < 1:
        raise UserError(f"{name}: expected a depth of at least 1, got @{k}")


def require_choices(ranker: Ranker, **choices: Iterable[str]) -> None:
    """Refuse a value of an option that is none of its choices."""
    for option, valid in choices.items():
        if getattr(ranker, option) not in valid:
            raise unknown(f"{option} of {ranker.name}", getattr(ranker, option), valid)


def require_backend(ranker: Any) -> None:
    """Refuse a backend that sentence-transformers does not have, and a precision that is torch's matter beside it."""
    require_choices(ranker, backend=BACKENDS)
    if ranker.backend != BACKENDS[0] and ranker.precision != "float32":
        raise UserError(
            f"{ranker.name}: precision={ranker.precision} is for backend=torch; got {ranker.backend}"
        )


def readable_texts(ranker: Ranker, collection: Collection) -> pl.Series:
    """Return what a ranker that reads texts reads of each document; refuses documents or queries without any."""
    choice = getattr(ranker, "text", "title+text")
    texts = collection.texts(choice)
    if collection.docs.height and not (texts != "").any():
        raise UserError(
            f"{ranker!r} reads texts; no document here has a {'title' if choice == 'title' else 'text'}"
        )
    if collection.queries.height and not (collection.queries["text"] != "").any():
        raise UserError(f"{ranker!r} reads texts; no query here has one")
    return texts


def require_range(ranker: Any, *options: str, least: float, most: float = math.inf) -> None:
    """Refuse numbers of some options that are out of a range; None leaves one to its default."""
    for option in options:
        value = getattr(ranker, option)
        if value is not None and not (least <= value <= most and value < math.inf):
            wanted = f"at least {least:g}" if most == math.inf else f"{least:g} to {most:.16g}"
            raise UserError(f"{ranker.name}: expected {option} of {wanted}, got {value:g}")


def installed_versions(*packages: str) -> dict[str, str]:
    """Versions of the packages that are installed, for a run's spec."""
    return {name: version(name) for name in packages if find_spec(name.replace("-", "_"))}


def encoder_provenance(model: Encoder) -> dict[str, Any]:
    """Return a model's hash, the precision it computes in, and the versions of what computes, for a run's spec."""
    return {
        "model": {"folder": str(model.folder), "fingerprint": model.fingerprint},
        "precision": model.precision,
        "packages": installed_versions("torch", "transformers", "sentence-transformers"),
    }


def exclude(
    found: Iterable[tuple[Rows, Scores]], excluded: Mapping[int, Rows], table: Rows | None = None
) -> Iterator[tuple[Rows, Scores]]:
    """Leave out each query's own documents, given by the query's number; `table` turns what is found into rows."""
    for query, (docs, scores) in enumerate(found):
        if query in excluded:
            keep = ~np.isin(docs if table is None else table[docs], excluded[query])
            docs, scores = docs[keep], scores[keep]
        yield docs, scores


def reranked_run(
    ranker: Ranker,
    collection: Collection,
    found: Candidates,
    scores: Scores,
    spec: Mapping[str, Any],
) -> Run:
    """Make the run of candidates' new scores, one an entry, cut at the ranker's depth; `spec` says more of how."""
    parts = cut(found.by_query(scores), collection.tie_keys(), getattr(ranker, "k", None))
    return Run(
        tuple(found.names), *parts, collection.ids, {**reranked_spec(found.run, ranker), **spec}
    )


def _reported(
    found: Iterable[tuple[Rows, Scores]], label: str, total: int
) -> Iterator[tuple[Rows, Scores]]:
    step = max(total // 100, 1)
    for number, one in enumerate(found, start=1):
        yield one
        if number % step == 0 or number == total:
            report(label, number, total)


def cut(
    found: Iterable[tuple[Rows, Scores]], keys: npt.NDArray[np.uint64], k: int | None
) -> tuple[Rows, npt.NDArray[np.int32], Scores]:
    """Cut each query's documents at depth `k` (nowhere if None); returns a run's offsets, documents and scores.

    `keys` holds the tie key of each document row.
    """
    docs, scores, lengths = [np.empty(0, np.int32)], [np.empty(0)], [0]
    for rows, values in found:
        best = top_k(values, keys[rows], len(values) if k is None else k)
        docs.append(rows[best].astype(np.int32))
        scores.append(values[best])
        lengths.append(len(best))
    return np.cumsum(lengths, dtype=np.int64), np.concatenate(docs), np.concatenate(scores)


def top_k(scores: Scores, keys: npt.NDArray[np.uint64], k: int) -> Rows:
    """Positions of the best `k` scores, best first; ties fall by key, and equal keys stay together.

    More than `k` come back where the last place is shared by documents with one key.
    """
    chosen = np.arange(len(scores))
    if len(scores) > k:
        last = np.partition(scores, len(scores) - k)[len(scores) - k]
        above, tied = np.flatnonzero(scores > last), np.flatnonzero(scores == last)
        room = k - len(above)
        if len(tied) > room:
            limit = np.partition(keys[tied], room - 1)[room - 1]
            tied = tied[keys[tied] <= limit]
        chosen = np.concatenate([above, tied])
    return chosen[np.lexsort((keys[chosen], -scores[chosen]))]


def prefilter(scores: Scores, k: int) -> Rows:
    """Positions of positive scores, without most of those that cannot be among the best `k`, nor tied with the last.

    A sample's quantile is the threshold; it is moved to 0 where fewer than `k` stand above it.
    """
    sample = scores[::_STRIDE]
    place = len(sample) - 1 - (2 * k // _STRIDE + _MARGIN)
    if place > 0:
        threshold = np.partition(sample, place)[place]
        above = scores >= threshold
        if threshold > 0 and np.count_nonzero(above) >= k:
            return np.flatnonzero(above)
    return np.flatnonzero(scores > 0)
