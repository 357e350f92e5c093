"""Audits opened together with their collections and runs, for the tests of an audit's page."""

from functools import cache
from typing import Any

import polars as pl

from ranktilt import Collection, Run, audit
from ranktilt.reporting.reload import LoadedAudit
from ranktilt.reporting.report import report_page
from tests.reporting.audits import ordered, twins
from tests.toy import run_of

HUMAN, LLM = ("human", "llm"), ("llm", "human")
ORDERS = {"people": [HUMAN] * 40, "machines": [LLM] * 40, "nobody": [HUMAN, LLM] * 20}
"""Which twin stands first in each of 40 queries, by the ranker's name."""


def audit_page(given: LoadedAudit, *, texts: bool = True) -> str:
    """Write the page of one audit."""
    return report_page([given], texts=texts)


def of(collection: Collection, runs: list[Run], measures: Any = ("nDCG@1", "P@2"), **options: Any) -> LoadedAudit:
    """Audit runs, and keep what they were made from."""
    return LoadedAudit(audit(collection, runs, measures, **{"resamples": 1000, **options}), collection, tuple(runs))


@cache
def opened(*, card: bool = True) -> LoadedAudit:
    """Three rankers of 40 queries: one has human text first, one LLM text, one each as often."""
    collection = twins(40)
    return of(collection, [ordered(collection, order, name) for name, order in ORDERS.items()], card=card)


@cache
def unjudged() -> LoadedAudit:
    """The same without judgments: only the card can answer."""
    one = opened()
    assert one.collection is not None
    plain = one.collection
    collection = Collection(plain.docs, plain.queries, plain.qrels.clear())
    return of(collection, list(one.runs), None, card=True)


@cache
def ungrouped() -> LoadedAudit:
    """The same without groups."""
    one = opened()
    assert one.collection is not None
    return of(one.collection, list(one.runs), by=None)


@cache
def many(rankers: int = 30) -> LoadedAudit:
    """As many rankers, each with human text first in other queries."""
    collection = twins(40)
    orders = [[HUMAN if (n * step) % 7 < 3 else LLM for n in range(40)] for step in range(rankers)]
    runs = [ordered(collection, order, f"ranker-{step}") for step, order in enumerate(orders)]
    return of(collection, runs, resamples=200)


@cache
def sources(*names: str) -> LoadedAudit:
    """One ranker of several sources, which always stand in this order; all pairs of them are compared."""
    collection = twins(40, names)
    return of(collection, [ordered(collection, [names] * 40, "run")], ["RR", "nDCG@1"], card=True)


@cache
def colours(count: int = 7) -> LoadedAudit:
    """Groups that are no twins: every query has six relevant documents, and rankings do not know their groups."""
    docs = twins(40, ("human",)).docs.with_columns(colour=pl.format("c{}", pl.int_range(pl.len()) % count))
    plain = twins(40, ("human",))
    doc = pl.format("{}-human", (pl.int_range(pl.len()) + pl.col("step")) % 40)
    parts = [plain.qrels.with_columns(step=step).with_columns(doc_id=doc).drop("step") for step in range(6)]
    collection = Collection(docs, plain.queries, pl.concat(parts))
    scores = {f"q{n}": {f"{m}-human": float((m * 7 + n * 11) % 40) for m in range(40)} for n in range(40)}
    return of(collection, [run_of(collection, scores, ranker="run")], ["nDCG@5"], by="colour")


def alone(found: LoadedAudit, *notes: str) -> LoadedAudit:
    """Return the audit without what it was made from."""
    return LoadedAudit(found.audit, notes=notes)
