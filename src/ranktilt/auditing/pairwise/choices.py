"""From choices to shares of each kind of pairs, with intervals and tests."""

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
    """One row for each answer.

    ``query``, ``kind`` (``relevant`` or ``irrelevant``), ``first`` and ``second`` (ids in the order
    of the prompt), ``choice`` (one of both ids, or null where an answer could not be read) and
    ``reading`` (the kind of answer).
    """
    sides: TwoGroups
    model: str
    """Name of the language model that chose, or of the file of choices."""
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
    """Ask a language model about each pair in both orders, in one batch of prompts.

    `ranker` gives the model and the prompt; its ranking method is not used.
    """
    texts = readable_texts(ranker, collection)
    protected, unprotected = (
        texts.gather(codes(drawn.frame[side], collection.ids))
        for side in ("protected", "unprotected")
    )
    query_rows = codes(drawn.frame["query"], collection.queries["id"])
    queries = collection.queries["text"].gather(query_rows)
    tasks = [
        Task(query=query, passages=[ranker.prompt_text(first), ranker.prompt_text(second)])
        for query, first, second in zip(queries, protected, unprotected, strict=True)
    ]
    answers, answer_spec = ranker.ask(tasks, [_both_orders() for _ in tasks], asker=asker)
    rows = []
    for (query, kind, protected_id, unprotected_id), readings in zip(
        drawn.frame.iter_rows(), answers, strict=True
    ):
        orders = (protected_id, unprotected_id), (unprotected_id, protected_id)
        for order, reading in zip(orders, readings, strict=True):
            choice = order[reading.order[0]] if reading.order else None
            rows.append((query, kind, *order, choice, reading.kind))
    return Decisions(
        frame=pl.DataFrame(rows, SCHEMA, orient="row"),
        sides=drawn.sides,
        model=ranker.model_text,
        spec={"asker": repr(ranker), "pairs": drawn.requested, **answer_spec},
        notes=drawn.notes,
        training_queries=ranker.model().training_queries,
    )


def _both_orders() -> Generator[list[Listing], list[Reading], list[Reading]]:
    answers = yield [(0, 1), (1, 0)]
    return answers


def only_queries(decisions: Decisions, queries: Sequence[str]) -> Decisions:
    """Keep the choices of these queries; a note says how many of them have none."""
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
    """Instead of `choice`, an answer to a prompt that shows the first document as [1].

    It has any form that `stored_answer` reads.
    """
    reading: str | None = None

    def fault(self, queries: set[str], documents: Mapping[str, int]) -> str:
        """Say what does not fit a collection; empty where all does."""
        if self.query not in queries:
            return f"query {self.query!r} is not in the collection"
        for name in (self.first, self.second):
            if name not in documents:
                return f"document {name!r} is not in the collection"
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
        """Return the document chosen, if any, and the kind of answer."""
        if self.choice or self.answer is None:
            return self.choice or None, self.reading or "imported"
        text = stored_answer(self.answer)
        if text is None:
            return None, UNANSWERED
        reading = read_choice(text, 2)
        documents = self.first, self.second
        return documents[reading.order[0]] if reading.order else None, reading.kind


def read_decisions(path: str | Path, collection: Collection, sides: TwoGroups) -> Decisions:
    """Read stored choices: JSON lines, each a `_Choice`.

    Pairs of one side, and of one relevant and one other document, are left out and noted.
    """
    path = Path(path)
    relevant = set(relevant_pairs(collection).iter_rows())
    queries = set(collection.queries["id"])
    row_of = {name: row for row, name in enumerate(collection.ids)}
    lines: dict[tuple[str, str, str], int] = {}
    rows, unlike, mixed = [], 0, 0
    for line, record in json_objects(path):
        choice = _read_choice(path, line, record)
        query, first, second = choice.query, choice.first, choice.second
        fault = choice.fault(queries, row_of)
        if (query, first, second) in lines:
            earlier = lines[query, first, second]
            fault = f"the same query and documents in this order came in line {earlier}"
        if fault:
            raise DataError(path, fault, line=line)
        lines[query, first, second] = line
        pair = row_of[first], row_of[second]
        is_relevant = {(query, row) in relevant for row in pair}
        if {int(sides.code[row]) for row in pair} != {0, 1}:
            unlike += 1
        elif len(is_relevant) > 1:
            mixed += 1
        else:
            kind = "relevant" if True in is_relevant else "irrelevant"
            rows.append((query, kind, first, second, *choice.read()))
    notes = list(_left_out(path.name, sides, unlike=unlike, mixed=mixed))
    if not rows:
        reasons = [note.sentence for note in notes]
        raise DataError(path, "; ".join(["no choice between documents of both sides", *reasons]))
    return Decisions(
        frame=pl.DataFrame(rows, SCHEMA, orient="row"),
        sides=sides,
        model=path.name,
        spec={"decisions": str(path)},
        notes=(*sides.notes, *notes),
    )


def _read_choice(path: Path, line: int, record: dict[str, Any]) -> _Choice:
    try:
        return msgspec.convert(record, _Choice)
    except msgspec.ValidationError as error:
        expected = f"expected query, first, second, and choice or answer: {error}"
        raise DataError(path, expected, line=line) from error


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
    """Ask which of a protected and an unprotected document is more relevant, in both orders.

    See Wang et al., NAACL 2024, sec. 3.2 and table 3. That both orders must agree, and 20 pairs a
    query, are ours.

    Parameters
    ----------
    collection : Collection
        With a column of groups.
    choices : Pairwise or Decisions
        The model to ask, such as ``ranker("pairwise:openai:MODEL(prompt=pairwise-neutral)")`` (its
        method and top do not matter), or earlier choices, from `ask_pairs` or `read_decisions`.
    by, protected : str
        Column of the groups, and the protected one: by default the smaller of two. All others are
        the other side.
    pairs : int, optional
        Number of pairs of two relevant documents for each query, and of two that are not.
    candidates : Run, optional
        Documents from which a query's pairs are drawn; all by default.
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
    query_ids = None if queries is None else known_queries(collection, queries)
    if isinstance(choices, Decisions):
        decisions = choices
    else:
        drawn = draw_pairs(
            collection,
            two_groups(collection, by, protected),
            pairs=pairs,
            seed=seed,
            candidates=candidates,
            queries=query_ids,
        )
        decisions = ask_pairs(collection, drawn, choices)
    if query_ids is not None:
        decisions = only_queries(decisions, query_ids)
    tables = {kind: count_choices(decisions, collection, kind, count_rule) for kind in KINDS}
    by_query: list[QueryChoices] = []
    by_pair: list[PairTable] = []
    outcomes: list[PairOutcome] = []
    for kind, table in tables.items():
        by_query += query_choices(kind, table)
        if len(table):
            by_pair.append(_by_pair(kind, table))
            counts, dyads = _arrays(table)
            outcomes.append(outcome(kind, counts, dyads, resamples=resamples, seed=seed))
    outcomes = _corrected(outcomes, correction)
    spec = {
        **{name: collection.spec[name] for name in ("path", "split") if name in collection.spec},
        "by": decisions.sides.by,
        "protected": decisions.sides.protected,
        "count_rule": count_rule,
        "margin": margin,
        "correction": correction,
        "resamples": resamples,
        "seed": seed,
        **decisions.spec,
    }
    if candidates is not None:
        spec["candidates"] = candidates.name
    if query_ids is not None:
        spec["queries"] = len(query_ids)
    all_queries = set(decisions.frame["query"])
    trained = len(all_queries & decisions.training_queries)
    if trained:
        spec["trained_queries"] = f"{trained:,} of {len(all_queries):,}"
    spec |= {"asked": _digest(decisions), "ranktilt": __version__}
    notes = (*decisions.notes, *_answer_notes(decisions), *_few_notes(outcomes))
    result = PairwiseAudit(
        spec=spec,
        model=decisions.model,
        protected=decisions.sides.protected,
        unprotected=decisions.sides.unprotected,
        outcomes=tuple(outcomes),
        notes=notes,
        by_query=tuple(by_query),
        by_pair=tuple(by_pair),
    )
    effects = [result.effect(outcome) for outcome in outcomes if outcome.decided]
    return replace(result, notes=(*variation_notes(effects), *notes))


def _corrected(outcomes: Sequence[PairOutcome], correction: str) -> list[PairOutcome]:
    """Correct the p of all kinds of pairs together; NaN where the sample is too small."""
    ps = correct([outcome_of_kind.p for outcome_of_kind in outcomes], correction)
    tests = max(int((~np.isnan(ps)).sum()), 1)
    rows = []
    for outcome_of_kind, p in zip(outcomes, ps, strict=True):
        is_testable = outcome_of_kind.effective_n >= FEWEST
        p_corrected = float(p) if is_testable else np.nan
        rows.append(replace(outcome_of_kind, p_corrected=p_corrected, family_size=tests))
    return rows


def _by_pair(kind: Kind, table: pl.DataFrame) -> PairTable:
    """Keep what was chosen of each pair; queries of one text have the first id."""
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
    """Return the counts of each pair, and the numbers of its query and its documents' origins."""
    names = pl.concat([table[side] for side in _PAIR])
    origins = names.rank("dense").to_numpy().astype(np.int64) - 1
    protected, unprotected = origins.reshape(2, -1)
    query = codes(table["query_text"], table["query_text"].unique(maintain_order=True))
    counts = Counts(*(table[name].cast(pl.Float64).to_numpy() for name in Counts._fields))
    return counts, Dyads(query, protected, unprotected)


def _digest(decisions: Decisions) -> str:
    """Return a hash of the pairs that the model was asked about, whatever their order."""
    pairs = (
        decisions.frame.select("query", "kind", "first", "second")
        .sort(pl.all())
        .write_csv(include_header=False)
    )
    return hashlib.blake2b(pairs.encode(errors="surrogatepass"), digest_size=16).hexdigest()


def count_choices(
    decisions: Decisions, collection: Collection, kind: Kind, count_rule: str
) -> pl.DataFrame:
    """Count what was chosen of each pair of one kind.

    Returns a row for each pair: the query, its text, the origins of both documents, and the fields
    of `Counts`.
    """
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
    is_protected_first = pl.col("code") == 1
    by_pair = (
        answers.with_columns(
            chose_protected=pl.col("named_first") == is_protected_first,
            protected_id=pl.when(is_protected_first).then("first").otherwise("second"),
            unprotected_id=pl.when(pl.col("code") == 0).then("first").otherwise("second"),
        )
        .group_by("query_text", "query", "protected_id", "unprotected_id", maintain_order=True)
        .agg(
            answers=pl.len(),
            readable=pl.col("chose_protected").count(),
            protected=pl.col("chose_protected").sum(),
            first=pl.col("named_first").sum(),
        )
    )
    for side, origin in zip(("protected_id", "unprotected_id"), _PAIR, strict=True):
        by_pair = by_pair.join(
            origins.rename({"origin": origin}), left_on=side, right_on="id", maintain_order="left"
        )
    readable, protected = pl.col("readable"), pl.col("protected")
    has_both_orders = pl.col("answers") == 2
    has_both_choices = has_both_orders & (readable == 2)
    if count_rule == "each":
        counts = {
            "units": pl.col("answers"),
            "protected": protected,
            "unprotected": readable - protected,
            "unparsed": pl.col("answers") - readable,
        }
    else:
        counts = {
            "units": has_both_orders,
            "protected": has_both_choices & (protected == 2),
            "unprotected": has_both_choices & (protected == 0),
            "unparsed": has_both_orders & (readable < 2),
        }
    return by_pair.select(
        "query_text",
        "query",
        *_PAIR,
        "readable",
        "first",
        pairs=has_both_orders,
        inconsistent=has_both_choices & (protected == 1),
        **counts,
    )


def query_choices(kind: Kind, table: pl.DataFrame) -> Iterator[QueryChoices]:
    """Sum what was chosen over the pairs of each query; queries of one text count as one."""
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

    def share(part: str, total: str, *, neutral: float = EVEN) -> tuple[Share, Inference, float]:
        """Return one count as a share of another, its inference and its effective number."""
        weight = columns[total]
        if not weight.any():
            undefined = Inference(low=np.nan, high=np.nan, error=np.nan, p=np.nan)
            return Share(np.nan, np.nan, np.nan), undefined, 0.0
        value = float(columns[part].sum() / weight.sum())
        residual = (columns[part] - value * weight) / weight.sum()
        variance = pairs.variance(residual, weight / weight.sum())
        with np.errstate(invalid="ignore"):
            ratio = means[part] / means[total]
        bounds = (neutral - EVEN, neutral + EVEN)
        inference = infer(ratio, value, variance=variance, neutral=neutral, bounds=bounds)
        return Share(value, inference.low, inference.high), inference, variance.effective_n

    # Half the lead turns its sign to the last bit where the sides are exchanged; shares do not.
    lead_share, inference, effective_n = share("half_lead", "decided", neutral=0.0)
    preference = Share(EVEN + lead_share.value, EVEN + lead_share.low, EVEN + lead_share.high)
    flips = np.nan
    if decided.any():
        flips = sign_flip_p(by_query["half_lead"], resamples=resamples, seed=seed)
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
    """Note the kinds of answers, and how many pairs have an answer in one order only."""
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
