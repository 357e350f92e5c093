"""Make twins by design: every document in the combinations of a design's factors, as one collection."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from ranktilt.collection import Collection
from ranktilt.datasets.stated_sources import ORIGINALS, with_named_side
from ranktilt.errors import UserError, unknown
from ranktilt.experiments.twins.checks import ManipulationChecks, check_factors
from ranktilt.experiments.twins.design import HIGH, Design, design, drawn_cells
from ranktilt.experiments.twins.factors import (
    AS_IS,
    MEANING,
    Factor,
    applied_order,
    read_factors,
    require_model,
)
from ranktilt.experiments.twins.judgments import carried, how_graded, judged_anew, to_grade
from ranktilt.experiments.twins.options import Crossing
from ranktilt.experiments.twins.rules import Origin, name_pool, terms
from ranktilt.generation.batched_requests import RECORD, model_name
from ranktilt.generation.estimate import CostEstimate, estimate
from ranktilt.generation.generated import LEFT_OUT, Generated, SourceSummary, spec_of
from ranktilt.generation.rewrite.plan import plan
from ranktilt.generation.rewrite.rewrite import rewrite
from ranktilt.generation.settings import Rewriting
from ranktilt.judging.grading import Grades
from ranktilt.judging.grading_plan import plan_grades
from ranktilt.llm.base import LLM
from ranktilt.progress import report

Applied = tuple[str, ...]
"""Names of the factors that a text was changed by, in the order in which they are applied."""
Key = tuple[int, Applied]
"""A version: the row of its origin among the documents to be changed, and what it was changed by."""
ANSWERS = pl.Schema(
    {"id": pl.String(), "source": pl.String(), **{n: t for n, t in RECORD.items() if n != "row"}}
)


@dataclass(frozen=True, eq=False, kw_only=True)
class DesignedTwins(Generated):
    """A designed collection, what its factors did to the texts, and what a model was asked for it.

    `collection` has a document for each origin and run of the design, with a column ``factor:NAME``
    a factor, ``low`` (as it is) or ``high``; the original is the document in which all are low.
    Judgments are carried over, except to versions whose factor ``facts`` is high: these have the
    grades of a judge, or none. ``collection.spec["design"]`` says how it was made.
    """

    given: Collection
    """The documents that versions were made of."""
    checks: ManipulationChecks
    grades: Grades | None = None
    """What a judge said of versions whose facts are changed; its `unanswered` are asked for by the same call again."""

    def united(self, qrels: pl.DataFrame) -> Collection:
        """Return the same documents under another split's judgments of the originals."""
        docs = self.collection.docs
        return Collection(docs, self.collection.queries, carried(qrels, docs), self.collection.spec)


def twins(
    collection: Collection,
    factors: Sequence[str | Factor],
    crossing: Crossing | None = None,
    *,
    by_rule: bool = False,
    llm: LLM | None = None,
    judge: LLM | None = None,
    judge_prompt: str | Path = "umbrela",
) -> DesignedTwins:
    """Write each document of a collection in the combinations of a design's factors, and check what they did.

    Factors are applied in one order, whatever the order they are named in: a collection's own
    rewrites, prompts, then rules, so that versions which differ by rules share what a model wrote.

    Parameters
    ----------
    collection : Collection
        Its human documents are written in versions, unless ``crossing.of`` names another source.
    factors : sequence of str
        What differs, such as ``length`` or ``facts``; ``MODULE:FUNCTION`` and files with prompts
        are your own.
    crossing : Crossing, optional
        The design, how many versions a document has, the seed; by default all combinations.
    by_rule : bool, optional
        Change texts by rule, without a language model.
    llm : LLM, optional
        The model that factors ask which are made by prompt:
        ``ranktilt.llm.base.llm("openai:NAME")``.
    judge : LLM, optional
        The model that grades versions whose facts are changed; without one these have no judgments.
    judge_prompt : str or path, optional
        How it is asked: ``umbrela``, ``basic``, ``rubric``, or a file.

    Returns
    -------
    DesignedTwins
        `collection` has the versions, with columns ``factor:NAME``; `checks` says what each factor
        moved. What a model did not answer, the same call asks for again.

    Raises
    ------
    UserError
        If there is no such factor or design, a factor needs a model and none is given, or nothing
        is to be judged.
    """
    read = [
        read_factors([one], by_rule=by_rule)[0] if isinstance(one, str) else one for one in factors
    ]
    work = _Work.of(collection, read, crossing or Crossing())
    require_model(read, llm is not None)
    if judge is not None:
        how = how_graded(read, work.collection.qrels, judge_prompt, work.crossing.seed)
        judge.check()
    changed = dict[str, float]()
    for step, factor in enumerate(work.order):
        changed[factor.name] = work.apply(step, llm)
    made, grades = _designed(work, model_name(llm) if llm is not None else ""), None
    about = {
        "factors": [one.to_dict() for one in read],
        "seed": work.crossing.seed,
        **_model_spec(work, llm),
    }
    if judge is not None:
        made, grades = judged_anew(made, work.collection, judge, how)
        about["judge"] = {**grades.spec, "counts": grades.counts._asdict()}
    checks = ManipulationChecks(
        {**_paths(collection), "design": made.spec["design"]},
        check_factors(made, work.base, work.collection.qrels, read),
        changed,
    )
    spec = {**made.spec, "design": {**made.spec["design"], "failed": list(checks.failed)}}
    return DesignedTwins(
        collection=Collection(made.docs, made.queries, made.qrels, spec),
        given=work.collection,
        checks=checks,
        left_out=pl.concat([LEFT_OUT.to_frame(), *work.left_out]),
        answers=pl.concat([ANSWERS.to_frame(), *work.answers]),
        made=tuple(work.made),
        spec=about,
        grades=grades,
    )


class PromptPrice(NamedTuple):
    """What a prompt would cost."""

    name: str
    """Of the factor; ``judge`` for grades."""
    prompt: str
    texts: int
    """That it is asked for, or pairs of a query and a text."""
    estimate: CostEstimate
    """Of the documents as they are."""
    times: float
    """How often this is what all texts take."""

    @property
    def tokens(self) -> tuple[int, int]:
        """Read and written."""
        return round(self.times * self.estimate.tokens_in), round(
            self.times * self.estimate.tokens_out
        )

    @property
    def price(self) -> float | None:
        """Of all texts; None where the price of tokens is not given."""
        return None if self.estimate.price is None else self.times * self.estimate.price


def price_twins(
    collection: Collection,
    factors: Sequence[Factor],
    crossing: Crossing,
    llm: LLM | None,
    *,
    judge: LLM | None = None,
    judge_prompt: str | Path = "umbrela",
    **options: Any,
) -> list[PromptPrice]:
    """Estimate what each prompt would cost, and last what a judge would; asks nothing.

    It is estimated for the documents as they are, once each, and multiplied: what an earlier prompt
    would make of them is not known yet. What rules make of them is, so that by rule alone the pairs
    of a judge are those to be graded.
    """
    work = _Work.of(collection, factors, crossing)
    prompts = list[PromptPrice]()
    for step, factor in enumerate(work.order):
        if factor.by == "model" and llm is not None:
            wanted = work.wanted(step)
            rows = sorted({row for row, _ in wanted})
            texts = [work.texts[row, ()] for row in rows]
            each = estimate(plan(_bare(texts), llm, _rewriting(factor, crossing)), llm, **options)
            times = len(wanted) / max(each.documents - each.empty, 1)
            prompts.append(PromptPrice(factor.name, factor.prompt, len(wanted), each, times))
    if judge is not None:
        how = how_graded(factors, work.collection.qrels, judge_prompt, crossing.seed)
        for step in range(len(work.order)):
            work.apply(step, None)
        pairs = to_grade(_designed(work, ""), work.collection)
        every = estimate(plan_grades(pairs, judge, how), judge, **options)
        asked = every.documents - every.empty
        times = asked / max(every.requests, 1) if prompts else 1.0
        prompts.append(PromptPrice("judge", str(judge_prompt), asked, every, times))
    return prompts


@dataclass(eq=False)
class _Work:
    """Documents on their way through the factors."""

    collection: Collection
    """With the documents that are changed alone."""
    base: pl.DataFrame
    layout: Design
    crossing: Crossing
    order: list[Factor]
    cells: list[list[int]]
    origins: list[Origin]
    rewrites: Mapping[str, str]
    """By origin, the text of the source that stands for a factor."""
    rewriter: str
    texts: dict[Key, str] = field(default_factory=dict)
    titles: dict[Key, str] = field(default_factory=dict)
    left_out: list[pl.DataFrame] = field(default_factory=list)
    answers: list[pl.DataFrame] = field(default_factory=list)
    made: list[SourceSummary] = field(default_factory=list)

    @classmethod
    def of(cls, collection: Collection, factors: Sequence[Factor], crossing: Crossing) -> _Work:
        """Choose documents and runs; nothing is changed yet."""
        layout, order = (
            design([one.name for one in factors], crossing.design),
            applied_order(factors),
        )
        collection = with_named_side(collection, crossing.of or ORIGINALS)
        base = _base(collection, crossing)
        rewriter = next(
            (
                _rewriter(collection, one, base["source"][0])
                for one in order
                if one.by == "collection"
            ),
            "",
        )
        rewrites = dict(
            collection.docs.filter(pl.col("source") == rewriter)
            .select("origin", "text")
            .iter_rows()
        )
        base = base.filter(pl.col("origin").is_in(list(rewrites))) if rewriter else base
        if not base.height:
            raise UserError(f"no document has a rewrite of source {rewriter!r}")
        base = base.head(crossing.first or base.height)
        qrels = collection.qrels.filter(pl.col("doc_id").is_in(base["id"].implode()))
        alone = Collection(
            base.with_columns(origin="id"), collection.queries, qrels, collection.spec
        )
        cells = drawn_cells(layout, base["id"].to_list(), crossing.cells, crossing.seed)
        named = (
            {i: rewrites[o] for i, o in zip(base["id"], base["origin"], strict=True)}
            if rewriter
            else {}
        )
        return cls(
            collection=alone,
            base=alone.docs,
            layout=layout,
            crossing=crossing,
            order=order,
            cells=cells,
            origins=_origins(alone, crossing.seed),
            rewrites=named,
            rewriter=rewriter,
            texts={(row, ()): text for row, text in enumerate(base["text"])},
            titles={(row, ()): title for row, title in enumerate(base["title"])},
        )

    def applied(self, cell: Mapping[str, str], steps: int | None = None) -> Applied:
        """Name what a run is changed by, up to a step."""
        return tuple(one.name for one in self.order[:steps] if cell[one.name] == HIGH)

    def versions(self) -> Iterator[tuple[int, dict[str, str]]]:
        """Give the origin's row and the levels of every version."""
        levels = self.layout.cells()
        return ((row, levels[run]) for row, runs in enumerate(self.cells) for run in runs)

    def wanted(self, step: int) -> list[Key]:
        """List the versions that a factor makes at its step, each once."""
        name = self.order[step].name
        keys = (
            (row, self.applied(cell, step + 1))
            for row, cell in self.versions()
            if cell[name] == HIGH
        )
        return list(dict.fromkeys(keys))

    def apply(self, step: int, llm: LLM | None) -> float:
        """Make the texts of a factor's high level; return the share of those that differ from what they were."""
        factor = self.order[step]
        wanted = [
            (row, names) for row, names in self.wanted(step) if (row, names[:-1]) in self.texts
        ]
        old = [self.texts[row, names[:-1]] for row, names in wanted]
        for row, names in wanted:
            self.titles[row, names] = self._title(factor, row, names)
        new = (
            self._answered(factor, wanted, old, llm)
            if factor.by == "model" and llm
            else self._edited(factor, wanted)
        )
        self.texts |= {key: text for key, text in zip(wanted, new, strict=True) if text is not None}
        pairs = [(a, b) for a, b in zip(old, new, strict=True) if b is not None]
        return sum(a != b for a, b in pairs) / len(pairs) if pairs else 0.0

    def _title(self, factor: Factor, row: int, names: Applied) -> str:
        title = self.titles[row, names[:-1]]
        return factor.edit(title, self.origins[row]) if factor.titles and factor.edit else title

    def _edited(self, factor: Factor, wanted: Sequence[Key]) -> list[str | None]:
        """By rule, or out of the collection; for an estimate, what a prompt would make is as the text was."""
        if factor.by == "model":
            return [self.texts[row, names[:-1]] for row, names in wanted]
        if factor.edit is None:
            return [self.rewrites[self.origins[row].id] for row, _ in wanted]
        found: list[str | None] = []
        for number, (row, names) in enumerate(wanted):
            found.append(factor.edit(self.texts[row, names[:-1]], self.origins[row]))
            report(f"{factor.name}: {factor.high}", number + 1, len(wanted))
        return found

    def _answered(
        self, factor: Factor, wanted: Sequence[Key], old: Sequence[str], llm: LLM
    ) -> list[str | None]:
        """By a model, as a rewrite; a text without a good answer is left out, and with it what would be made of it."""
        found = rewrite(_bare(old), llm, _rewriting(factor, self.crossing))
        ids = pl.Series([self.name(key[0], key[1][:-1]) for key in wanted], dtype=pl.String)
        for frame, frames in ((found.left_out, self.left_out), (found.answers, self.answers)):
            frames.append(_renamed(frame, ids, factor.name))
        self.made += [one._replace(source=factor.name) for one in found.made]
        texts = dict(found.added.select(pl.col("id").cast(pl.Int64), "text").iter_rows())
        return [texts.get(number) for number in range(len(wanted))]

    def name(self, row: int, names: Applied) -> str:
        """Return the id of a version: its origin's, and what it was changed by."""
        return "+".join((self.origins[row].id, *names))


def _renamed(frame: pl.DataFrame, ids: pl.Series, source: str) -> pl.DataFrame:
    rows = frame["id"].str.strip_suffix("-human").cast(pl.Int64)
    return frame.with_columns(ids.gather(rows).alias("id"), pl.lit(source).alias("source"))


def _bare(texts: Iterable[str]) -> Collection:
    """Texts as documents that are called by their number."""
    found = [(str(number), text) for number, text in enumerate(texts)]
    none = dict.fromkeys(("query_id", "doc_id"), pl.String)
    return Collection(
        pl.DataFrame(found, schema=["id", "text"], orient="row"),
        pl.DataFrame(schema=["id", "text"]),
        pl.DataFrame(schema={**none, "grade": pl.Int32}),
    )


def _rewriting(factor: Factor, crossing: Crossing) -> Rewriting:
    settings = {
        "temperatures": (crossing.temperature,),
        "attempts": crossing.attempts,
        "source": factor.name,
    }
    return Rewriting(prompt=factor.prompt, **settings)  # type: ignore[arg-type]


def _base(collection: Collection, crossing: Crossing) -> pl.DataFrame:
    """The documents to be changed: all of one source, one an origin."""
    sources = collection.sources
    source = crossing.of or (ORIGINALS if ORIGINALS in sources else next(iter(sources), ""))
    if source not in sources:
        raise collection.unknown_source(source)
    base = collection.docs.filter(pl.col("source") == source)
    taken = [name for name in base.columns if name.startswith("factor:")]
    if taken:
        raise UserError(
            f"this collection is designed already: its documents have a column {taken[0]!r}"
        )
    twice = base.filter(pl.col("origin").is_duplicated())
    if twice.height:
        one, two = twice["id"][:2]
        raise UserError(
            f"documents {one!r} and {two!r} of source {source!r} have one origin, {twice['origin'][0]!r}"
        )
    return base


def _rewriter(collection: Collection, factor: Factor, base: str) -> str:
    """Find the source whose rewrites are a factor's high level."""
    others = [name for name in collection.sources if name != base]
    if factor.source:
        if factor.source not in others:
            raise unknown("source", factor.source, others)
        return factor.source
    if len(others) != 1:
        held = (
            f"{len(others)} other sources; name one, such as source:{others[0]}"
            if others
            else "no other source"
        )
        raise UserError(
            f"factor 'source' by rule takes the collection's own rewrites, and it has {held}"
        )
    return others[0]


def _origins(collection: Collection, seed: int) -> list[Origin]:
    """What rules may know of each document."""
    held = frozenset(term for text in collection.queries["text"] for term in terms(text))
    names = name_pool(collection.docs["text"], held)
    relevant = collection.qrels.filter(pl.col("grade") > 0).sort(
        "grade", "query_id", descending=[True, False]
    )
    relevant = relevant.join(
        collection.queries.select(query_id="id", query="text"), on="query_id", how="inner"
    )
    asked: dict[str, list[str]] = {}
    for doc, query in relevant.select("doc_id", "query").iter_rows():
        asked.setdefault(doc, []).append(query)
    return [Origin(id_, seed, tuple(asked.get(id_, ())), held, names) for id_ in collection.ids]


def _designed(work: _Work, model: str) -> Collection:
    """The versions as one collection."""
    by, rows = {one.name: one.by for one in work.order}, []
    for row, cell in work.versions():
        names = work.applied(cell)
        if (row, names) in work.texts:
            ways = {by[name] for name in names}
            source = model if "model" in ways else work.rewriter if "collection" in ways else None
            levels = {f"factor:{name}": level for name, level in cell.items()}
            texts = {"title": work.titles[row, names], "text": work.texts[row, names]}
            rows.append(
                {"row": row, "id": work.name(row, names), **texts, "made_by": source, **levels}
            )
    made = pl.DataFrame(rows, schema_overrides={"row": pl.UInt32, "made_by": pl.String})
    if not made.height:
        raise UserError("no version was made: the model gave no good answer")
    more = work.base.drop("id", "title", "text").with_row_index("row")
    docs = made.join(more, on="row", how="left", maintain_order="left")
    docs = docs.with_columns(source=pl.coalesce("made_by", "source")).drop("row", "made_by")
    queries, qrels = work.collection.queries, carried(work.collection.qrels, docs)
    spec = {**_paths(work.collection), "design": _described(work)}
    return Collection(docs, queries, qrels, spec)


def _described(work: _Work) -> dict[str, Any]:
    changed = {
        one.name: [AS_IS, one.high]
        for one in sorted(work.order, key=_position(work.layout.factors))
    }
    note = "carried over from the original" + (
        f", but not to versions with {MEANING} high" if MEANING in changed else ""
    )
    crossing = {"cells": work.crossing.cells, "seed": work.crossing.seed}
    return {**work.layout.to_dict(), **crossing, "low_high": changed, "judgments": note}


def _position(names: Sequence[str]) -> Any:
    return lambda factor: names.index(factor.name)


def _paths(collection: Collection) -> dict[str, Any]:
    return {name: collection.spec[name] for name in ("path", "split") if name in collection.spec}


def _model_spec(work: _Work, llm: LLM | None) -> dict[str, Any]:
    """What the manifest tells of the model and of the collection."""
    if llm is None or all(one.by != "model" for one in work.order):
        return {"collection": _paths(work.collection)}
    factor = next(one for one in work.order if one.by == "model")
    asked = spec_of(
        llm, plan(_bare(["text"]), llm, _rewriting(factor, work.crossing)), work.collection
    )
    return {
        name: asked[name]
        for name in ("llm", "top_p", "attempts", "inputs", "collection", "ranktilt")
    }
