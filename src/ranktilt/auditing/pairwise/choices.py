"""From choices to shares: each kind of pairs with intervals over queries and documents, tests, and a verdict."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np
import orjson
import polars as pl

from ranktilt._version import __version__
from ranktilt.auditing.effects import FEW_QUERIES, FEWEST
from ranktilt.auditing.notes import variation_notes
from ranktilt.auditing.options import check_resamples
from ranktilt.auditing.pairwise.pairs import (
    KINDS,
    DrawnPairs,
    Kind,
    TwoGroups,
    draw_pairs,
    known_queries,
    relevant_pairs,
    two_groups,
)
from ranktilt.auditing.pairwise.result import (
    COUNTS,
    EVEN,
    PairOutcome,
    PairTable,
    PairwiseAudit,
    QueryChoices,
    Share,
)
from ranktilt.data.collection import Collection
from ranktilt.data.formats.jsonl import json_objects
from ranktilt.data.notes.base import Note, counts_of
from ranktilt.data.notes.pairwise import (
    ChoicesLeftOut,
    ChoicesUnreadable,
    FewQueriesWithPairs,
    NothingDecided,
    PairsInOneOrder,
    QueriesWithoutPair,
)
from ranktilt.data.notes.runs import AnswersRead
from ranktilt.data.run import Run, codes
from ranktilt.errors import DataError, UserError, counted, shorten, unknown
from ranktilt.llm.journal import journalled
from ranktilt.llm.stored_answers import stored_answer
from ranktilt.measures.ranking import Floats
from ranktilt.rankers.base import readable_texts
from ranktilt.rankers.llm.answers import UNANSWERED, Reading, read_choice
from ranktilt.rankers.llm.base import Asker, Listing, Task
from ranktilt.rankers.llm.pairwise import Pairwise
from ranktilt.statistics.bootstrap import RESAMPLES, resampled_means
from ranktilt.statistics.correction import correct
from ranktilt.statistics.inversion import Inference, infer
from ranktilt.statistics.permutation import sign_flip_p
from ranktilt.statistics.two_way import Dyads, sums

SCHEMA = {
    "query": pl.String,
    "kind": pl.String,
    "first": pl.String,
    "second": pl.String,
    "choice": pl.String,
    "reading": pl.String,
}
_Id = Annotated[str, msgspec.Meta(min_length=1)]


@dataclass(frozen=True, eq=False)
class Decisions:
    """What was chosen of each pair and order."""

    frame: pl.DataFrame
    """``query``, ``kind`` (``relevant``, ``irrelevant``), ``first`` and ``second`` (ids, as they were shown),
    ``choice`` (one of both, or null where an answer could not be read) and ``reading`` (what kind of answer)."""
    sides: TwoGroups
    model: str
    """Who chose: a language model, or the file that says so."""
    spec: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    training_queries: frozenset[str] = frozenset()
    """Ids of queries that the model was trained on, as far as that is known."""

    def contents(self) -> bytes:
        """Return them as JSON lines, which `read_decisions` reads."""
        return b"".join(
            orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
            for row in self.frame.iter_rows(named=True)
        )


def ask_pairs(
    collection: Collection, drawn: DrawnPairs, ranker: Pairwise, *, asker: Asker = journalled
) -> Decisions:
    """Ask a language model about each pair in both orders, all prompts at once; `ranker` says how, not its method."""
    texts = readable_texts(ranker, collection)
    shown = [
        [
            ranker.prompt_text(text)
            for text in texts.gather(codes(drawn.frame[side], collection.ids))
        ]
        for side in ("protected", "unprotected")
    ]
    queries = collection.queries["text"].gather(
        codes(drawn.frame["query"], collection.queries["id"])
    )
    tasks = [Task(query, list(pair)) for query, *pair in zip(queries, *shown, strict=True)]
    answers, said = ranker.ask(tasks, [_both_orders() for _ in tasks], asker=asker)
    rows = [
        (query, kind, *order, order[reading.order[0]] if reading.order else None, reading.kind)
        for (query, kind, one, two), readings in zip(drawn.frame.iter_rows(), answers, strict=True)
        for order, reading in zip(((one, two), (two, one)), readings, strict=True)
    ]
    spec = {"asker": repr(ranker), "pairs": drawn.wanted, **said}
    trained = ranker.model().training_queries
    frame = pl.DataFrame(rows, SCHEMA, orient="row")
    return Decisions(frame, drawn.sides, ranker.model_text, spec, drawn.notes, trained)


def _both_orders() -> Generator[list[Listing], list[Reading], list[Reading]]:
    answers = yield [(0, 1), (1, 0)]
    return answers


def only_queries(decisions: Decisions, queries: Sequence[str]) -> Decisions:
    """Keep what was chosen in these queries; a note says how many of them have none."""
    frame = decisions.frame.filter(pl.col("query").is_in(list(queries)))
    lacking = [name for name in queries if name not in set(frame["query"])]
    if not frame.height:
        raise UserError(
            f"no pair to count: {counted(len(queries), 'query has', 'queries have')} none"
        )
    notes = decisions.notes
    if lacking:
        notes = (*notes, QueriesWithoutPair(lacking=len(lacking), queries=len(queries)))
    return replace(decisions, frame=frame, notes=notes)


class _Choice(msgspec.Struct):
    query: _Id
    first: _Id
    second: _Id
    choice: str | msgspec.UnsetType | None = msgspec.UNSET
    """One of both ids, empty for none."""
    answer: Any = None
    """Or an answer to a prompt that shows the first document as [1], in any form that `stored_answer` reads."""
    reading: str | None = None

    def fault(self, queries: set[str], documents: Mapping[str, int]) -> str:
        """What does not fit a collection; empty where all does."""
        strange = next((name for name in (self.first, self.second) if name not in documents), None)
        if self.query not in queries:
            return f"query {self.query!r} is not in the collection"
        if strange is not None:
            return f"document {strange!r} is not in the collection"
        if self.first == self.second:
            return f"expected two documents, got {self.first!r} twice"
        if self.choice is msgspec.UNSET and self.answer is None:
            return "expected choice or answer, got neither"
        if self.choice and self.choice not in (self.first, self.second):
            return f"choice {shorten(self.choice)} is none of {self.first!r} and {self.second!r}"
        try:
            stored_answer(self.answer)
        except ValueError as error:
            return f"answer: {error}"
        return ""

    def read(self) -> tuple[str | None, str]:
        """The document chosen, if any, and how that is known."""
        if self.choice or self.answer is None:
            return self.choice or None, self.reading or "imported"
        text = stored_answer(self.answer)
        if text is None:
            return None, UNANSWERED
        reading = read_choice(text, 2)
        return (
            (self.first, self.second)[reading.order[0]] if reading.order else None
        ), reading.kind


def read_decisions(path: str | Path, collection: Collection, sides: TwoGroups) -> Decisions:
    """Read stored choices, JSON lines, each as `_Choice`; no pairs of one side or of unlike relevance."""
    path = Path(path)
    relevant = set(relevant_pairs(collection).iter_rows())
    queries, row_of = (
        set(collection.queries["id"]),
        {name: row for row, name in enumerate(collection.ids)},
    )
    seen: dict[tuple[str, str, str], int] = {}
    rows, unlike, mixed = [], 0, 0
    for line, row in json_objects(path):
        try:
            found = msgspec.convert(row, _Choice)
        except msgspec.ValidationError as error:
            expected = f"expected query, first, second, and choice or answer: {error}"
            raise DataError(path, expected, line=line) from error
        key = found.query, found.first, found.second
        fault = found.fault(queries, row_of)
        if key in seen:
            fault = f"the same query and documents in this order came in line {seen[key]}"
        if fault:
            raise DataError(path, fault, line=line)
        seen[key] = line
        pair = [row_of[name] for name in key[1:]]
        grades = {(found.query, row) in relevant for row in pair}
        if {int(sides.code[row]) for row in pair} != {0, 1}:
            unlike += 1
        elif len(grades) > 1:
            mixed += 1
        else:
            rows.append(
                (
                    found.query,
                    "relevant" if grades == {True} else "irrelevant",
                    *key[1:],
                    *found.read(),
                )
            )
    notes = list(_left_out(path.name, sides, unlike=unlike, mixed=mixed))
    if not rows:
        reasons = [note.sentence for note in notes]
        raise DataError(path, "; ".join(["no choice between documents of both sides", *reasons]))
    frame = pl.DataFrame(rows, SCHEMA, orient="row")
    return Decisions(frame, sides, path.name, {"decisions": str(path)}, (*sides.notes, *notes))


def _left_out(file: str, sides: TwoGroups, *, unlike: int, mixed: int) -> Iterator[Note]:
    """Note choices of `unlike` groups, and of relevance that is `mixed`."""
    numbers: tuple[tuple[Literal["groups", "relevance"], int], ...] = (
        ("groups", unlike),
        ("relevance", mixed),
    )
    for reason, number in numbers:
        if number:
            yield ChoicesLeftOut(
                file=file,
                choices=number,
                reason=reason,
                protected=sides.protected,
                unprotected=sides.unprotected,
            )


_PAIR = ("protected_origin", "unprotected_origin")


class Counts(NamedTuple):
    """Columns of `QueryChoices` as arrays of shape (n_pairs,)."""

    pairs: Floats
    units: Floats
    protected: Floats
    unprotected: Floats
    inconsistent: Floats
    unparsed: Floats
    readable: Floats
    first: Floats


def pairwise(
    collection: Collection,
    choices: Pairwise | Decisions,
    *,
    by: str = "source",
    protected: str | None = None,
    pairs: int = 20,
    candidates: Run | None = None,
    queries: Iterable[str] | None = None,
    count_rule: str = "both-agree",
    margin: float = 5.0,
    correction: str = "holm",
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> PairwiseAudit:
    """Ask which of a protected and an unprotected document is more relevant, in both orders, and say who is favoured.

    See Wang et al., NAACL 2024, sec. 3.2 and table 3. That both orders must agree, and 20 pairs a
    query, are ours.

    Parameters
    ----------
    collection : Collection
        With a column of groups.
    choices : Pairwise or Decisions
        Who is asked, such as ``ranker("pairwise:openai:MODEL(prompt=pairwise-neutral)")`` (its
        method and top do not matter), or what was chosen already: of `ask_pairs` or
        `read_decisions`.
    by, protected : str
        Column of the groups, and the protected one: by default the smaller of two. All others are
        the other side.
    pairs : int, optional
        For each query, drawn of two relevant documents, and as many of two that are not.
    candidates : Run, optional
        Documents of which a query's pairs are drawn; all by default.
    queries : iterable of str, optional
        Ids of the queries that count, such as those that an adapter did not learn from; all by
        default.
    count_rule : {"both-agree", "each"}, optional
        Whether a pair counts where both orders agree, or each answer by itself.
    margin : float, optional
        Half-width of what counts as level, in points around 50 %.
    correction : {"holm", "bonferroni"}, optional
        Of the p-values of both kinds of pairs.
    resamples, seed : int, optional
        Of the bootstrap and of the pairs.
    """
    check_resamples(resamples)
    if count_rule not in COUNTS:
        raise unknown("rule for counting", count_rule, COUNTS)
    asked = None if queries is None else known_queries(collection, queries)
    if isinstance(choices, Decisions):
        decisions = choices
    else:
        sides = two_groups(collection, by, protected)
        drawn = draw_pairs(
            collection, sides, pairs=pairs, seed=seed, candidates=candidates, queries=asked
        )
        decisions = ask_pairs(collection, drawn, choices)
    if asked is not None:
        decisions = only_queries(decisions, asked)
    sides = decisions.sides
    tables = {kind: count_choices(decisions, collection, kind, count_rule) for kind in KINDS}
    by_query = tuple(row for kind, table in tables.items() for row in query_choices(kind, table))
    found = [
        outcome(kind, *_arrays(table), resamples=resamples, seed=seed)
        for kind, table in tables.items()
        if len(table)
    ]
    ps = correct([one.p for one in found], correction)
    tests = max(int((~np.isnan(ps)).sum()), 1)
    tested = [p if one.effective_n >= FEWEST else np.nan for one, p in zip(found, ps, strict=True)]
    outcomes = tuple(
        replace(one, p_corrected=float(p), family_size=tests)
        for one, p in zip(found, tested, strict=True)
    )
    every = set(decisions.frame["query"])
    trained = len(every & decisions.training_queries)
    spec = {
        **{name: collection.spec[name] for name in ("path", "split") if name in collection.spec},
        "by": sides.by,
        "protected": sides.protected,
        "count_rule": count_rule,
        "margin": margin,
        "correction": correction,
        "resamples": resamples,
        "seed": seed,
        **decisions.spec,
        **({} if candidates is None else {"candidates": candidates.name}),
        **({} if asked is None else {"queries": len(asked)}),
        **({"trained_queries": f"{trained:,} of {len(every):,}"} if trained else {}),
        "asked": _digest(decisions),
        "ranktilt": __version__,
    }
    notes = (*decisions.notes, *_answer_notes(decisions), *_few_notes(outcomes))
    made = PairwiseAudit(
        spec,
        decisions.model,
        sides.protected,
        sides.unprotected,
        outcomes=outcomes,
        notes=notes,
        by_query=by_query,
        by_pair=tuple(_by_pair(kind, table) for kind, table in tables.items() if len(table)),
    )
    effects = [made.effect(outcome) for outcome in outcomes if outcome.decided]
    return replace(made, notes=(*variation_notes(effects), *notes))


def _by_pair(kind: Kind, table: pl.DataFrame) -> PairTable:
    """Keep what was chosen of each pair; queries of one text are called by the first id."""
    query = table.select(pl.col("query").first().over("query_text"))["query"]
    return PairTable(
        kind=kind,
        queries=tuple(query),
        protected_origins=tuple(table[_PAIR[0]]),
        unprotected_origins=tuple(table[_PAIR[1]]),
        protected=table["protected"].cast(pl.Float64).to_numpy(),
        unprotected=table["unprotected"].cast(pl.Float64).to_numpy(),
    )


def _arrays(table: pl.DataFrame) -> tuple[Counts, Dyads]:
    """Counts of each pair, and the numbers of its query and of the origins of its documents."""
    origins = (
        pl.concat([table[side] for side in _PAIR]).rank("dense").to_numpy().astype(np.int64) - 1
    )
    query = codes(table["query_text"], table["query_text"].unique(maintain_order=True))
    counts = Counts(*(table[name].cast(pl.Float64).to_numpy() for name in Counts._fields))
    return counts, Dyads(query, *origins.reshape(2, -1))


def _digest(decisions: Decisions) -> str:
    """A hash of the pairs that were asked about, in whatever order."""
    pairs = (
        decisions.frame.select("query", "kind", "first", "second")
        .sort(pl.all())
        .write_csv(include_header=False)
    )
    return hashlib.blake2b(pairs.encode(errors="surrogatepass"), digest_size=16).hexdigest()


def count_choices(
    decisions: Decisions, collection: Collection, kind: Kind, count_rule: str
) -> pl.DataFrame:
    """Count what was chosen of each pair of one kind, beside the query, its text and both documents' origins."""
    code = pl.DataFrame({"first": collection.ids, "code": decisions.sides.code})
    origins = collection.docs.select("id", "origin")
    texts = collection.queries.select(
        "id", query_text=pl.when(pl.col("text") != "").then("text").otherwise("id")
    )
    answers = (
        decisions.frame.filter(pl.col("kind") == kind)
        .join(code, on="first", how="left", maintain_order="left")
        .join(texts, left_on="query", right_on="id", how="left", maintain_order="left")
        .with_columns(named_first=pl.col("choice") == pl.col("first"))  # null where none is chosen
    )
    chosen = pl.col("named_first") == (pl.col("code") == 1)
    one, two = (
        pl.when(pl.col("code") == code).then("first").otherwise("second") for code in (1, 0)
    )
    by_pair = (
        answers.with_columns(chosen=chosen, one=one, two=two)
        .group_by("query_text", "query", "one", "two", maintain_order=True)
        .agg(
            answers=pl.len(),
            readable=pl.col("chosen").count(),
            protected=pl.col("chosen").sum(),
            first=pl.col("named_first").sum(),
        )
    )
    for side, origin in zip(("one", "two"), _PAIR, strict=True):
        by_pair = by_pair.join(
            origins.rename({"origin": origin}), left_on=side, right_on="id", maintain_order="left"
        )
    both, readable, protected = pl.col("answers") == 2, pl.col("readable"), pl.col("protected")
    whole = both & (readable == 2)
    each = count_rule == "each"
    return by_pair.select(
        "query_text",
        "query",
        *_PAIR,
        "readable",
        "first",
        pairs=both,
        units=pl.col("answers") if each else both,
        protected=protected if each else whole & (protected == 2),
        unprotected=(readable - protected) if each else whole & (protected == 0),
        inconsistent=whole & (protected == 1),
        unparsed=(pl.col("answers") - readable) if each else both & (readable < 2),
    )


def query_choices(kind: Kind, table: pl.DataFrame) -> Iterator[QueryChoices]:
    """Sum what was chosen over the pairs of each query; queries of one text are one."""
    sums = table.group_by("query_text", maintain_order=True).agg(
        pl.col("query").first(), pl.col(Counts._fields).sum()
    )
    for row in sums.drop("query_text").iter_rows(named=True):
        yield QueryChoices(kind, **row)


def outcome(
    kind: Kind, counts: Counts, pairs: Dyads, *, resamples: int = RESAMPLES, seed: int = 0
) -> PairOutcome:
    """Make counts shares with intervals over queries and documents, and test the preference."""
    decided = counts.protected + counts.unprotected
    half_lead = (counts.protected - counts.unprotected) / 2
    columns = {**counts._asdict(), "decided": decided, "half_lead": half_lead}
    by_query = {name: sums(pairs.query, column) for name, column in columns.items()}
    resampled = resampled_means(list(by_query.values()), resamples=resamples, seed=seed)
    means = dict(zip(columns, resampled, strict=True))

    def share(part: str, whole: str, *, neutral: float = EVEN) -> tuple[Share, Inference, float]:
        """Return one count in shares of another, and the effective number behind it."""
        weight = columns[whole]
        if not weight.any():
            nothing = Inference(low=np.nan, high=np.nan, error=np.nan, p=np.nan)
            return Share(np.nan, np.nan, np.nan), nothing, 0.0
        value = float(columns[part].sum() / weight.sum())
        residual = (columns[part] - value * weight) / weight.sum()
        variance = pairs.variance(residual, weight / weight.sum())
        with np.errstate(invalid="ignore"):
            ratio = means[part] / means[whole]
        bounds = (neutral - EVEN, neutral + EVEN)
        inference = infer(ratio, value, variance=variance, neutral=neutral, bounds=bounds)
        return Share(value, inference.low, inference.high), inference, variance.effective_n

    # Half the lead turns its sign to the last bit where the sides are exchanged; shares do not.
    lead_share, inference, effective_n = share("half_lead", "decided", neutral=0.0)
    preference = Share(EVEN + lead_share.value, EVEN + lead_share.low, EVEN + lead_share.high)
    flips = (
        sign_flip_p(by_query["half_lead"], resamples=resamples, seed=seed)
        if decided.any()
        else np.nan
    )
    return PairOutcome(
        kind,
        queries=len(by_query["pairs"]),
        pairs=int(counts.pairs.sum()),
        decided=int(decided.sum()),
        protected=share("protected", "units")[0],
        unprotected=share("unprotected", "units")[0],
        inconsistent=share("inconsistent", "pairs")[0],
        unparsed=share("unparsed", "units")[0],
        preference=preference,
        first=share("first", "readable")[0],
        error=inference.error,
        effective_n=effective_n,
        p=inference.p,
        checks={"sign flips": flips},
    )


def _answer_notes(decisions: Decisions) -> Iterator[Note]:
    """Note what kinds of answers came, and of how many pairs only one order is known."""
    numbers = decisions.frame["reading"].value_counts(sort=True)
    kinds = counts_of(dict(numbers.iter_rows()))
    total, lost = decisions.frame.height, decisions.frame["choice"].null_count()
    answers = decisions.spec.get("llm_answers", {})
    yield AnswersRead(
        stage=decisions.model,
        kinds=kinds,
        tokens_read=answers.get("tokens_read"),
        tokens_written=answers.get("tokens_written"),
    )
    if lost:
        yield ChoicesUnreadable(
            answers=total, unreadable=lost, kinds=kinds, first=answers.get("unreadable") or ""
        )
    pair = pl.concat_list(
        pl.min_horizontal("first", "second"), pl.max_horizontal("first", "second")
    )
    single = (
        decisions.frame.group_by("query", pair.alias("pair"))
        .len()
        .filter(pl.col("len") == 1)
        .height
    )
    if single:
        yield PairsInOneOrder(pairs=single)


def _few_notes(outcomes: Sequence[PairOutcome]) -> Iterator[Note]:
    for outcome_of_kind in outcomes:
        kind = outcome_of_kind.kind
        if outcome_of_kind.queries < FEW_QUERIES:
            yield FewQueriesWithPairs(queries=outcome_of_kind.queries, pairs=kind)
        if not outcome_of_kind.decided:
            yield NothingDecided(pairs=kind)
