"""The base of every ranker: one method, ``rank``, and a text that makes an equal ranker."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, ClassVar, Self, get_type_hints

import numpy as np
import numpy.typing as npt
import polars as pl

from ranktilt._version import __version__
from ranktilt.data.collection import TEXT_CHOICES, Collection
from ranktilt.data.runs.run import Run
from ranktilt.errors import UserError, unknown_name
from ranktilt.field_checks import is_number, is_whole_number, printed
from ranktilt.models.device import BACKENDS
from ranktilt.models.encoder import Encoder
from ranktilt.progress import report
from ranktilt.rankers.candidates import Candidates, check_reranked, reranked_spec, same_entries
from ranktilt.rankers.self_exclusion import exclusion_spec, self_documents
from ranktilt.spec import Stage, read_value

Rows = npt.NDArray[np.int64]
"""Positions of documents in the collection's table."""
Scores = npt.NDArray[np.float64]
"""Scores of documents: higher is better."""
ScoredRows = tuple[Rows, Scores]
"""Rows of the documents of one query, and their scores, in any order."""
CutLists = tuple[Rows, npt.NDArray[np.int32], Scores]
"""Offsets, documents and scores of all queries, best first, as a `Run` holds them.

The offsets say where the list of each query starts; a last one says where the last list ends.
"""

DEPTH = 1000
"""Default number of documents for each query."""
QUERY = "{query}"
"""Slot of the query in a template, which alone is the default template."""
_SLOT = re.compile(r"\{(\w*)\}")
"""A slot of a template."""
_EXAMPLE = 'query_template="{attribute} {query}",attribute=female'
"""Example of a template, for errors."""
_STRIDE = 16
"""Every 16th score is in the sample from which `prefilter` chooses its threshold."""
_MARGIN = 16
"""Extra scores of the sample that are above the threshold of `prefilter`.

k/16 of the best k scores are expected in the sample. The threshold is below twice as many and this
margin, so that it is hardly ever too high by chance.
"""


class Ranker(ABC):
    """Anything that ranks: ``rank(collection, run=None) -> Run``.

    Subclasses are frozen dataclasses. Their fields are the options that you can type. ``repr`` is
    the text that you would type, and `ranktilt.ranker` makes an equal ranker of that text.
    """

    name: ClassVar[str]
    """Name that users type."""
    argument: ClassVar[str | None] = None
    """Field that takes the text after the colon."""
    reranks: ClassVar[bool] = True
    """Whether the ranker can rank the candidates of a run."""
    scores_any_document: ClassVar[bool] = True
    """Whether, as a re-ranker, it scores each document independently, and cheaply.

    False for language models: they compare documents with each other, and each call costs money.
    """

    def __init_subclass__(cls) -> None:
        # A dataclass writes a repr of its own, which is not the text that users type.
        if "__repr__" not in cls.__dict__:
            cls.__repr__ = Ranker.__repr__  # type: ignore[method-assign]

    @abstractmethod
    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        """Rank the collection's documents for each judged query.

        A re-ranker ranks the documents of `run`, its candidates. Every judged query is in the run,
        with as many documents as the ranker returns for it; a saved run has the queries of its
        file.
        """

    def check(self) -> None:  # noqa: B027 - most rankers have nothing to check
        """Raise a `UserError` if the ranker cannot rank, before earlier stages take their time."""

    @classmethod
    def from_stage(cls, stage: Stage) -> Self:
        """Return the ranker that a text describes; refuse unknown options and wrong values.

        A `Stage` is the text in parts: ``name:argument(option=value)@k``.
        """
        # The argument and the depth are not written among the options in parentheses.
        outside_parentheses = ("k", cls.argument)
        options = [
            option.name
            for option in fields(cls)  # type: ignore[arg-type]
            if option.repr and option.name not in outside_parentheses
        ]
        hints = get_type_hints(cls)
        keywords: dict[str, Any] = {}
        for name, text in stage.options.items():
            if name not in options:
                raise unknown_name(f"option of {cls.name}", name, options)
            keywords[name] = read_value(text, hints[name], f"option {name!r} of {cls.name}")
        if stage.argument is not None and cls.argument is None:
            raise UserError(f"{cls.name} takes no argument, got {stage.argument!r}")
        if cls.argument is not None:
            if not stage.argument:
                raise UserError(f"{cls.name} needs an argument: {cls.name}:{cls.argument.upper()}")
            keywords[cls.argument] = stage.argument
        if stage.k is not None:
            keywords["k"] = stage.k
        return cls(**keywords)

    def stage(self) -> Stage:
        """Return this ranker's text in parts, without options that have their defaults."""
        changed = {}
        for option in fields(self):  # type: ignore[arg-type]
            value = getattr(self, option.name)
            default = None if option.default is MISSING else option.default
            # A field with repr=False is an object that cannot be typed, such as a fit in memory.
            if option.repr and (option.name == self.argument or value != default):
                changed[option.name] = value
        argument = None if self.argument is None else changed.pop(self.argument, None)
        k = changed.pop("k", None)
        return Stage(
            name=self.name,
            argument=None if argument is None else str(argument),
            options={name: _option_text(value) for name, value in changed.items()},
            k=None if k is None else int(k),
        )

    def __repr__(self) -> str:
        return str(self.stage())

    def __rshift__(self, other: Ranker) -> Pipeline:
        """Return the pipeline of this ranker and another one: ``BM25() >> Dense("minilm")``."""
        return Pipeline((*stages_of(self), *stages_of(other)))

    def rank_repeats(self, collection: Collection, run: Run | None = None) -> Run:
        """Rank as `rank` does, as often as the ranker was asked to; most rankers rank once.

        The run of a ranker whose answers are random can hold several rankings: `Run.repeats`.
        """
        return self.rank(collection, run)


@dataclass(frozen=True, kw_only=True)
class TemplatedQueries(Ranker):
    """A ranker that can read each query together with the name of a group, by a template.

    With ``query_template="{attribute} {query}",attribute=female``, for example, it reads "female
    data scientist" for the query "data scientist". Wang et al., NAACL 2024, test rankers that have
    no prompt in this way. The judgments of the query stay the same.
    """

    query_template: str = QUERY
    """Text with a slot ``{query}``, and a slot ``{attribute}`` if an attribute is set."""
    attribute: str | None = None
    """Name of a group that is put into the template."""

    def require_template(self) -> None:
        """Refuse a template without a slot for the query, and an attribute without a slot."""
        slots = set(_SLOT.findall(self.query_template))
        if "query" not in slots or slots - {"query", "attribute"}:
            expected = (
                f"expected {QUERY}, with or without {{attribute}}, got {self.query_template!r}"
            )
            raise UserError(f"{self.name}: query_template: {expected}")
        if ("attribute" in slots) != bool((self.attribute or "").strip()):
            raise UserError(
                f"{self.name}: attribute goes with the slot {{attribute}}, such as {_EXAMPLE}"
            )

    def read_queries(self, texts: pl.Series) -> pl.Series:
        """Return the texts that the ranker reads for these queries."""
        if self.query_template == QUERY:
            return texts

        def fill(text: str) -> str:
            words = {"query": text, "attribute": self.attribute or ""}
            return _SLOT.sub(lambda slot: words[slot[1]], self.query_template)

        return pl.Series(texts.name, map(fill, texts), dtype=pl.String)

    def template_spec(self, texts: pl.Series) -> dict[str, Any]:
        """Return the template, and how the first of these queries is read, for a run's spec."""
        if self.query_template == QUERY:
            return {}
        reading = {"template": self.query_template, "attribute": self.attribute}
        if len(texts):
            reading["query"] = texts[0]
            reading["read_as"] = self.read_queries(texts.head(1))[0]
        return {"queries_read": reading}


@dataclass(frozen=True)
class Pipeline(Ranker):
    """Two or more rankers in a row; each re-ranks the run of the stage before it.

    ``@k`` cuts the run of the stage that it is written at, so that the next stage gets no more
    candidates. A re-ranker returns documents of its candidates, and no others.
    """

    stages: tuple[Ranker, ...]
    """Rankers in their order."""
    name: ClassVar[str] = "pipeline"

    def check(self) -> None:
        """Check all stages, before the first of them takes its time."""
        for stage in self.stages:
            stage.check()

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        """Rank stage by stage; `run` holds the candidates of the first, if it is a re-ranker."""
        self.check()
        return self._rank_with(self.stages, collection, run)

    def rank_repeats(self, collection: Collection, run: Run | None = None) -> Run:
        """Re-rank each repeat of the first stage."""
        self.check()
        repeated = self.stages[0].rank_repeats(collection, run)
        if not repeated.repeats:
            return self._rank_with(self.stages[1:], collection, repeated)
        ranked = []
        for number, repeat in enumerate((repeated, *repeated.repeats), start=1):
            candidates = replace(repeat, repeats=())
            reranked = self._rank_with(self.stages[1:], collection, candidates)
            ranked.append(replace(reranked, spec={**reranked.spec, "repeat": number}))
        return replace(ranked[0], repeats=tuple(ranked[1:]))

    def _rank_with(self, stages: Sequence[Ranker], collection: Collection, run: Run | None) -> Run:
        """Rank with some of the stages, one after the other."""
        for stage in stages:
            run = check_reranked(stage.rank(collection, run), run, stage)
        if run is None:
            raise UserError("a pipeline needs at least one stage")
        return replace(run, spec={**run.spec, "ranker": repr(self)})

    def __repr__(self) -> str:
        return ">>".join(map(repr, self.stages))


def stages_of(ranker: Ranker) -> tuple[Ranker, ...]:
    """Return the stages of a pipeline; any other ranker is its only stage."""
    return ranker.stages if isinstance(ranker, Pipeline) else (ranker,)


def score_documents(ranker: Ranker, collection: Collection, run: Run) -> Run | None:
    """Return a run with the same documents, scored by a ranker's last stage.

    None if that stage cannot re-rank, or is a language model.
    """
    last = stages_of(ranker)[-1]
    if not (last.reranks and last.scores_any_document):
        return None
    if hasattr(last, "k"):
        # Its depth becomes the length of the longest list, so that no list is cut.
        last = replace(last, k=int(np.diff(run.offsets).max(initial=1)))  # type: ignore[type-var]
    scored = last.rank(collection, run)
    if not (isinstance(scored, Run) and same_entries(scored, run) and scored.scored):
        return None
    return replace(scored, spec={**scored.spec, "ranker": repr(ranker)})


def entries(run: Run, query_numbers: Iterable[int]) -> Iterator[ScoredRows]:
    """Yield documents and scores of the queries with these indexes in a run.

    Documents are rows of the run's table of ids.
    """
    for number in query_numbers:
        entries_of_query = slice(run.offsets[number], run.offsets[number + 1])
        yield run.docs[entries_of_query].astype(np.int64), run.scores[entries_of_query]


@dataclass(frozen=True, kw_only=True)
class FirstStage(Ranker):
    """A ranker that searches the whole collection, `k` documents deep.

    Documents that are tied at the last rank are chosen by the tie key, which does not depend on
    source or id. Versions of one text have the same key and stay together, so a query may get a few
    more documents than `k`.

    In some collections the queries are documents themselves, and would find themselves first.
    `exclude_self` leaves out a query's own document and all its versions.
    """

    reranks: ClassVar[bool] = False

    k: int = DEPTH
    """Number of documents for each query."""
    text: str = "title+text"
    """Part of a document to read, one of `TEXT_CHOICES`."""
    exclude_self: bool | None = None
    """Whether a query's own document is left out.

    None: it is left out if most queries have the id of a document and share most of its words.
    """

    def __post_init__(self) -> None:
        require_depth(self.name, self.depth)
        require_choices(self, text=TEXT_CHOICES)

    @property
    def depth(self) -> int:
        """Number of documents to search for; the default depth if ``k`` is None.

        ``k`` may be None only in a ranker that can also re-rank, where it means all candidates.
        """
        return DEPTH if self.k is None else self.k

    def about(self, collection: Collection) -> dict[str, Any]:
        """Return how the ranker reads this collection, for the run's spec."""
        return {}

    def provenance(self) -> dict[str, Any]:
        """Return how the ranker computes, for the run's spec."""
        return {}

    @abstractmethod
    def candidates(self, collection: Collection, slack: int) -> Iterator[ScoredRows]:
        """Yield the rows and scores of documents for each judged query, in any order.

        They include the best ``k + slack`` documents, and all that are tied with the last of these.
        `slack` is the largest number of a query's own documents, which are left out later.
        """

    def lists(self, collection: Collection, excluded: Mapping[int, Rows]) -> CutLists:
        """Return each judged query's list, cut at the depth, without its own documents.

        `excluded` has the rows of a query's own documents, by the index of the query.
        """
        slack = max(map(len, excluded.values()), default=0)
        return self.cut_lists(self.candidates(collection, slack), collection, excluded)

    def cut_lists(
        self,
        scored_rows: Iterable[ScoredRows],
        collection: Collection,
        excluded: Mapping[int, Rows],
    ) -> CutLists:
        """Cut the judged queries' lists at the depth, without own documents; report the progress.

        `excluded` is that of `lists`.
        """
        scored_rows = exclude(scored_rows, excluded)
        query_count = collection.queries_with_judgments.height
        scored_rows = _reported(scored_rows, f"{self!r}: ranking", query_count)
        return cut(scored_rows, collection.tie_keys(), self.depth)

    def rank(self, collection: Collection, run: Run | None = None) -> Run:
        """Search the whole collection for each judged query; a `run` of candidates is refused."""
        if run is not None:
            raise UserError(
                f"{self!r} searches the whole collection and cannot re-rank; put it first"
            )
        queries = collection.queries_with_judgments["id"].to_list()
        excluded = self_documents(collection, self.exclude_self)
        offsets, docs, scores = self.lists(collection, excluded)
        spec = {
            "ranker": repr(self),
            "ranktilt": __version__,
            "collection": collection.spec.get("path"),
            **self.provenance(),
            **exclusion_spec(excluded),
            **self.about(collection),
        }
        return Run(
            queries=tuple(queries),
            offsets=offsets,
            docs=docs,
            scores=scores,
            ids=collection.ids,
            spec=spec,
        )


def _option_text(value: Any) -> str:
    """Return the value of an option as users type it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def require_depth(name: str, k: int | None) -> None:
    """Refuse a depth k below 1; `name` is the ranker's."""
    if k is not None and (not is_whole_number(k) or k < 1):
        raise UserError(f"{name}: expected a depth of at least 1, got @{printed(k)}")


def require_choices(ranker: Ranker, **choices: Iterable[str]) -> None:
    """Refuse a value of an option that is not among its choices: ``option=choices``."""
    for option, valid in choices.items():
        value = getattr(ranker, option)
        if value not in valid:
            raise unknown_name(f"{option} of {ranker.name}", value, valid)


def require_backend(ranker: Any) -> None:
    """Refuse an unknown backend, and a precision for another backend than torch."""
    require_choices(ranker, backend=BACKENDS)
    if ranker.backend != BACKENDS[0] and ranker.precision != "float32":
        raise UserError(
            f"{ranker.name}: precision={ranker.precision} is for backend=torch; "
            f"got {ranker.backend}"
        )


def readable_texts(ranker: Ranker, collection: Collection) -> pl.Series:
    """Return the text that a ranker reads of each document.

    Refuses a collection whose documents or queries have no text.
    """
    choice = getattr(ranker, "text", "title+text")
    texts = collection.texts(choice)
    if collection.docs.height and not (texts != "").any():
        field = "title" if choice == "title" else "text"
        raise UserError(f"{ranker!r} reads texts; no document here has a {field}")
    if collection.queries.height and not (collection.queries["text"] != "").any():
        raise UserError(f"{ranker!r} reads texts; no query here has one")
    return texts


def require_range(ranker: Any, *options: str, least: float, most: float = math.inf) -> None:
    """Refuse an option whose number is below `least` or above `most`; None is always valid."""
    for option in options:
        value = getattr(ranker, option)
        if value is not None and not (is_number(value) and least <= value <= most):
            valid = f"at least {least:g}" if most == math.inf else f"{least:g} to {most:.16g}"
            raise UserError(f"{ranker.name}: expected {option} of {valid}, got {printed(value)}")


def installed_versions(*packages: str) -> dict[str, str]:
    """Return the versions of those packages that are installed, for a run's spec."""
    return {name: version(name) for name in packages if find_spec(name.replace("-", "_"))}


def encoder_provenance(model: Encoder) -> dict[str, Any]:
    """Return an encoder's model, precision and packages, for a run's spec."""
    return {
        "model": {"folder": str(model.folder), "fingerprint": model.fingerprint},
        "precision": model.precision,
        "packages": installed_versions("torch", "transformers", "sentence-transformers"),
    }


def exclude(
    scored_rows: Iterable[ScoredRows],
    excluded: Mapping[int, Rows],
    collection_row: Rows | None = None,
) -> Iterator[ScoredRows]:
    """Yield lists without each query's own documents.

    Parameters
    ----------
    scored_rows : iterable of (rows, scores)
        The list of each query.
    excluded : mapping of int to array
        Rows in the collection of a query's own documents, by the index of the query.
    collection_row : array of int, optional
        The row in the collection of each document, if the lists hold rows of another table.
    """
    for query, (docs, scores) in enumerate(scored_rows):
        if query in excluded:
            rows = docs if collection_row is None else collection_row[docs]
            is_kept = ~np.isin(rows, excluded[query])
            docs, scores = docs[is_kept], scores[is_kept]
        yield docs, scores


def reranked_run(
    ranker: Ranker,
    collection: Collection,
    candidates: Candidates,
    *,
    scores: Scores,
    spec: Mapping[str, Any],
) -> Run:
    """Return the run of re-ranked candidates, cut at the ranker's depth.

    `scores` has a new score for each candidate. `spec` describes how they were computed, and is
    added to the run's spec.
    """
    offsets, docs, sorted_scores = cut(
        candidates.by_query(scores), collection.tie_keys(), getattr(ranker, "k", None)
    )
    return Run(
        queries=tuple(candidates.names),
        offsets=offsets,
        docs=docs,
        scores=sorted_scores,
        ids=collection.ids,
        spec={**reranked_spec(candidates.run, ranker), **spec},
    )


def _reported(scored_rows: Iterable[ScoredRows], label: str, total: int) -> Iterator[ScoredRows]:
    """Yield the queries' documents unchanged, and report the progress some hundred times."""
    step = max(total // 100, 1)
    for done, query_rows in enumerate(scored_rows, start=1):
        yield query_rows
        if done % step == 0 or done == total:
            report(label, done, total)


def cut(scored_rows: Iterable[ScoredRows], keys: npt.NDArray[np.uint64], k: int | None) -> CutLists:
    """Keep the best `k` documents of each query, all of them if `k` is None.

    `keys` has the tie key of each document: a hash of its origin, which orders documents of equal
    score.
    """
    # The empty arrays give the result its type where there is no query.
    all_docs, all_scores, lengths = [np.empty(0, np.int32)], [np.empty(0)], [0]
    for rows, scores in scored_rows:
        best = top_k(scores, keys[rows], len(scores) if k is None else k)
        all_docs.append(rows[best].astype(np.int32))
        all_scores.append(scores[best])
        lengths.append(len(best))
    offsets = np.cumsum(lengths, dtype=np.int64)
    return offsets, np.concatenate(all_docs), np.concatenate(all_scores)


def top_k(scores: Scores, keys: npt.NDArray[np.uint64], k: int) -> Rows:
    """Return the positions of the best `k` scores, best first.

    Ties are ordered by key, and equal keys stay together: more than `k` positions are returned if
    documents of one key share the last rank.
    """
    best = np.arange(len(scores))
    if len(scores) > k:
        # All scores above the one at rank k are among the best. Those that are equal to it fill the
        # ranks that are left, in the order of their keys.
        last_score = np.partition(scores, len(scores) - k)[len(scores) - k]
        above, tied = np.flatnonzero(scores > last_score), np.flatnonzero(scores == last_score)
        ranks_left = k - len(above)
        if len(tied) > ranks_left:
            last_key = np.partition(keys[tied], ranks_left - 1)[ranks_left - 1]
            tied = tied[keys[tied] <= last_key]
        best = np.concatenate([above, tied])
    return best[np.lexsort((keys[best], -scores[best]))]


def prefilter(scores: Scores, k: int) -> Rows:
    """Return positions of positive scores: the best `k`, all tied with the last, and some more.

    `top_k` is slow on an array with a score for every document of a collection. This function
    leaves out most of the other scores first, by a threshold that is cheap to compute: a quantile
    of a sample, or 0 if that would keep fewer than `k`.
    """
    sample = scores[::_STRIDE]
    position = len(sample) - 1 - (2 * k // _STRIDE + _MARGIN)
    if position > 0:  # the sample is larger than the number of its scores that must be kept
        threshold = np.partition(sample, position)[position]
        above = scores >= threshold
        if threshold > 0 and np.count_nonzero(above) >= k:
            return np.flatnonzero(above)
    return np.flatnonzero(scores > 0)
